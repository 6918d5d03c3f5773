"""CollectiveService."""

from __future__ import annotations

from typing import Any

import grpc

from rankbridge.v1 import collective_service_pb2 as pb
from rankbridge.v1 import collective_service_pb2_grpc as stub

from ..core.rank import Rank
from . import wire
from .operations import COLLECTIVES, WireOperation, rpc_name
from .running import answered, run


def servicer(rank: Rank) -> stub.CollectiveServiceServicer:
    """A servicer with one method for each operation of the table."""
    methods = {rpc_name(kind): _method(rank, rpc_name(kind), it) for kind, it in COLLECTIVES.items()}
    kind: type[stub.CollectiveServiceServicer] = type(
        "CollectiveServicer", (stub.CollectiveServiceServicer,), methods
    )
    return kind()


def _method(rank: Rank, rpc: str, operation: WireOperation[Any, Any]) -> Any:
    response = getattr(pb, f"{rpc}Response")

    def method(self: object, request: Any, context: grpc.ServicerContext) -> Any:
        return answered(
            rank,
            operation.core.name,
            lambda: response(value=wire.pack_value(run(rank, operation, request, context))),
            lambda error: response(error=error),
        )

    return method
