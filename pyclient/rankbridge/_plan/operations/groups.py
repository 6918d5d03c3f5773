"""Making, describing and ending groups."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Unpack

from rankbridge._plan.calls import Call
from rankbridge._plan.groups import Group
from rankbridge._plan.operations.declare import (
    CallOptions,
    MemberOptions,
    Scope,
    checked_rank,
    group_call,
    operation,
    options_of,
    plain_call,
)
from rankbridge._plan.status import group_from_wire
from rankbridge.v1 import group_service_pb2


@operation
def new_group(scope: Scope, name: str, ranks: Iterable[int], **options: Unpack[CallOptions]) -> Call[Group]:
    """Makes a group."""
    request = group_service_pb2.NewGroupRequest(
        call=options_of(scope, scope.session_id, "new_group", **options),
        name=name,
        ranks=[checked_rank("a member", rank) for rank in ranks],
    )
    return group_call(scope, "new_group", request, group_from_wire)


@operation
def destroy_group(scope: Scope, group: str | Group, **options: Unpack[MemberOptions]) -> Call[Group]:
    """Ends a group."""
    call = options_of(scope, scope.session_id, "destroy_group", group=group, **options)
    request = group_service_pb2.DestroyGroupRequest(call=call)
    return group_call(scope, "destroy_group", request, group_from_wire)


@operation
def describe_group(scope: Scope, name: str) -> Call[Group]:
    """Describes one group as one rank sees it."""
    request = group_service_pb2.DescribeGroupRequest(name=name)
    return plain_call(scope, "describe_group", request, group_from_wire, group=name, brief=True)


@operation
def groups(scope: Scope) -> Call[list[Group]]:
    """Describes every group that one rank knows. Those of which it is no member may have ended."""
    request = group_service_pb2.ListGroupsRequest()
    return plain_call(
        scope, "groups", request, lambda all_: [group_from_wire(it) for it in all_.groups], brief=True
    )
