"""A gRPC server for the transport's tests: bytes in, bytes out, no protobuf.

Usage: grpc_server.py '{"address": "127.0.0.1:0", "workers": 16, "options": {...}, "tls": {...}}'

Prints `port N` once it listens, then one line for every event that a test may wait for. Reads commands
from stdin (`stop GRACE_SECONDS`), and ends itself when stdin closes.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Iterator
from concurrent import futures

import grpc

Context = grpc.ServicerContext

_print_lock = threading.Lock()
_gathered = threading.Condition()
_arrived = 0
_sent_bytes = 0


def say(*words: object) -> None:
    with _print_lock:
        print(*words, flush=True)


def echo(request: bytes, context: Context) -> bytes:
    return request


def upload(request: bytes, context: Context) -> bytes:
    return str(len(request)).encode()


def download(request: bytes, context: Context) -> bytes:
    return b"x" * int(request)


def gather(request: bytes, context: Context) -> bytes:
    """Answers once as many calls as the request says are here at the same time."""
    global _arrived
    with _gathered:
        _arrived += 1
        _gathered.notify_all()
        _gathered.wait_for(lambda: _arrived >= int(request))
    return request


def fail(request: bytes, context: Context) -> bytes:
    wish = json.loads(request)
    context.set_trailing_metadata((("reason", "asked to"), ("detail-bin", bytes(range(256)))))
    context.abort(getattr(grpc.StatusCode, wish["code"]), wish["message"])


def fail_after_one(request: bytes, context: Context) -> Iterator[bytes]:
    yield request
    context.abort(grpc.StatusCode.ABORTED, "after one")


def metadata(request: bytes, context: Context) -> bytes:
    seen = [[k, v.hex() if isinstance(v, bytes) else v] for k, v in context.invocation_metadata()]
    return json.dumps({"metadata": seen, "remaining": context.time_remaining()}).encode()


def hang(request: bytes, context: Context) -> bytes:
    """Says when it begins, and when its caller is gone. Never answers before that."""
    over = threading.Event()
    context.add_callback(over.set)
    say("hanging", request.decode())
    over.wait()
    say("cancelled", request.decode())
    return b""


def hang_until_told(request: bytes, context: Context) -> bytes:
    """Answers when the test says `release` on stdin."""
    say("waiting", request.decode())
    _release.wait()
    return request


def compressed(request: bytes, context: Context) -> bytes:
    context.set_compression(grpc.Compression.Gzip)
    return b"z" * int(request)


def stream(request: bytes, context: Context) -> Iterator[bytes]:
    """Yields `count` messages of `size` bytes, each of which begins with its number."""
    global _sent_bytes
    wish = json.loads(request)
    _sent_bytes = 0
    context.add_callback(lambda: say("stream over", wish.get("name", "")))
    for number in range(wish["count"]):
        yield number.to_bytes(8, "big") + bytes(wish["size"] - 8)
        _sent_bytes += wish["size"]


def sent_bytes(request: bytes, context: Context) -> bytes:
    return str(_sent_bytes).encode()


def count(requests: Iterator[bytes], context: Context) -> bytes:
    sizes = [len(request) for request in requests]
    return json.dumps({"messages": len(sizes), "bytes": sum(sizes)}).encode()


def first_only(requests: Iterator[bytes], context: Context) -> bytes:
    return next(requests)


def read_none(requests: Iterator[bytes], context: Context) -> bytes:
    over = threading.Event()
    context.add_callback(over.set)
    over.wait()
    return b""


def chat(requests: Iterator[bytes], context: Context) -> Iterator[bytes]:
    for request in requests:
        yield b"re: " + request
    say("half closed")


_UNARY = {
    "Echo": echo,
    "Upload": upload,
    "Download": download,
    "Gather": gather,
    "Fail": fail,
    "Metadata": metadata,
    "Hang": hang,
    "HangUntilTold": hang_until_told,
    "Compressed": compressed,
    "SentBytes": sent_bytes,
}
_release = threading.Event()


def handlers() -> grpc.GenericRpcHandler:
    methods: dict[str, grpc.RpcMethodHandler[bytes, bytes]] = {
        name: grpc.unary_unary_rpc_method_handler(fun) for name, fun in _UNARY.items()
    }
    methods["Stream"] = grpc.unary_stream_rpc_method_handler(stream)
    methods["FailAfterOne"] = grpc.unary_stream_rpc_method_handler(fail_after_one)
    methods["Count"] = grpc.stream_unary_rpc_method_handler(count)
    methods["FirstOnly"] = grpc.stream_unary_rpc_method_handler(first_only)
    methods["ReadNone"] = grpc.stream_unary_rpc_method_handler(read_none)
    methods["Chat"] = grpc.stream_stream_rpc_method_handler(chat)
    return grpc.method_handlers_generic_handler("test.Test", methods)


def read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def say_when_stopped(stopped: threading.Event) -> None:
    stopped.wait()
    say("stopped")


def main() -> None:
    config = json.loads(sys.argv[1])
    options = {
        "grpc.max_receive_message_length": -1,
        "grpc.max_send_message_length": -1,
        "grpc.so_reuseport": 0,
        **config.get("options", {}),
    }
    pool = futures.ThreadPoolExecutor(max_workers=config.get("workers", 16))
    server = grpc.server(pool, options=list(options.items()))
    server.add_generic_rpc_handlers((handlers(),))
    tls = config.get("tls")
    if tls:
        client_ca = tls.get("client_ca")
        credentials = grpc.ssl_server_credentials(
            [(read(tls["key"]), read(tls["cert"]))],
            root_certificates=read(client_ca) if client_ca else None,
            require_client_auth=client_ca is not None,
        )
        port = server.add_secure_port(config["address"], credentials)
    else:
        port = server.add_insecure_port(config["address"])
    server.start()
    say("port", port)
    for line in sys.stdin:
        match line.split():
            case ["stop", grace]:
                stopped = server.stop(float(grace))
                say("stopping")
                threading.Thread(target=say_when_stopped, args=(stopped,), daemon=True).start()
            case ["release"]:
                _release.set()
            case _:
                raise ValueError(f"unknown command: {line!r}")
    os._exit(0)


if __name__ == "__main__":
    main()
