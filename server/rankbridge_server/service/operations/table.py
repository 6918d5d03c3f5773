"""Every operation as it comes over the wire, by its field in the `Operation` message."""

from __future__ import annotations

from typing import Any

from rankbridge.v1 import operation_service_pb2 as pb, options_pb2

from .derived import COLLECTIVES, OBJECTS, PING, POINT_TO_POINT, QUEUES
from .functions import CALL_FUNCTION
from .programs import COALESCE, REPLAY, RUN_PROGRAM
from .wire_operation import WireOperation

OPERATIONS: dict[str, WireOperation[Any, Any]] = {
    **COLLECTIVES,
    **OBJECTS,
    **POINT_TO_POINT,
    **QUEUES,
    "coalesce": COALESCE,
    "run_program": RUN_PROGRAM,
    "replay": REPLAY,
    "ping": PING,
    "call_function": CALL_FUNCTION,
}
"""All that can be submitted."""


def _is_gang_call(kind: str) -> bool:
    options = getattr(pb.Operation(), kind).DESCRIPTOR.GetOptions()
    return bool(options.Extensions[options_pb2.operation].gang_call)


GANG_OPERATIONS = [kind for kind in OPERATIONS if _is_gang_call(kind)]
"""Those in which all members of a group take part, as the proto says: what a gang call can be."""
