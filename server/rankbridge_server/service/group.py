"""GroupService."""

from __future__ import annotations

import grpc

from rankbridge.v1 import group_service_pb2 as pb
from rankbridge.v1 import group_service_pb2_grpc as stub

from ..core.rank import Rank
from .answering import answers
from .operations.derived import DESTROY_GROUP, NEW_GROUP
from .operations.typed import method
from .wire import wire


class GroupServicer(stub.GroupServiceServicer):
    """Groups of one rank."""

    NewGroup = method(pb.NewGroupResponse, NEW_GROUP)
    DestroyGroup = method(pb.DestroyGroupResponse, DESTROY_GROUP)

    def __init__(self, rank: Rank) -> None:
        self._rank = rank

    @answers(pb.DescribeGroupResponse, "describe_group")
    def DescribeGroup(self, request: pb.DescribeGroupRequest) -> pb.Group:
        """Describes one group."""
        return wire.pack_group(self._rank.group(request.name))

    def ListGroups(
        self, request: pb.ListGroupsRequest, context: grpc.ServicerContext
    ) -> pb.ListGroupsResponse:
        """Lists all groups."""
        return pb.ListGroupsResponse(groups=[wire.pack_group(it) for it in self._rank.describe().groups])
