"""Callers that may look, and do nothing else, because of the socket at which they call."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import grpc

from ..core.audit import Audit
from ..core.tokens import Caller, Role
from .audited import audited
from .guests import Handler
from .refusing import Refusing

_OBSERVER = Caller("observer", Role.OBSERVE)


class Observing(grpc.ServerInterceptor):
    """Lets a call in that needs no more than to observe. `needed`: the role by method; what is not there needs OWN."""

    def __init__(self, needed: Mapping[str, Role], refusing: Refusing, audit: Audit | None) -> None:
        self._needed = needed
        self._refusing = refusing
        self._audit = audit

    def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Handler | None],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Handler | None:
        """Gives the method's handler, or one that refuses without reading what was sent."""
        method = handler_call_details.method
        needed = self._needed.get(method, Role.OWN)
        if needed > Role.OBSERVE:
            return self._refusing.handler(method, needed, _OBSERVER, "")
        handler = continuation(handler_call_details)
        return handler if handler is None or self._audit is None else audited(self._audit, _OBSERVER, handler)
