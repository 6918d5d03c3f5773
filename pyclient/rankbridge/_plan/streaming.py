"""Streams of a gang's operations, for the sync and the async front. No I/O."""

from __future__ import annotations

from typing import Any

from rankbridge._plan import operations as ops
from rankbridge._plan.gang_calls import Joined, joined
from rankbridge._plan.gang_core import GangCore
from rankbridge._plan.groups import Group
from rankbridge._plan.operations import group_name
from rankbridge._plan.procedures import Finish, Procedure, finishing, member_calls, members_for
from rankbridge.errors import InvalidArgumentError


def streaming(
    gang: GangCore[Any], group: str | Group, operation: str, given: Any, options: dict[str, Any]
) -> Procedure[tuple[Joined[Any], Finish]]:
    """Makes the gang call of an operation, and what makes its result of the members'.

    Raises:
        InvalidArgumentError: There is no such operation, or it is no gang call.
    """
    if options.keys() & {"group", "calls"}:
        raise InvalidArgumentError(
            "a stream is of one group, and of gang calls", expected="no group, no calls", got=str(options)
        )
    options = {**options, "group": group, "calls": "gang"}
    members = yield from members_for(gang, operation, given, options)
    build = ops.ping if operation == "ping" else ops.find_operation(operation)
    gang_call = joined(member_calls(gang, operation, build, given, members, options))
    if gang_call is None:
        raise InvalidArgumentError(
            "it does not go as a gang call",
            group=group_name(group),
            operation=operation,
            expected="a collective that is small enough, on refs of one session",
        )
    return gang_call, finishing(operation, given)
