"""Replays with the Elixir client, which a program drives: elixir_client/compat/test/conformance/player.exs."""

from __future__ import annotations

import base64
import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from tests.chaos.controllers.forms import one_ref, ref_form
from tests.chaos.controllers.process import CLIENT, ElixirProcess, compile_client
from tests.conformance.clients.client import CallArguments
from tests.conformance.gangs import PATIENCE_S
from tests.conformance.moments import Answer
from tests.conformance.values import Json, Tensor

from rankbridge import Gang, Ref, Tensor as BridgeTensor

PROJECT = CLIENT / "compat"
COMMAND = ("mix", "run", "--no-compile", "--no-deps-check", "test/conformance/player.exs")
ATOMS = ("op", "layout")
"""Options whose values are atoms."""
_NUMBERS = itertools.count()


class ElixirClient:
    """The Elixir client: one gang of the program."""

    name = "elixir"

    def __init__(self, process: ElixirProcess, gang: Gang) -> None:
        """Connects the program to the gang that a Python client is connected to."""
        self._process = process
        self._gang = f"conformance_{next(_NUMBERS)}"
        answer = self._ask("connect", targets=list(gang.targets), timeout=round(PATIENCE_S * 1000))
        assert answer == {"ok": None}, answer

    def put(self, rank: int, tensor: Tensor) -> Ref:
        """See the protocol."""
        answer = self._ask("put", rank=rank, tensor=written(tensor))
        assert "ok" in answer, answer
        ref = read(answer["ok"])
        assert isinstance(ref, Ref)
        return ref

    def get(self, ref: Ref) -> Tensor:
        """See the protocol."""
        answer = self._ask("get", ref=written(ref))
        assert "ok" in answer, answer
        tensor = read(answer["ok"])
        assert isinstance(tensor, Tensor)
        return tensor

    def call(
        self,
        method: str,
        args: tuple[Any, ...],
        options: Mapping[str, Any],
        group: str,
        members: Sequence[int],
    ) -> dict[int, Answer]:
        """See the protocol."""
        answer = self._call(method, args, {**options, "group": group})
        if "ok" in answer:
            result = answer["ok"]
            values = [None] * len(members) if result is None else result
            return {rank: {"ok": value} for rank, value in zip(members, values, strict=True)}
        outcomes = answer["error"].get("outcomes") or [[rank, answer["error"]] for rank in members]
        return {rank: {"ok": None} if error is None else {"error": error} for rank, error in outcomes}

    def each(
        self, method: str, given: Mapping[int, CallArguments], group: str, timeout: float | None = None
    ) -> dict[int, Answer]:
        """See the protocol."""
        more: dict[str, Any] = {"group": group}
        if len(given) > 1:
            more["operation_id"] = f"{self._gang}-{next(_NUMBERS)}"
        if timeout is not None:
            more["timeout"] = round(timeout * 1000)
        begun = {}
        for rank, (args, options) in given.items():
            all_options = {**options, **more}
            if method.startswith("send"):
                destination = all_options.pop("dst_rank_in_group")
                begun[rank] = self._begin(method, (rank, *args, destination), all_options)
            elif method.startswith("recv"):
                begun[rank] = self._begin(method, (rank,), all_options)
            else:
                own = args or (None,)
                begun[rank] = self._begin("call_rank", (rank, _Atom(method), *own), all_options)
        return {rank: _answer(it.answer.result(PATIENCE_S + 10)) for rank, it in begun.items()}

    def new_groups(self, groups: Sequence[tuple[str, Sequence[int]]]) -> Answer:
        """See the protocol."""
        return self._call("new_groups", ([(name, list(ranks)) for name, ranks in groups],), {})

    def destroy_groups(self, names: Sequence[str]) -> None:
        """See the protocol."""
        answer = self._call("destroy_groups", (list(names),), {})
        assert "ok" in answer, answer

    def _begin(self, function: str, args: Sequence[Any], options: Mapping[str, Any]) -> Any:
        options_form = {name: written(_option(name, value)) for name, value in options.items()}
        return self._process.begin(
            "call",
            gang=self._gang,
            function=function,
            arguments=[written(it) for it in args],
            options=options_form,
        )

    def _call(self, function: str, args: Sequence[Any], options: Mapping[str, Any]) -> Answer:
        return _answer(self._begin(function, args, options).answer.result(PATIENCE_S + 10))

    def _ask(self, what: str, **fields: Any) -> Json:
        return self._process.begin(what, gang=self._gang, **fields).answer.result(PATIENCE_S + 10)


