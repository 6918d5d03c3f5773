"""Calls that the audit notes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import grpc

from ..core.audit import Audit
from ..core.tokens import Caller, Role
from .guests import Handler, behaviour_of, with_behaviour

_USER = Caller("user of the ranks", Role.OWN)


class Audited(grpc.ServerInterceptor):
    """Notes the callers on unix sockets, whom nobody asks for a token. gRPC does not tell one from another."""

    def __init__(self, audit: Audit) -> None:
        self._audit = audit

    def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Handler | None],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Handler | None:
        """Gives a handler that notes its caller first."""
        handler = continuation(handler_call_details)
        return handler if handler is None else audited(self._audit, _USER, handler)


def audited(audit: Audit, caller: Caller, handler: Handler) -> Handler:
    """The same handler; it notes its caller first."""
    behaviour = behaviour_of(handler)

    def serve(request: Any, context: grpc.ServicerContext) -> Any:
        audit.admitted(context.peer(), caller.name, caller.role.name.lower())
        return behaviour(request, context)

    return with_behaviour(handler, serve)
