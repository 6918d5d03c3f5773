"""Values of cases, as Python has them, and compared with what a rank gave. See `families/objects.py`."""

from __future__ import annotations

import base64
import struct
from typing import Any

from tests.contract.cases import Json, tensor, tensor_form

from rankbridge import Gang, Rank as Member, Ref
from rankbridge._plan.tensor import as_tensor


def given(value: Json, rank: Member | None = None) -> Any:
    """What a caller brings; the tensors of refs are put on `rank`."""
    ((kind, it),) = value.items()
    match kind:
        case "none":
            return None
        case "int":
            return int(it)
        case "float":
            return struct.unpack(">d", bytes.fromhex(it))[0]
        case "bytes":
            return base64.b64decode(it)
        case "list":
            return [given(item, rank) for item in it]
        case "tuple":
            return tuple(given(item, rank) for item in it)
        case "map":
            return {given(key, rank): given(item, rank) for key, item in it}
        case "tensor":
            return tensor(it)
        case "ref":
            assert rank is not None
            return rank.put(tensor(it))
        case _:
            return it


def assert_is(gang: Gang, value: Any, expected: Json, rank: int) -> None:
    """What `rank` in the gang gave is the value, of the very same kinds; refs are on its tensors, which are equal."""
    ((kind, it),) = expected.items()
    match kind:
        case "list" | "tuple":
            assert type(value) is (list if kind == "list" else tuple)
            assert len(value) == len(it)
            for item, each in zip(value, it, strict=True):
                assert_is(gang, item, each, rank)
        case "map":
            assert type(value) is dict
            assert list(value) == [given(key) for key, _ in it]
            for item, (_, each) in zip(value.values(), it, strict=True):
                assert_is(gang, item, each, rank)
        case "tensor":
            assert tensor_form(as_tensor(value)) == it
        case "ref":
            assert isinstance(value, Ref)
            assert value.rank == rank
            assert tensor_form(gang.get(value, to="tensor")) == it
        case "float":
            assert struct.pack(">d", value).hex() == it
        case _:
            known = given(expected)
            assert (type(value), value) == (type(known), known)