class _Atom(str):
    pass


def _option(name: str, value: Any) -> Any:
    if name in ATOMS:
        return _Atom(value)
    if name == "expected" and isinstance(value, tuple):
        return _Atom(value[0]), list(value[1])
    return value


def _answer(answer: Json) -> Answer:
    if "ok" in answer:
        return {"ok": read(answer["ok"])}
    if "error" in answer:
        return {"error": answer["error"]}
    return {"error": {"code": "Raised", "message": answer["crash"]}}


def written(value: Any) -> Json:
    """Writes a value for the program."""
    if isinstance(value, _Atom):
        return {"$atom": str(value)}
    if isinstance(value, Ref):
        return {"$ref": ref_form(value)}
    if isinstance(value, Tensor):
        value = value.for_bridge()
    if isinstance(value, BridgeTensor):
        return _tensor(value.dtype, value.shape, bytes(value.data))
    if isinstance(value, np.ndarray):
        return _tensor(str(value.dtype), value.shape, np.ascontiguousarray(value).tobytes())
    if isinstance(value, bytes):
        return {"$bytes": base64.b64encode(value).decode()}
    if isinstance(value, tuple):
        return {"$tuple": [written(item) for item in value]}
    if isinstance(value, Mapping):
        return {"$map": [[written(key), written(item)] for key, item in value.items()]}
    if isinstance(value, list | range):
        return [written(item) for item in value]
    assert value is None or isinstance(value, bool | int | float | str), type(value)
    return value


def _tensor(dtype: str, shape: Sequence[int], data: bytes) -> Json:
    form = {"dtype": dtype, "shape": list(shape), "data": base64.b64encode(data).decode()}
    return {"$tensor": form}


def read(form: Json) -> Any:
    """Reads a value of the program."""
    if isinstance(form, list):
        return [read(item) for item in form]
    if not isinstance(form, Mapping):
        return form
    ((form, value),) = form.items()
    match form:
        case "$ref":
            return one_ref(value)
        case "$float":
            return float(value)
        case "$bytes":
            return base64.b64decode(value)
        case "$tuple":
            return tuple(read(item) for item in value)
        case "$map":
            return {read(key): read(item) for key, item in value}
    data = base64.b64decode(value["data"])
    if value["dtype"] == "bfloat16":
        return Tensor.of_bridge(BridgeTensor("bfloat16", tuple(value["shape"]), data))
    return Tensor(value["dtype"], np.frombuffer(data, value["dtype"]).reshape(value["shape"]))


class ElixirClients:
    """Gives an Elixir client for each gang, all of one program."""

    def __init__(self, process: ElixirProcess) -> None:
        """Takes the program."""
        self._process = process
        self._clients: dict[tuple[str, ...], ElixirClient] = {}

    def __call__(self, gang: Gang) -> ElixirClient:
        """Gives the client of a gang."""
        if gang.targets not in self._clients:
            self._clients[gang.targets] = ElixirClient(self._process, gang)
        return self._clients[gang.targets]


@contextmanager
def elixir_clients(directory: Path) -> Iterator[ElixirClients]:
    """Compiles the client and starts the program, for the length of a `with` statement.

    Raises:
        ElixirMissingError: Elixir is not there, or the client does not compile.
    """
    compile_client(PROJECT)
    with ElixirProcess(directory / "elixir.log", COMMAND, project=PROJECT) as process:
        yield ElixirClients(process)
