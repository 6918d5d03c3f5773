"""Calls that their callers may not make."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NoReturn

import grpc

from ..core.audit import Audit
from ..core.logger import LOGGER
from ..core.tokens import NOBODY, Caller, Role
from .guests import Handler


class Refusing:
    """Refuses calls on one rank, and notes that in its log and its audit."""

    def __init__(self, rank: int, audit: Audit | None) -> None:
        self._rank = rank
        self._audit = audit

    def handler(self, method: str, needed: Role, caller: Caller, unknown: str) -> Handler:
        """A handler that refuses without reading what was sent. `unknown`: as of `refuse`."""

        def refuse(requests: Iterator[Any], context: grpc.ServicerContext) -> NoReturn:
            self.refuse(context, method, needed, caller, unknown)

        # A handler of streams is called before anything is read.
        return grpc.stream_stream_rpc_method_handler(refuse)

    def refuse(
        self, context: grpc.ServicerContext, method: str, needed: Role, caller: Caller, unknown: str
    ) -> NoReturn:
        """Ends a call. `unknown`: the message for a caller that nobody knows."""
        code, why = grpc.StatusCode.UNAUTHENTICATED, unknown
        if caller is not NOBODY:
            code = grpc.StatusCode.PERMISSION_DENIED
            why = f"the caller may {caller.role.name.lower()}; the call needs {needed.name.lower()}"
        peer = context.peer()
        if self._audit is not None:
            self._audit.refused(peer, method, why)
        extra = {"rank": self._rank, "event": "refused"}
        LOGGER.warning("%s from %s is refused: %s", method, peer, why, extra=extra)
        context.abort(code, why)
