"""The collectives on values that have no dtype and shape of their own, and on maps of tensors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Unpack

import numpy as np

from rankbridge._plan.calls import Call
from rankbridge._plan.operations.collectives import ReduceOp, reduce_op
from rankbridge._plan.operations.declare import (
    CallOptions,
    Scope,
    checked_rank,
    group_call,
    operation,
    options_of,
)
from rankbridge._plan.operations.readers import value_reader
from rankbridge._plan.operations.shares import FirstArgument, given_to
from rankbridge._plan.ref import Ref
from rankbridge._plan.values import to_value
from rankbridge.errors import InvalidArgumentError
from rankbridge.v1 import object_service_pb2 as object_pb

__all__ = [
    "all_gather_object",
    "all_reduce_value",
    "broadcast_object",
    "broadcast_tensor_dict",
    "checked_list",
    "checked_tensor_dict",
    "gather_object",
    "refs_in",
    "scatter_object",
    "session_of",
]


@given_to(FirstArgument.SOURCE)
@operation
def broadcast_object(
    scope: Scope, value: object = None, *, src_rank_in_group: int = 0, **options: Unpack[CallOptions]
) -> Call[Any]:
    """Sends one member's value to all."""
    request = object_pb.BroadcastObjectRequest(
        call=options_of(scope, scope.session_id, **options),
        value=to_value(value),
        src_rank_in_group=checked_rank("src_rank_in_group", src_rank_in_group),
    )
    read = value_reader(object_pb.BroadcastObjectResponse)
    return group_call(scope, "broadcast_object", "ObjectService/BroadcastObject", request, read)


@given_to(FirstArgument.SOURCE)
@operation
def scatter_object(
    scope: Scope,
    values: Sequence[object] | None = None,
    *,
    src_rank_in_group: int = 0,
    **options: Unpack[CallOptions],
) -> Call[Any]:
    """Divides one member's values among all."""
    request = object_pb.ScatterObjectRequest(
        call=options_of(scope, scope.session_id, **options),
        values=None if values is None else to_value(checked_list("scatter_object", values)),
        src_rank_in_group=checked_rank("src_rank_in_group", src_rank_in_group),
    )
    read = value_reader(object_pb.ScatterObjectResponse)
    return group_call(scope, "scatter_object", "ObjectService/ScatterObject", request, read)


@given_to(FirstArgument.EACH)
@operation
def gather_object(
    scope: Scope, value: object, *, dst_rank_in_group: int = 0, **options: Unpack[CallOptions]
) -> Call[list[Any] | None]:
    """Collects all members' values at one of them."""
    request = object_pb.GatherObjectRequest(
        call=options_of(scope, scope.session_id, **options),
        value=to_value(value),
        dst_rank_in_group=checked_rank("dst_rank_in_group", dst_rank_in_group),
    )
    read = value_reader(object_pb.GatherObjectResponse)
    return group_call(scope, "gather_object", "ObjectService/GatherObject", request, read)


@given_to(FirstArgument.EACH)
@operation
def all_gather_object(scope: Scope, value: object, **options: Unpack[CallOptions]) -> Call[list[Any]]:
    """Collects all members' values at all of them."""
    request = object_pb.AllGatherObjectRequest(
        call=options_of(scope, scope.session_id, **options), value=to_value(value)
    )
    read = value_reader(object_pb.AllGatherObjectResponse)
    return group_call(scope, "all_gather_object", "ObjectService/AllGatherObject", request, read)


@given_to(FirstArgument.EACH)
@operation
def all_reduce_value(
    scope: Scope, value: float, *, op: ReduceOp = "sum", **options: Unpack[CallOptions]
) -> Call[Any]:
    """Reduces all members' numbers."""
    request = object_pb.AllReduceValueRequest(
        call=options_of(scope, scope.session_id, **options), value=to_value(_number(value)), op=reduce_op(op)
    )
    read = value_reader(object_pb.AllReduceValueResponse)
    return group_call(scope, "all_reduce_value", "ObjectService/AllReduceValue", request, read)


@given_to(FirstArgument.SOURCE)
@operation
def broadcast_tensor_dict(
    scope: Scope,
    tensors: Mapping[Any, Any] | None = None,
    *,
    src_rank_in_group: int = 0,
    **options: Unpack[CallOptions],
) -> Call[dict[Any, Any]]:
    """Sends one member's map of tensors to all."""
    given = None if tensors is None else checked_tensor_dict("broadcast_tensor_dict", tensors)
    request = object_pb.BroadcastTensorDictRequest(
        call=options_of(scope, session_of(scope, given), **options),
        dict=None if given is None else to_value(given),
        src_rank_in_group=checked_rank("src_rank_in_group", src_rank_in_group),
    )
    read = value_reader(object_pb.BroadcastTensorDictResponse)
    path = "ObjectService/BroadcastTensorDict"
    return group_call(scope, "broadcast_tensor_dict", path, request, read)


def checked_list(operation: str, values: object) -> list[object]:
    """Gives values as a list.

    Raises:
        InvalidArgumentError: They are neither a list nor a tuple.
    """
    if not isinstance(values, list | tuple):
        raise InvalidArgumentError(
            f"{operation} takes a list", operation=operation, expected="a list", got=type(values).__name__
        )
    return list(values)


def checked_tensor_dict(operation: str, tensors: object) -> dict[Any, Any]:
    """Gives a tensor dict as a dict.

    Raises:
        InvalidArgumentError: It is no map, or its refs are of several ranks or sessions.
    """
    if not isinstance(tensors, Mapping):
        raise InvalidArgumentError(
            f"{operation} takes a map", operation=operation, expected="a dict", got=type(tensors).__name__
        )
    given = dict(tensors)
    owners = {(ref.rank, ref.session_id) for ref in refs_in(given)}
    if len(owners) > 1:
        raise InvalidArgumentError(
            "the refs of a tensor dict are of one rank and one session",
            operation=operation,
            expected="one of each",
            got=f"ranks {sorted({rank for rank, _ in owners})}, {len({it for _, it in owners})} session(s)",
        )
    return given


def session_of(scope: Scope, value: object) -> str:
    """Gives the session in which a call with refs in a value is made: theirs, or without any the scope's."""
    return next((ref.session_id for ref in refs_in(value)), scope.session_id)


def refs_in(value: object) -> Iterator[Ref]:
    """Gives every ref in a value and in the lists, tuples and maps in it, keys aside."""
    # A container that contains itself is for `to_value` to refuse.
    waiting, seen = [value], set[int]()
    while waiting:
        found = waiting.pop()
        if isinstance(found, Ref):
            yield found
        elif isinstance(found, Mapping | list | tuple) and id(found) not in seen:
            seen.add(id(found))
            waiting.extend(found.values() if isinstance(found, Mapping) else found)


def _number(value: object) -> bool | int | float:
    number = value.item() if isinstance(value, np.generic) else value
    if not isinstance(number, bool | int | float):
        raise InvalidArgumentError(
            "all_reduce_value takes numbers",
            operation="all_reduce_value",
            expected="a bool, an int or a float",
            got=type(value).__name__,
        )
    return number
