from __future__ import annotations

import math
import struct
from typing import Any

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
from hypothesis import given, strategies as st

from rankbridge import InvalidArgumentError, ProtocolError, PyValue, Ref, Tensor, from_value, to_value
from rankbridge._plan.dtypes import DTYPES
from rankbridge._plan.values import MAX_DEPTH
from rankbridge.v1 import dtype_pb2, tensor_pb2, value_pb2

refs = st.builds(
    Ref,
    id=st.text(st.characters(codec="utf-8"), min_size=1),
    rank=st.integers(0, 2**32 - 1),
    session_id=st.text(st.characters(codec="utf-8")),
    dtype=st.sampled_from(sorted(DTYPES)),
    shape=st.lists(st.integers(0, 2**40), max_size=4).map(tuple),
    device=st.sampled_from(["cpu", "cuda:0", ""]),
)
tensors = st.integers(0, 4).flatmap(
    lambda size: st.builds(
        Tensor, st.just("bfloat16"), st.just((size,)), st.binary(min_size=2 * size, max_size=2 * size)
    )
)
arrays = hnp.arrays(
    st.sampled_from([dtype.numpy for dtype in DTYPES.values() if dtype.numpy is not None]),
    hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3),
)
scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.text(st.characters(codec="utf-8"))
    | st.binary()
    | refs
)
keys = st.recursive(scalars, lambda inner: st.lists(inner, max_size=2).map(tuple), max_leaves=3)
values = st.recursive(
    scalars | tensors | arrays,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(keys, inner, max_size=3)
    ),
    max_leaves=10,
)


def equal(one: Any, other: Any) -> bool:
    """Says whether two values are equal in kind and in every bit."""
    if type(one) is not type(other):
        return False
    match one:
        case float():
            return struct.pack("<d", one) == struct.pack("<d", other)
        case list() | tuple():
            return len(one) == len(other) and all(map(equal, one, other))
        case dict():
            return equal(list(one.items()), list(other.items()))
        case np.ndarray():
            same_kind = (one.dtype, one.shape) == (other.dtype, other.shape)
            return same_kind and one.tobytes() == other.tobytes()
    return bool(one == other)


def through_the_wire(value: PyValue) -> PyValue:
    return from_value(value_pb2.Value.FromString(to_value(value).SerializeToString()))


@given(values)
def test_values_pass_the_wire_without_loss(value: PyValue) -> None:
    assert equal(through_the_wire(value), value)


@given(st.integers())
def test_integers_use_64_bits_where_they_fit_and_the_fewest_bytes_where_not(number: int) -> None:
    written = to_value(number)
    if -(2**63) <= number < 2**63:
        assert (written.WhichOneof("kind"), written.int) == ("int", number)
    else:
        shorter = written.big_int[:-1]
        assert int.from_bytes(shorter, "little", signed=True) != number
    assert through_the_wire(number) == number


@pytest.mark.parametrize(
    ("number", "data"),
    [
        (2**63, bytes(7) + b"\x80\x00"),
        (-(2**63) - 1, b"\xff" * 7 + b"\x7f\xff"),
        (-(2**71), bytes(8) + b"\x80"),
    ],
)
def test_big_integers_are_twos_complement_little_endian(number: int, data: bytes) -> None:
    assert to_value(number).big_int == data


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (True, "bool"),
        (1, "int"),
        (1.0, "float"),
        (math.nan, "float"),
        (np.float64(1), "tensor"),
        (np.bool_(True), "tensor"),
        (bytearray(b"x"), "bytes"),
        ((), "tuple"),
        ([], "list"),
        ({}, "map"),
        (None, "none"),
    ],
)
def test_every_python_type_has_its_kind(value: Any, kind: str) -> None:
    assert to_value(value).WhichOneof("kind") == kind


@pytest.mark.parametrize("value", [object(), {1, 2}, 1j, "\ud800", [object()], {"a": object()}])
def test_what_is_no_value_is_refused(value: Any) -> None:
    with pytest.raises(InvalidArgumentError):
        to_value(value)


def test_nesting_is_bounded_by_what_parsers_read() -> None:
    def nested(depth: int) -> PyValue:
        value: PyValue = None
        for _ in range(depth):
            value = {"in": value}
        return value

    deepest = nested(MAX_DEPTH)
    assert through_the_wire(deepest) == deepest
    with pytest.raises(InvalidArgumentError, match="nested too deep"):
        to_value(nested(MAX_DEPTH + 1))
    endless: list[PyValue] = []
    endless.append(endless)
    with pytest.raises(InvalidArgumentError, match="nested too deep"):
        to_value(endless)


def _map(*keys: PyValue) -> value_pb2.Value:
    entries = [value_pb2.MapEntry(key=to_value(key), value=to_value(0)) for key in keys]
    return value_pb2.Value(map=value_pb2.MapValue(entries=entries))


def test_maps_that_python_cannot_hold_without_loss_are_refused() -> None:
    assert from_value(_map(1, "1")) == {1: 0, "1": 0}
    with pytest.raises(ProtocolError, match="equal in Python"):
        from_value(_map(1, 1.0))
    with pytest.raises(ProtocolError, match="cannot hash"):
        from_value(_map([]))


def test_values_of_no_kind_and_tensors_of_wrong_size_are_refused() -> None:
    with pytest.raises(ProtocolError, match="nothing set"):
        from_value(value_pb2.Value())
    spec = tensor_pb2.TensorSpec(dtype=dtype_pb2.DTYPE_FLOAT32, shape=[3])
    with pytest.raises(ProtocolError, match="12 bytes"):
        from_value(value_pb2.Value(tensor=tensor_pb2.Tensor(spec=spec, data=b"12345678")))
