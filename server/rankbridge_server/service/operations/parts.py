"""Collectives that are parts of one operation."""

from __future__ import annotations

from typing import Any

from rankbridge.v1 import call_pb2
from rankbridge.v1 import operation_service_pb2 as pb

from ...core.errors import invalid
from ...core.operations import table as core
from .collectives import COLLECTIVES


def part(where: str, operation: pb.Operation) -> tuple[core.Operation[Any], Any]:
    """A collective and its arguments. `where` it is: "operation 3". Raises INVALID_ARGUMENT for all others."""
    kind = operation.WhichOneof("kind")
    if kind not in COLLECTIVES:
        raise invalid(
            f"{where} cannot be a part of another operation",
            expected="one of " + ", ".join(COLLECTIVES),
            got=kind or "none",
        )
    request = getattr(operation, kind)
    if request.HasField("call") and request.call != call_pb2.Call():
        raise invalid(f"{where} has a call of its own", expected="the call of all", got=str(request.call))
    return COLLECTIVES[kind].core, COLLECTIVES[kind].args(request)
