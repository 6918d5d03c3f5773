"""The grammar of vllm.json: specifications of arguments, and results. The file's `about` describes it."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from tests.conformance.values import Json, Tensor


class Unserialisable:
    """A value that cannot leave its process."""


class PythonObject(str):
    """An object of vLLM's own, by the name of its class."""


class Arguments:
    """Evaluates specifications for one rank, and remembers what they keep.

    Attributes:
        rank: Rank in the gang.
        places: Its rank in each group, by the case's name of the group.
        kept: What was kept, by key.
    """

    def __init__(self, rank: int, places: dict[str, int]) -> None:
        """Knows the rank."""
        self.rank = rank
        self.places = places
        self.kept: dict[str, Any] = {}

    def read(self, spec: Json, group: str) -> Any:
        """Evaluates one specification of a call of a group."""
        if isinstance(spec, list):
            return [self.read(item, group) for item in spec]
        if not isinstance(spec, Mapping):
            return spec
        forms: dict[str, Callable[[Any], Any]] = {
            "$t": lambda form: self._tensor(form, group),
            "$by": lambda forms: self.read(forms[self.places[group]], group),
            "$global": lambda forms: self.read(forms[self.rank], group),
            "$tuple": lambda forms: tuple(self.read(form, group) for form in forms),
            "$bytes": base64.b64decode,
            "$set": lambda forms: {self.read(form, group) for form in forms},
            "$dtype": lambda name: name,
            "$size": tuple,
            "$dict": lambda pairs: {self.read(key, group): self.read(value, group) for key, value in pairs},
            "$group": lambda name: name,
            "$rep": lambda form: form[0] * form[1],
            "$lambda": lambda _: Unserialisable(),
            "$none": lambda _: None,
            "$keep": lambda key: self.kept.setdefault(key, self.read(spec["v"], group)),
            "$same": self.kept.__getitem__,
        }
        for name, read in forms.items():
            if name in spec:
                return read(spec[name])
        assert not any(key.startswith("$") for key in spec), f"an unknown form: {spec}"
        return {key: self.read(value, group) for key, value in spec.items()}

    def _tensor(self, form: Json, group: str) -> Tensor:
        place = self.places[group]
        dtype = form.get("dtype", "float32")
        shape = form["shape_by_rank"][place] if "shape_by_rank" in form else form["shape"]
        count = int(np.prod(shape, dtype=np.int64))
        if "data" in form:
            elements = np.asarray(form["data"])
        else:
            generators: dict[str, Callable[[], Any]] = {
                "mul": lambda: np.arange(count) * (place + 1),
                "add": lambda: np.arange(count) + 100 * place,
                "full": lambda: np.full(count, place + 1),
                "zeros": lambda: np.zeros(count),
            }
            elements = generators[form["gen"]]()
            if dtype.startswith("complex"):
                elements = elements.astype(dtype)
        made = Tensor.of(dtype, elements, shape)
        return Tensor(dtype, made.array.T) if form.get("transpose") else made


def read_result(recorded: Json) -> Any:
    """Reads a recorded value."""
    if isinstance(recorded, list):
        return [read_result(item) for item in recorded]
    if not isinstance(recorded, Mapping):
        return recorded
    if len(recorded) == 1:
        ((form, value),) = recorded.items()
        match form:
            case "tensor":
                return Tensor.of(value["dtype"], value["data"], value["shape"])
            case "dict" if isinstance(value, list):
                return {read_result(key): read_result(item) for key, item in value}
            case "tuple":
                return tuple(read_result(item) for item in value)
            case "set":
                return {read_result(item) for item in value}
            case "bytes":
                return base64.b64decode(value)
            case "py":
                return PythonObject(value)
    return {key: read_result(value) for key, value in recorded.items()}
