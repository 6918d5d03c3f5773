"""GroupService."""

from __future__ import annotations

import grpc

from rankbridge.v1 import group_service_pb2 as pb, group_service_pb2_grpc as stub

from .answering import OfRank, answers
from .operations.derived import DESTROY_GROUP, NEW_GROUP
from .operations.typed import method
from .wire import wire


class GroupServicer(OfRank, stub.GroupServiceServicer):
    """Groups of one rank."""

    NewGroup = method(pb.NewGroupResponse, NEW_GROUP)
    DestroyGroup = method(pb.DestroyGroupResponse, DESTROY_GROUP)

    @answers(pb.DescribeGroupResponse, "describe_group")
    def DescribeGroup(self, request: pb.DescribeGroupRequest) -> pb.Group:
        """Describes one group."""
        return wire.pack_group(self._rank.group(request.name))

    def ListGroups(
        self, request: pb.ListGroupsRequest, context: grpc.ServicerContext
    ) -> pb.ListGroupsResponse:
        """Lists all groups."""
        return pb.ListGroupsResponse(groups=[wire.pack_group(it) for it in self._rank.describe().groups])
