"""Several collectives of one group as one operation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, Unpack

from rankbridge._plan.calls import Call
from rankbridge._plan.operations.declare import (
    CallOptions,
    MemberOptions,
    Scope,
    find_operation,
    group_call,
    operation,
    options_of,
)
from rankbridge._plan.operations.readers import one_of_each
from rankbridge._plan.ref import Ref
from rankbridge.errors import InvalidArgumentError
from rankbridge.v1 import collective_service_pb2 as collective_pb, operation_service_pb2 as operation_pb

Collective: TypeAlias = "tuple[str] | tuple[str, Any] | tuple[str, Any, Mapping[str, Any]]"
"""A collective that is one of several: its name, what its method is given (refs or a ref), its options."""

_KINDS = tuple(
    name
    for name, field in operation_pb.Operation.DESCRIPTOR.fields_by_name.items()
    if field.message_type is not None and field.message_type.file is collective_pb.DESCRIPTOR
)
"""Names of the collectives that can be coalesced."""

_OF_ALL = CallOptions.__annotations__.keys() | MemberOptions.__annotations__.keys()


@operation
def coalesce(
    scope: Scope, collectives: Sequence[Collective], **options: Unpack[CallOptions]
) -> Call[list[Any]]:
    """Does several collectives at once."""
    parts = parts_of(collectives)
    built = [
        find_operation(name)(scope, *(() if given is None else (given,)), **own) for name, given, own in parts
    ]
    sessions = {given.session_id for _, given, _ in parts if isinstance(given, Ref)} or {scope.session_id}
    if len(sessions) > 1:
        raise InvalidArgumentError(
            "refs of several sessions cannot be used together",
            operation="coalesce",
            got=str(sorted(sessions)),
        )
    request = operation_pb.CoalesceRequest(call=options_of(scope, sessions.pop(), "coalesce", **options))
    for (name, _, _), call in zip(parts, built, strict=True):
        write_part(request.operations.add(), name, call)

    return group_call(scope, "coalesce", request, one_of_each("collective", len(parts)))


def write_part(operation: operation_pb.Operation, name: str, call: Call[Any]) -> None:
    """Writes a collective's request without what is of all."""
    assert call.operation is not None, "a collective is an operation"
    operation.CopyFrom(call.operation)
    part = getattr(operation, name)
    part.ClearField("call")
    part.SetInParent()


def parts_of(collectives: object) -> list[tuple[str, Any, dict[str, Any]]]:
    """Gives of each collective its name, what it is given (None: nothing), and its options.

    Raises:
        InvalidArgumentError: There is none; one is malformed, cannot be coalesced, or has options that are of all.
    """
    if isinstance(collectives, str) or not isinstance(collectives, Sequence) or not collectives:
        raise InvalidArgumentError(
            "nothing to coalesce",
            operation="coalesce",
            expected="one collective or more",
            got=repr(collectives),
        )
    return [_part(each) for each in collectives]


def _part(collective: object) -> tuple[str, Any, dict[str, Any]]:
    match collective:
        case (str(name),):
            given, options = None, dict[str, Any]()
        case (str(name), given):
            options = {}
        case (str(name), given, Mapping() as own):
            options = dict(own)
        case _:
            raise InvalidArgumentError(
                "not a collective",
                operation="coalesce",
                expected="a tuple of its name, its refs and its options",
                got=repr(collective),
            )
    if name not in _KINDS:
        raise InvalidArgumentError(
            "this cannot be coalesced",
            operation="coalesce",
            expected=f"one of {', '.join(_KINDS)}",
            got=repr(name),
        )
    if own_call := options.keys() & _OF_ALL:
        raise InvalidArgumentError(
            "these options are of all that is coalesced, not of one",
            operation="coalesce",
            expected="them beside the list",
            got=f"{name} with {', '.join(sorted(own_call))}",
        )
    return name, given, options
