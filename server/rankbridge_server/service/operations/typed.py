"""The typed face of operations: a unary call for each, made from its declaration."""

from __future__ import annotations

from typing import Any

import grpc
from google.protobuf.descriptor import ServiceDescriptor
from google.protobuf.message_factory import GetMessageClass

from ...core.rank import Rank
from ..answering import answered, value_field
from ..pending import PendingPart
from .table import OPERATIONS
from .wire_operation import WireOperation


def servicer(rank: Rank, service: ServiceDescriptor) -> Any:
    """The servicer of a service whose methods all have the name of an operation."""
    names = {"".join(part.capitalize() for part in kind.split("_")): it for kind, it in OPERATIONS.items()}
    methods = {it.name: method(GetMessageClass(it.output_type), names[it.name]) for it in service.methods}
    return type(service.name, (), {"_rank": rank, **methods})()


def method(response: type[Any], operation: WireOperation[Any, Any]) -> Any:
    """The method of one operation, for a servicer that keeps its rank as `_rank`."""
    value = value_field(response)

    def call(self: Any, request: Any, context: grpc.ServicerContext) -> Any:
        pending = PendingPart(self._rank, operation, request)
        pending.withdraw_with(context)
        return answered(
            self._rank,
            pending.name,
            lambda: response(**{value: operation.pack(pending.outcome())}),
            lambda error: response(error=error),
        )

    return call
