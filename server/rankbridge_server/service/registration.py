"""How a servicer is put on a server: the descriptor of its service says what its methods take and give."""

from __future__ import annotations

from typing import Any

import grpc
from google.protobuf.descriptor import MethodDescriptor, ServiceDescriptor
from google.protobuf.message_factory import GetMessageClass

from .refs.chunks import PARSERS, SERIALIZERS

_KINDS = {
    (False, False): grpc.unary_unary_rpc_method_handler,
    (False, True): grpc.unary_stream_rpc_method_handler,
    (True, False): grpc.stream_unary_rpc_method_handler,
    (True, True): grpc.stream_stream_rpc_method_handler,
}
"""By whether a stream of requests comes, and whether a stream of responses goes."""


def register(service: ServiceDescriptor, servicer: Any, server: grpc.Server) -> None:
    """Serves `service` with the methods of `servicer`, which have the names of the RPCs."""
    handlers = {method.name: _handler(method, servicer) for method in service.methods}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service.full_name, handlers),))
    server.add_registered_method_handlers(service.full_name, handlers)


def _handler(method: MethodDescriptor, servicer: Any) -> Any:
    make: Any = _KINDS[method.client_streaming, method.server_streaming]
    return make(
        getattr(servicer, method.name),
        PARSERS.get(method.full_name, GetMessageClass(method.input_type).FromString),
        SERIALIZERS.get(method.full_name, GetMessageClass(method.output_type).SerializeToString),
    )
