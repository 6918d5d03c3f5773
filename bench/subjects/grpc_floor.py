"""Bare grpcio: what a sidecar of raw bytes costs, without protobuf, refs or admission. No peer, but the floor.

A server for each rank, on a unix socket, as ranks of one host serve; the controller calls all of them at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, partial
from importlib.metadata import version
from typing import Any

from bench.looping import Place, looping, looping_pids
from bench.native_rank import EVERYWHERE, NativeRank, free_port
from bench.operation import TRANSFERRED
from bench.subject import Timed, Ways, serve, timed

CHUNK = 1 << 20
_NO_LIMIT = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]


def enter(place: Place) -> Mapping[str, Timed]:
    """Becomes a rank, and serves it until the process ends."""
    native = NativeRank(place.rank, place.size, place.meet(free_port())[0])
    # gRPC is imported after the fork.
    from concurrent.futures import ThreadPoolExecutor

    import grpc

    def do(request: bytes, context: object) -> bytes:
        getattr(native, request.decode())()
        return b""

    def fetch(request: bytes, context: object) -> Iterator[bytes]:
        array: Any = native.fetch(request.decode()).numpy()
        whole = memoryview(array).cast("B")
        for begin in range(0, len(whole), CHUNK):
            yield bytes(whole[begin : begin + CHUNK])

    def put(requests: Iterator[bytes], context: object) -> bytes:
        native.put(gathered(requests, int(next(requests))))
        return b""

    server = grpc.server(ThreadPoolExecutor(4), options=_NO_LIMIT)
    methods: dict[str, Any] = {
        "Do": grpc.unary_unary_rpc_method_handler(do),
        "Fetch": grpc.unary_stream_rpc_method_handler(fetch),
        "Put": grpc.stream_unary_rpc_method_handler(put),
    }
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("floor", methods),))
    target = f"unix:{place.directory}/{place.rank}"
    server.add_insecure_port(target)
    server.start()
    place.meet(target)
    # The server is kept for as long as its rank is.
    return {"serving": lambda count: [float(bool(server))] * count}


def gathered(chunks: Iterator[bytes], nbytes: int) -> bytearray:
    """The chunks side by side."""
    whole, end = bytearray(nbytes), 0
    for chunk in chunks:
        whole[end : end + len(chunk)] = chunk
        end += len(chunk)
    if end != nbytes:
        raise ValueError(f"{end} bytes have come, not {nbytes}")
    return whole


@contextmanager
def started(size: int) -> Iterator[Ways]:
    """Starts the servers, and connects to them."""
    met: list[list[Any]] = []
    with looping(size, [], enter, preload=["torch.distributed"], overheard=met.append):
        # Not before the ranks are forked.
        import grpc

        targets = met[-1]
        channels = [grpc.insecure_channel(target, options=_NO_LIMIT) for target in targets]
        calls: list[Any] = [channel.unary_unary("/floor/Do") for channel in channels]
        far = channels[1 % size]

        def everywhere(method: str) -> None:
            for future in [call.future(method.encode()) for call in calls]:
                future.result()

        operations = {name: timed(partial(everywhere, method)) for name, method in EVERYWHERE.items()}
        operations["empty_one"] = timed(lambda: calls[0](b"empty"))
        for name, nbytes in TRANSFERRED.items():
            operations[f"fetch_{name}"] = timed(_fetching(far, name, nbytes))
            operations[f"put_{name}"] = timed(_putting(far, nbytes))
        yield Ways({"grpcio": version("grpcio")}, {"calls": operations}, {}, looping_pids())


def _fetching(channel: Any, name: str, nbytes: int) -> Callable[[], bytearray]:
    fetch = channel.unary_stream("/floor/Fetch")
    return lambda: gathered(fetch(name.encode()), nbytes)


def _putting(channel: Any, nbytes: int) -> Callable[[], bytes]:
    put = channel.stream_unary("/floor/Put")

    def requests() -> Iterator[bytes]:
        yield str(nbytes).encode()
        whole = memoryview(_whole(nbytes))
        for begin in range(0, nbytes, CHUNK):
            yield bytes(whole[begin : begin + CHUNK])

    return lambda: put(requests())


@cache
def _whole(nbytes: int) -> bytes:
    return b"\1" * nbytes


if __name__ == "__main__":
    from bench.subjects import grpc_floor

    serve(grpc_floor.started)
