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
    outcome_of,
    plain_call,
)
from rankbridge._plan.status import group_from_wire
from rankbridge.v1 import group_service_pb2


@operation
def new_group(scope: Scope, name: str, ranks: Iterable[int], **options: Unpack[CallOptions]) -> Call[Group]:
    """Makes a group."""
    request = group_service_pb2.NewGroupRequest(
        call=options_of(scope, scope.session_id, **options),
        name=name,
        ranks=[checked_rank("a member", rank) for rank in ranks],
    )
    read = outcome_of(group_service_pb2.NewGroupResponse, group_from_wire)
    return group_call(scope, "new_group", "GroupService/NewGroup", request, read)


@operation
def destroy_group(scope: Scope, group: str | Group, **options: Unpack[MemberOptions]) -> Call[Group]:
    """Ends a group."""
    call = options_of(scope, scope.session_id, group=group, **options)
    request = group_service_pb2.DestroyGroupRequest(call=call)
    read = outcome_of(group_service_pb2.DestroyGroupResponse, group_from_wire)
    return group_call(scope, "destroy_group", "GroupService/DestroyGroup", request, read)


@operation
def describe_group(scope: Scope, name: str) -> Call[Group]:
    """Describes one group as one rank sees it."""
    request = group_service_pb2.DescribeGroupRequest(name=name)
    read = outcome_of(group_service_pb2.DescribeGroupResponse, group_from_wire)
    return plain_call(scope, "describe_group", "GroupService/DescribeGroup", request, read, group=name)


@operation
def groups(scope: Scope) -> Call[list[Group]]:
    """Describes every group that one rank knows. Those of which it is no member may have ended."""

    def read(data: bytes) -> list[Group]:
        listed = group_service_pb2.ListGroupsResponse.FromString(data)
        return [group_from_wire(group) for group in listed.groups]

    request = group_service_pb2.ListGroupsRequest()
    return plain_call(scope, "groups", "GroupService/ListGroups", request, read)
