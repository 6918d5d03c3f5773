"""Services with one typed call for each operation of a table."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any

import grpc

from ...core.rank import Rank
from ..running import answered, run
from ..wire import values
from .wire_operation import WireOperation


def servicer(
    rank: Rank, base: type[Any], messages: ModuleType, table: Mapping[str, WireOperation[Any, Any]]
) -> Any:
    """A servicer with one method for each operation of `table`. `messages`: the module of its responses."""
    methods = {rpc_name(kind): method(rank, messages, kind, it) for kind, it in table.items()}
    return type(base.__name__, (base,), methods)()


def method(rank: Rank, messages: ModuleType, kind: str, operation: WireOperation[Any, Any]) -> Any:
    """The method of one operation."""
    response = getattr(messages, f"{rpc_name(kind)}Response")

    def call(self: object, request: Any, context: grpc.ServicerContext) -> Any:
        return answered(
            rank,
            operation.core.name,
            lambda: response(value=values.pack_value(run(rank, operation, request, context))),
            lambda error: response(error=error),
        )

    return call


def rpc_name(kind: str) -> str:
    """The RPC of an operation: "AllReduce" for "all_reduce"."""
    return "".join(part.capitalize() for part in kind.split("_"))
