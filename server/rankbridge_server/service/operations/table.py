"""Every operation as it comes over the wire, by its field in the `Operation` message.

Tables with a line for each: `collectives.py`, `objects.py`, `point_to_point.py`, `queues.py`.
"""

from __future__ import annotations

from typing import Any

from rankbridge.v1 import group_service_pb2 as group
from rankbridge.v1 import operation_service_pb2 as pb
from rankbridge.v1 import options_pb2

from ...core.operations import table as core
from ..wire import wire
from .collectives import COLLECTIVES
from .objects import OBJECTS
from .point_to_point import POINT_TO_POINT
from .programs import COALESCE, REPLAY, RUN_PROGRAM
from .queues import QUEUES
from .wire_operation import WireOperation

NEW_GROUP: WireOperation[group.NewGroupRequest, core.NewGroup] = WireOperation(
    core.NEW_GROUP, lambda r: core.NewGroup(r.name, tuple(r.ranks)), wire.pack_group
)
DESTROY_GROUP: WireOperation[group.DestroyGroupRequest, core.DestroyGroup] = WireOperation(
    core.DESTROY_GROUP, lambda _: core.DestroyGroup(), wire.pack_group
)


PING: WireOperation[pb.PingRequest, core.Ping] = WireOperation(core.PING, lambda _: core.Ping())

OPERATIONS: dict[str, WireOperation[Any, Any]] = {
    **COLLECTIVES,
    **OBJECTS,
    **POINT_TO_POINT,
    **QUEUES,
    "coalesce": COALESCE,
    "run_program": RUN_PROGRAM,
    "replay": REPLAY,
    "ping": PING,
}
"""All that can be submitted."""


def _is_gang_call(kind: str) -> bool:
    options = getattr(pb.Operation(), kind).DESCRIPTOR.GetOptions()
    return bool(options.Extensions[options_pb2.operation].gang_call)


GANG_OPERATIONS = [kind for kind in OPERATIONS if _is_gang_call(kind)]
"""Those in which all members of a group take part, as the proto says: what a gang call can be."""
