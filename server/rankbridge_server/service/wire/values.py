"""Conversions between values of operations and `rankbridge.v1.Value`."""

from __future__ import annotations

from collections.abc import Iterator

from rankbridge.v1 import ref_pb2, value_pb2

from ...core.errors import invalid
from ...core.operations.outcome import Outcome, Packed, Received, TensorDict
from ...core.operations.tensor_dicts import GivenDict
from ...core.operations.values import Number
from ...core.refs.refs import Ref
from . import wire

INT64 = range(-(2**63), 2**63)
MAX_DEPTH = 30
"""Of containers within containers: protobuf reads 100 messages deep, of which each takes three, answers a few more."""


def is_given(value: value_pb2.Value) -> bool:
    """Whether there is a value, and not none."""
    return value.WhichOneof("kind") not in (None, "none")


def packed(value: value_pb2.Value) -> Packed:
    """A value that is taken as it is. Raises INVALID_ARGUMENT when it is none."""
    check(value)
    return Packed(value.SerializeToString())


def packed_items(name: str, value: value_pb2.Value) -> tuple[Packed, ...]:
    """The items of a list. `name`: of the argument."""
    if value.WhichOneof("kind") != "list":
        raise invalid(f"{name} is not a list", expected="list", got=str(value.WhichOneof("kind")))
    return tuple(packed(item) for item in value.list.items)


def number(value: value_pb2.Value) -> Number:
    """Unpacks a bool, an int or a float."""
    match value.WhichOneof("kind"):
        case "bool":
            return value.bool
        case "int":
            return value.int
        case "big_int":
            return int.from_bytes(value.big_int, "little", signed=True)
        case "float":
            return value.float
        case other:
            raise invalid("value is not a number", expected="bool, int or float", got=str(other))


def given_dict(value: value_pb2.Value) -> GivenDict:
    """A map, apart from its refs."""
    if value.WhichOneof("kind") != "map":
        raise invalid("dict is not a map", expected="map", got=str(value.WhichOneof("kind")))
    check(value)
    skeleton = value_pb2.Value()
    skeleton.CopyFrom(value)
    ids: list[str] = []
    for ref in refs_in(skeleton):
        ids.append(ref.id)
        ref.Clear()
    return GivenDict(skeleton.SerializeToString(), tuple(ids))


def pack_value(outcome: Outcome) -> value_pb2.Value:
    """Packs the outcome of an operation."""
    match outcome:
        case None:
            return value_pb2.Value(none=value_pb2.NoneValue())
        case Ref():
            return value_pb2.Value(ref=wire.pack_ref(outcome))
        case Packed():
            return value_pb2.Value.FromString(outcome.data)
        case TensorDict():
            return _filled(outcome)
        case Received():
            items = [pack_value(outcome.outcome), value_pb2.Value(int=outcome.src_rank_in_group)]
            return value_pb2.Value(tuple=value_pb2.TupleValue(items=items))
        case list():
            return value_pb2.Value(list=value_pb2.ListValue(items=map(pack_value, outcome)))
        case bool():
            return value_pb2.Value(bool=outcome)
        case int():
            return _int(outcome)
        case float():
            return value_pb2.Value(float=outcome)
        case _:
            raise TypeError(f"an operation of these gives no {outcome!r}")


def check(value: value_pb2.Value, depth: int = 0) -> None:
    """Raise INVALID_ARGUMENT for a value, or one within it, that is nothing, too deep, or not what it says."""
    if depth > MAX_DEPTH:
        raise invalid(
            "a value is too deep", expected=f"at most {MAX_DEPTH} containers in each other", got="more"
        )
    match value.WhichOneof("kind"):
        case None:
            raise invalid("a value is missing", expected="one of Value's kinds", got="nothing")
        case "list" | "tuple" as kind:
            for item in getattr(value, kind).items:
                check(item, depth + 1)
        case "map":
            _check_map(value.map, depth + 1)
        case "tensor":
            spec = wire.tensor_spec(value.tensor.spec, "")
            if len(value.tensor.data) != spec.nbytes:
                raise invalid(
                    f"the data of a {spec} has another length",
                    expected=f"{spec.nbytes} bytes",
                    got=f"{len(value.tensor.data)} bytes",
                )


def _check_map(message: value_pb2.MapValue, depth: int) -> None:
    keys: set[bytes] = set()
    for entry in message.entries:
        check(entry.key, depth)
        check(entry.value, depth)
        key = entry.key.SerializeToString(deterministic=True)
        if key in keys:
            raise invalid("a map has a key twice", expected="different keys", got=str(entry.key).strip())
        keys.add(key)


def _int(number_: int) -> value_pb2.Value:
    if number_ in INT64:
        return value_pb2.Value(int=number_)
    # One bit more than its magnitude has, for its sign.
    length = number_.bit_length() // 8 + 1
    return value_pb2.Value(big_int=number_.to_bytes(length, "little", signed=True))


def _filled(tensors: TensorDict) -> value_pb2.Value:
    value = value_pb2.Value.FromString(tensors.skeleton)
    for place, ref in zip(refs_in(value), tensors.refs, strict=True):
        place.CopyFrom(wire.pack_ref(ref))
    return value


def refs_in(value: value_pb2.Value) -> Iterator[ref_pb2.Ref]:
    """Every ref in a value, in order."""
    match value.WhichOneof("kind"):
        case "ref":
            yield value.ref
        case "list" | "tuple" as kind:
            for item in getattr(value, kind).items:
                yield from refs_in(item)
        case "map":
            for entry in value.map.entries:
                yield from refs_in(entry.value)
