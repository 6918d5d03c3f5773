"""Who may call what over TCP: a token for each role, checked before a request is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import grpc
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection

from rankbridge.v1 import options_pb2

from ..core.audit import Audit
from ..core.rank import Rank
from ..core.tokens import NOBODY, Caller, Role, Tokens
from .audited import audited
from .guests import Handler, behaviour_of, serve_guest, with_behaviour, with_parser
from .refusing import Refusing

# The names in a client's certificate: those of SANs, among them SPIFFE ids, and the common name.
_NAMES = ("x509_subject_alternative_name", "x509_common_name")
_HEADER = "authorization"
_SCHEME = "Bearer "
_NO_TOKEN = (
    "no token: clients read it from the endpoints file, or from the file that RANKBRIDGE_TOKEN_FILE names"
)
_WRONG_TOKEN = "this token is none of the gang's: has the gang been started anew?"

Metadata: TypeAlias = "tuple[tuple[str, str], ...] | None"


def bearing(token: str) -> Metadata:
    """What goes along with a call to show a token."""
    return ((_HEADER, _SCHEME + token),)


class Gate(grpc.ServerInterceptor):
    """Lets a call in whose caller has the role that its method needs.

    Callers show a token. Where `certificates` says which names have which role, those without a token are who their
    certificate says. `needed`: the role by method, "/package.Service/Method". What is not there needs OWN.
    """

    def __init__(
        self,
        rank: Rank,
        tokens: Callable[[], Tokens],
        needed: Mapping[str, Role],
        certificates: Mapping[str, Role],
        refusing: Refusing,
        audit: Audit | None,
    ) -> None:
        self._rank = rank
        self._tokens = tokens
        self._needed = needed
        self._certificates = certificates
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
        shown = _shown(handler_call_details.invocation_metadata)
        caller = NOBODY if shown is None else self._tokens().caller_of(shown)
        by_certificate = shown is None and bool(self._certificates)
        if caller.role >= needed or by_certificate:
            handler = continuation(handler_call_details)
            if handler is None or needed is Role.ANYONE:
                return handler
            if by_certificate:
                return self._by_certificate(method, needed, handler)
            return self._served(caller, method, handler)
        unknown = _NO_TOKEN if shown is None else _WRONG_TOKEN
        return self._refusing.handler(method, needed, caller, unknown)

    def _served(self, caller: Caller, method: str, handler: Handler) -> Handler:
        if caller.role < Role.OWN:
            handler = serve_guest(self._rank, caller.name, method, handler)
        return handler if self._audit is None else audited(self._audit, caller, handler)

    def _by_certificate(self, method: str, needed: Role, handler: Handler) -> Handler:
        """A handler that knows its caller when the call has begun; until then it parses nothing."""
        parse: Callable[[bytes], Any] = handler.request_deserializer or _as_it_is

        def serve(request: Any, context: grpc.ServicerContext) -> Any:
            caller = self._certified(context.auth_context())
            if caller.role < needed:
                self._refusing.refuse(context, method, needed, caller, _NO_TOKEN)
            sent = map(parse, request) if handler.request_streaming else parse(request)
            return behaviour_of(self._served(caller, method, handler))(sent, context)

        return with_behaviour(with_parser(handler, None), serve)

    def _certified(self, certificate: Mapping[str, Any]) -> Caller:
        names = {name.decode(errors="replace") for key in _NAMES for name in certificate.get(key, ())}
        found = [Caller(name, self._certificates[name]) for name in sorted(names & self._certificates.keys())]
        return max(found, key=lambda it: it.role, default=NOBODY)


def _shown(metadata: Any) -> str | None:
    for key, value in metadata:
        if key == _HEADER and isinstance(value, str):
            return value.removeprefix(_SCHEME)
    return None


def _as_it_is(request: bytes) -> bytes:
    return request


def roles_of(services: Any) -> dict[str, Role]:
    """The role that each method of some services needs, as the proto says; health's plain answer is for anyone."""
    needed = {
        f"/{service.full_name}/{method.name}": Role(method.GetOptions().Extensions[options_pb2.role])
        for service in services
        for method in service.methods
    }
    health = f"/{health_pb2.DESCRIPTOR.services_by_name['Health'].full_name}"
    return {
        **needed,
        f"{health}/Check": Role.ANYONE,
        f"{health}/Watch": Role.OBSERVE,
        f"/{reflection.SERVICE_NAME}/ServerReflectionInfo": Role.OBSERVE,
        # Asked first by newer clients, which go on with the other when it is not there.
        "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo": Role.OBSERVE,
    }
