"""Passes calls on to a rank, as bytes: whatever they are, they stay as they are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import grpc

_OWN = ("grpc-", ":", "user-agent", "content-type", "te")
"""Beginnings of the names of metadata that belong to one connection."""
_FOREVER_S = 1e8
_OPTIONS = [
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    # Another process of the rank may be there soon.
    ("grpc.initial_reconnect_backoff_ms", 50),
    ("grpc.max_reconnect_backoff_ms", 500),
    ("grpc.min_reconnect_backoff_ms", 50),
]


class Passing:
    """The way to a rank's own socket. `target`: for gRPC."""

    def __init__(self, target: str) -> None:
        self._channel = grpc.insecure_channel(target, options=_OPTIONS)

    def ask(self, method: str, request: bytes, timeout_s: float) -> bytes:
        """The answer to one call. Raises grpc.RpcError."""
        call: grpc.UnaryUnaryMultiCallable[bytes, bytes] = self._channel.unary_unary(method)
        return call(request, timeout=timeout_s)

    def handler(self, method: str) -> grpc.RpcMethodHandler[Any, Any]:
        """A handler that passes a call on. Every kind of call is a stream each way, of one message or of more."""

        def answer(requests: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
            metadata = tuple(it for it in context.invocation_metadata() if not it[0].startswith(_OWN))
            begin: grpc.StreamStreamMultiCallable[bytes, bytes] = self._channel.stream_stream(method)
            left = context.time_remaining()
            # Of a call without a deadline gRPC gives one that is too far to be told again.
            timeout = None if left is None or left > _FOREVER_S else left
            call: Any = begin(requests, timeout=timeout, metadata=metadata)
            if not context.add_callback(call.cancel):
                call.cancel()
            try:
                yield from call
            except grpc.RpcError as error:
                context.abort(error.code(), error.details() or "")

        return grpc.stream_stream_rpc_method_handler(answer)

    def close(self) -> None:
        """Hangs up."""
        self._channel.close()
