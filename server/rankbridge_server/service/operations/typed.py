"""The typed face of operations: a unary call for each, made from its declaration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import grpc
from google.protobuf.descriptor_pool import Default
from google.protobuf.message_factory import GetMessageClass

from ...core.rank import Rank
from ..answering import answered, value_field
from ..pending import PendingPart
from .wire_operation import WireOperation


def servicer(rank: Rank, base: type[Any], table: Mapping[str, WireOperation[Any, Any]]) -> Any:
    """A servicer of the generated class `base` with one method for each operation of `table`."""
    names = {"".join(part.capitalize() for part in kind.split("_")): it for kind, it in table.items()}
    service = Default().FindServiceByName(service_name(base))
    methods = {
        name: method(GetMessageClass(service.methods_by_name[name].output_type), it)
        for name, it in names.items()
    }
    return type(base.__name__, (base,), {"_rank": rank, **methods})()


def service_name(base: type[Any]) -> str:
    """The full name of the service of a generated servicer class."""
    return f"rankbridge.v1.{base.__name__.removesuffix('Servicer')}"


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
