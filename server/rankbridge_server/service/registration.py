"""How a servicer is put on a server: the descriptor of its service says what its methods take and give."""

from __future__ import annotations

from typing import Any

import grpc
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.descriptor_pool import Default
from google.protobuf.message_factory import GetMessageClass

from .operations.typed import service_name
from .refs.chunks import PARSERS, SERIALIZERS

KINDS = {
    (False, False): grpc.unary_unary_rpc_method_handler,
    (False, True): grpc.unary_stream_rpc_method_handler,
    (True, False): grpc.stream_unary_rpc_method_handler,
    (True, True): grpc.stream_stream_rpc_method_handler,
}
"""By whether a stream of requests comes, and whether a stream of responses goes."""


def register(servicer: Any, server: grpc.Server) -> str:
    """Adds a servicer, of a generated class, to a server. Returns the name of its service."""
    base = next(it for it in type(servicer).__mro__ if it.__module__.endswith("_pb2_grpc"))
    name = service_name(base)
    methods = Default().FindServiceByName(name).methods
    handlers = {method.name: _handler(method, servicer) for method in methods}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(name, handlers),))
    server.add_registered_method_handlers(name, handlers)
    return name


def _handler(method: MethodDescriptor, servicer: Any) -> Any:
    make: Any = KINDS[method.client_streaming, method.server_streaming]
    return make(
        getattr(servicer, method.name),
        PARSERS.get(method.full_name, GetMessageClass(method.input_type).FromString),
        SERIALIZERS.get(method.full_name, GetMessageClass(method.output_type).SerializeToString),
    )
