"""What a shell says of tensors, values and lists, and what an operation gives as JSON."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rankbridge import Gang, Ref

_INITS = ("zeros", "full", "arange", "uniform", "normal")


def ints(text: str) -> list[int]:
    """Numbers with commas between. Raises ValueError."""
    return [int(part) for part in text.split(",") if part]


def rows(text: str) -> list[list[int]]:
    """Lists of numbers with slashes between. Raises ValueError."""
    return [ints(row) for row in text.split("/") if row]


def value(text: str) -> Any:
    """A value as JSON. Raises ValueError."""
    try:
        return json.loads(text)
    except ValueError as error:
        raise ValueError(f"{text!r} is no JSON (a text is {json.dumps(text)!r}): {error}") from None


def array(text: str, dtype: str) -> Any:
    """An array of a JSON list. Raises ValueError or TypeError."""
    import numpy as np

    return np.asarray(value(text), dtype=np.dtype(dtype))


def init(text: str) -> Any:
    """What a tensor is filled with: "zeros", "full:1.5", "arange:0:2", "uniform:SEED:LOW:HIGH". Raises ValueError."""
    import rankbridge

    kind, _, rest = text.partition(":")
    if kind not in _INITS:
        raise ValueError(
            f"say one of {', '.join(_INITS)}, as in full:1.5, arange:0:2, uniform:SEED:LOW:HIGH: not {text!r}"
        )
    make: Callable[..., Any] = getattr(rankbridge, kind)
    return make(*(json.loads(part) for part in rest.split(":") if part))


def refs(gang: Gang, ids: Sequence[str]) -> list[Ref]:
    """The refs of these ids; each may be several with commas between. Raises ValueError."""
    known = {ref.id: ref for refs in gang.list_refs() for ref in refs}
    try:
        return [known[ref_id] for text in ids for ref_id in text.split(",")]
    except KeyError as missing:
        raise ValueError(f"no ref {missing} in the ranks' shared sessions") from None


def tensors(gang: Gang, text: str) -> dict[str, Any]:
    """A map of values, in which {"ref": ID} is a tensor. Raises ValueError."""
    given = value(text)
    if not isinstance(given, dict):
        raise ValueError(f"must be a JSON object, in which {{'ref': ID}} is a tensor: not {text}")
    return {
        name: refs(gang, [it["ref"]])[0] if isinstance(it, dict) and set(it) == {"ref"} else it
        for name, it in given.items()
    }


def ids(outcome: Any) -> list[str]:
    """The ids of the refs that an operation has given."""
    from rankbridge import Ref

    match outcome:
        case Ref():
            return [outcome.id]
        case dict():
            return [each for it in outcome.values() for each in ids(it)]
        case list() | tuple():
            return [each for it in outcome for each in ids(it)]
    return []


def as_json(outcome: Any) -> Any:
    """What an operation has given, as JSON has it."""
    from rankbridge import Group, Ref

    match outcome:
        case Ref():
            shape = list(outcome.shape)
            return {"rank": outcome.rank, "ref": outcome.id, "dtype": outcome.dtype, "shape": shape}
        case Group():
            return {"group": outcome.name, "ranks": list(outcome.ranks), "generation": outcome.generation}
        case dict():
            return {str(key): as_json(it) for key, it in outcome.items()}
        case list() | tuple():
            return [as_json(it) for it in outcome]
        case bytes():
            return {"base64": base64.b64encode(outcome).decode()}
        case None | bool() | int() | float() | str():
            return outcome
    if hasattr(outcome, "tolist"):
        return outcome.tolist()
    fields = getattr(outcome, "__dataclass_fields__", None)
    return str(outcome) if fields is None else {name: as_json(getattr(outcome, name)) for name in fields}
