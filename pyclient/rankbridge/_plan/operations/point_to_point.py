"""What one member of a group sends to another."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias, Unpack

from rankbridge._plan.calls import Call
from rankbridge._plan.dtypes import dtype_of
from rankbridge._plan.operations.declare import (
    CallOptions,
    Scope,
    checked_rank,
    group_call,
    operation,
    options_of,
    outcome_of,
)
from rankbridge._plan.operations.objects import checked_tensor_dict, session_of
from rankbridge._plan.operations.readers import none_reader, value_with_source
from rankbridge._plan.operations.shares import FirstArgument, given_to
from rankbridge._plan.ref import Ref, spec_to_wire
from rankbridge._plan.tensor import checked_shape
from rankbridge._plan.values import to_value
from rankbridge.errors import InvalidArgumentError
from rankbridge.v1 import point_to_point_service_pb2 as pb
from rankbridge.v1 import tensor_pb2

__all__ = [
    "Expected",
    "recv",
    "recv_object",
    "recv_tensor_dict",
    "send",
    "send_object",
    "send_tensor_dict",
]

Expected: TypeAlias = "Ref | tuple[object, Iterable[int] | int]"
"""What a receive expects: a ref that takes what comes, or dtype and shape."""


@given_to(FirstArgument.NEVER)
@operation
def send(
    scope: Scope, ref: Ref, *, dst_rank_in_group: int, tag: int = 0, **options: Unpack[CallOptions]
) -> Call[None]:
    """Sends a tensor to one member."""
    request = pb.SendRequest(
        call=options_of(scope, ref.session_id, **options),
        ref_id=ref.id,
        dst_rank_in_group=checked_rank("dst_rank_in_group", dst_rank_in_group),
        tag=_tag(tag),
    )
    return group_call(scope, "send", "PointToPointService/Send", request, none_reader(pb.SendResponse))


@given_to(FirstArgument.NEVER)
@operation
def recv(
    scope: Scope,
    *,
    src_rank_in_group: int | None = None,
    tag: int = 0,
    expected: Expected | None = None,
    **options: Unpack[CallOptions],
) -> Call[tuple[Ref, int]]:
    """Receives a tensor."""
    session_id = expected.session_id if isinstance(expected, Ref) else scope.session_id
    request = pb.RecvRequest(
        call=options_of(scope, session_id, **options),
        src_rank_in_group=_source(src_rank_in_group),
        tag=_tag(tag),
    )
    if isinstance(expected, Ref):
        request.ref_id = expected.id
    elif expected is not None:
        request.tensor.CopyFrom(_spec(expected))
    read = outcome_of(pb.RecvResponse, value_with_source)
    return group_call(scope, "recv", "PointToPointService/Recv", request, read)


@given_to(FirstArgument.NEVER)
@operation
def send_object(
    scope: Scope, value: object, *, dst_rank_in_group: int, tag: int = 0, **options: Unpack[CallOptions]
) -> Call[None]:
    """Sends a value to one member."""
    request = pb.SendObjectRequest(
        call=options_of(scope, scope.session_id, **options),
        value=to_value(value),
        dst_rank_in_group=checked_rank("dst_rank_in_group", dst_rank_in_group),
        tag=_tag(tag),
    )
    read = none_reader(pb.SendObjectResponse)
    return group_call(scope, "send_object", "PointToPointService/SendObject", request, read)


@given_to(FirstArgument.NEVER)
@operation
def recv_object(
    scope: Scope, *, src_rank_in_group: int | None = None, tag: int = 0, **options: Unpack[CallOptions]
) -> Call[tuple[Any, int]]:
    """Receives a value."""
    request = pb.RecvObjectRequest(
        call=options_of(scope, scope.session_id, **options),
        src_rank_in_group=_source(src_rank_in_group),
        tag=_tag(tag),
    )
    read = outcome_of(pb.RecvObjectResponse, value_with_source)
    return group_call(scope, "recv_object", "PointToPointService/RecvObject", request, read)


@given_to(FirstArgument.NEVER)
@operation
def send_tensor_dict(
    scope: Scope,
    tensors: Mapping[Any, Any],
    *,
    dst_rank_in_group: int,
    tag: int = 0,
    **options: Unpack[CallOptions],
) -> Call[None]:
    """Sends a map of tensors to one member."""
    given = checked_tensor_dict("send_tensor_dict", tensors)
    request = pb.SendTensorDictRequest(
        call=options_of(scope, session_of(scope, given), **options),
        dict=to_value(given),
        dst_rank_in_group=checked_rank("dst_rank_in_group", dst_rank_in_group),
        tag=_tag(tag),
    )
    read = none_reader(pb.SendTensorDictResponse)
    return group_call(scope, "send_tensor_dict", "PointToPointService/SendTensorDict", request, read)


@given_to(FirstArgument.NEVER)
@operation
def recv_tensor_dict(
    scope: Scope, *, src_rank_in_group: int | None = None, tag: int = 0, **options: Unpack[CallOptions]
) -> Call[tuple[dict[Any, Any], int]]:
    """Receives a map of tensors."""
    request = pb.RecvTensorDictRequest(
        call=options_of(scope, scope.session_id, **options),
        src_rank_in_group=_source(src_rank_in_group),
        tag=_tag(tag),
    )
    read = outcome_of(pb.RecvTensorDictResponse, value_with_source)
    return group_call(scope, "recv_tensor_dict", "PointToPointService/RecvTensorDict", request, read)


def _source(rank: int | None) -> int | None:
    return None if rank is None else checked_rank("src_rank_in_group", rank)


def _tag(tag: int) -> int:
    if not 0 <= tag < 2**32:
        raise InvalidArgumentError("not a tag", expected="0 to 2**32 - 1", got=str(tag))
    return tag


def _spec(expected: object) -> tensor_pb2.TensorSpec:
    if not (isinstance(expected, tuple) and len(expected) == 2):
        raise InvalidArgumentError(
            "not what a receive can expect",
            operation="recv",
            expected="a ref, or a pair of dtype and shape",
            got=repr(expected),
        )
    dtype, shape = expected
    return spec_to_wire(dtype_of(dtype).name, checked_shape(shape))
