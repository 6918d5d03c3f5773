"""GroupService."""

from __future__ import annotations

from typing import Any

import grpc

from rankbridge.v1 import group_service_pb2 as pb
from rankbridge.v1 import group_service_pb2_grpc as stub

from ..core.groups.group import GroupView
from ..core.rank import Rank
from .operations.table import DESTROY_GROUP, NEW_GROUP
from .operations.wire_operation import WireOperation
from .running import answered, run
from .wire import wire


class GroupServicer(stub.GroupServiceServicer):
    """Groups of one rank."""

    def __init__(self, rank: Rank) -> None:
        self._rank = rank

    def NewGroup(self, request: pb.NewGroupRequest, context: grpc.ServicerContext) -> pb.NewGroupResponse:
        """Make a group, together with the other ranks."""
        return answered(
            self._rank,
            "new_group",
            lambda: pb.NewGroupResponse(group=self._run(NEW_GROUP, request, context)),
            lambda error: pb.NewGroupResponse(error=error),
        )

    def DescribeGroup(
        self, request: pb.DescribeGroupRequest, context: grpc.ServicerContext
    ) -> pb.DescribeGroupResponse:
        """Tell of one group."""
        return answered(
            self._rank,
            "describe_group",
            lambda: pb.DescribeGroupResponse(group=wire.pack_group(self._rank.group(request.name))),
            lambda error: pb.DescribeGroupResponse(error=error),
        )

    def ListGroups(
        self, request: pb.ListGroupsRequest, context: grpc.ServicerContext
    ) -> pb.ListGroupsResponse:
        """Tell of all groups."""
        return pb.ListGroupsResponse(groups=[wire.pack_group(it) for it in self._rank.describe().groups])

    def DestroyGroup(
        self, request: pb.DestroyGroupRequest, context: grpc.ServicerContext
    ) -> pb.DestroyGroupResponse:
        """End a group, together with its other members."""
        return answered(
            self._rank,
            "destroy_group",
            lambda: pb.DestroyGroupResponse(group=self._run(DESTROY_GROUP, request, context)),
            lambda error: pb.DestroyGroupResponse(error=error),
        )

    def _run(
        self, operation: WireOperation[Any, Any], request: Any, context: grpc.ServicerContext
    ) -> pb.Group:
        outcome = run(self._rank, operation, request, context)
        if not isinstance(outcome, GroupView):
            raise TypeError(f"{operation.core.name} gives a group, not {outcome!r}")
        return wire.pack_group(outcome)
