"""The typed face of operations: a unary call for each, made from its declaration."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any

import grpc

from ...core.rank import Rank
from ..answering import answered, value_field
from ..pending import PendingPart
from .wire_operation import WireOperation


def servicer(
    rank: Rank, base: type[Any], messages: ModuleType, table: Mapping[str, WireOperation[Any, Any]]
) -> Any:
    """A servicer with one method for each operation of `table`. `messages`: the module of its responses."""
    names = {"".join(part.capitalize() for part in kind.split("_")): it for kind, it in table.items()}
    methods = {name: method(getattr(messages, f"{name}Response"), it) for name, it in names.items()}
    return type(base.__name__, (base,), {"_rank": rank, **methods})()


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
