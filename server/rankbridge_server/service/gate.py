"""Who may call what over TCP: a token for each role, checked before a request is read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NoReturn, TypeAlias

import grpc
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection

from rankbridge.v1 import options_pb2

from ..core.tokens import Role, Tokens

_HEADER = "authorization"
_SCHEME = "Bearer "

Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"
Metadata: TypeAlias = "tuple[tuple[str, str], ...] | None"


def bearing(token: str) -> Metadata:
    """What goes along with a call to show a token."""
    return ((_HEADER, _SCHEME + token),)


class Gate(grpc.ServerInterceptor):
    """Lets a call in whose caller has the role that its method needs.

    `needed`: the role by method, "/package.Service/Method". What is not there needs OWN.
    """

    def __init__(self, tokens: Tokens, needed: Mapping[str, Role]) -> None:
        self._tokens = tokens
        self._needed = needed

    def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Handler | None],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Handler | None:
        """Gives the method's handler, or one that refuses without reading what was sent."""
        needed = self._needed.get(handler_call_details.method, Role.OWN)
        if needed is Role.ANYONE:
            return continuation(handler_call_details)
        shown = _shown(handler_call_details.invocation_metadata)
        role = Role.ANYONE if shown is None else self._tokens.role_of(shown)
        if role >= needed:
            return continuation(handler_call_details)
        if role is Role.ANYONE:
            return _REFUSED_NO_TOKEN if shown is None else _REFUSED_WRONG_TOKEN
        return _refusing(
            grpc.StatusCode.PERMISSION_DENIED,
            f"this token is for {role.name.lower()}; the call needs {needed.name.lower()}",
        )


def _shown(metadata: Any) -> str | None:
    for key, value in metadata:
        if key == _HEADER and isinstance(value, str):
            return value.removeprefix(_SCHEME)
    return None


def _refusing(code: grpc.StatusCode, why: str) -> Handler:
    def refuse(requests: Iterator[Any], context: grpc.ServicerContext) -> NoReturn:
        context.abort(code, why)

    # A handler of streams is called before anything is read.
    return grpc.stream_stream_rpc_method_handler(refuse)


_REFUSED_NO_TOKEN = _refusing(
    grpc.StatusCode.UNAUTHENTICATED,
    "no token: clients read it from the endpoints file, or from the file that RANKBRIDGE_TOKEN_FILE names",
)
_REFUSED_WRONG_TOKEN = _refusing(
    grpc.StatusCode.UNAUTHENTICATED, "this token is none of the gang's: has the gang been started anew?"
)


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
