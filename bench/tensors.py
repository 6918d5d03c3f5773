"""Tensors to a rank and from it, beside one copy of their memory and beside bare grpcio.

`python -m bench.tensors` starts a rank, and in a process of its own a bare grpcio server that streams chunks of 1 MiB,
both at unix sockets, takes turns among all ways, and prints p50 and minimum of every way, and the ratios.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import numpy
import numpy.typing

import rankbridge
from bench.gang import COMMAND

CHUNK = 1 << 20
LIMITS = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]


class _Bare(grpc.GenericRpcHandler):
    """Streams of bytes and nothing else."""

    def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler[bytes, bytes] | None:
        if details.method == "/bare/Get":
            return grpc.unary_stream_rpc_method_handler(self._get)
        return grpc.stream_unary_rpc_method_handler(self._put)

    @staticmethod
    def _get(request: bytes, context: grpc.ServicerContext) -> Iterator[bytes]:
        chunk = bytes(CHUNK)
        for _ in range(int(request) // CHUNK):
            yield chunk

    @staticmethod
    def _put(requests: Iterator[bytes], context: grpc.ServicerContext) -> bytes:
        filled = 0
        fresh = numpy.empty(int(next(requests)), numpy.uint8)
        for part in requests:
            fresh[filled : filled + len(part)] = numpy.frombuffer(part, numpy.uint8)
            filled += len(part)
        return str(filled).encode()


def serve(address: str) -> None:
    """Be the bare server until standard input is closed."""
    server = grpc.server(ThreadPoolExecutor(4), options=LIMITS)
    server.add_generic_rpc_handlers((_Bare(),))
    server.add_insecure_port(address)
    server.start()
    print("ready", flush=True)
    sys.stdin.read()
    server.stop(None)


@contextlib.contextmanager
def started(command: list[str]) -> Iterator[None]:
    """A process that says when it is ready and ends when its standard input is closed."""
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        if process.stdin is None or process.stdout is None:
            raise RuntimeError("no pipes")
        while not process.stdout.readline().startswith("ready"):
            if process.poll() is not None:
                raise RuntimeError(f"{command} did not start")
        try:
            yield
        finally:
            process.stdin.close()


def bare_ways(
    channel: grpc.Channel, source: numpy.typing.NDArray[numpy.uint8]
) -> dict[str, Callable[[], object]]:
    """Fetch and put by the bare server."""
    get: grpc.UnaryStreamMultiCallable[bytes, bytes] = channel.unary_stream("/bare/Get")
    put: grpc.StreamUnaryMultiCallable[bytes, bytes] = channel.stream_unary("/bare/Put")

    def fetch() -> None:
        filled = 0
        fresh = numpy.empty(source.nbytes, numpy.uint8)
        for part in get(str(source.nbytes).encode()):
            fresh[filled : filled + len(part)] = numpy.frombuffer(part, numpy.uint8)
            filled += len(part)

    def parts() -> Iterator[bytes]:
        yield str(source.nbytes).encode()
        for start in range(0, source.nbytes, CHUNK):
            yield source[start : start + CHUNK].tobytes()

    def bring() -> None:
        if int(put(parts())) != source.nbytes:
            raise RuntimeError("bytes are missing")

    return {"bare stream, fetch": fetch, "bare stream, put": bring}


def measure(directory: Path, nbytes: int, rounds: int, backend: str) -> dict[str, list[float]]:
    """Milliseconds of every way."""
    endpoints, bare = directory / "endpoints.json", f"unix:{directory}/bare"
    up = [str(COMMAND), "up", "--size", "1", "--backend", backend]
    with contextlib.ExitStack() as stack:
        stack.enter_context(
            started([*up, "--endpoints-file", str(endpoints), "--exit-on-stdin-close"]),
        )
        stack.enter_context(started([sys.executable, "-m", "bench.tensors", "--serve", bare]))
        channel = stack.enter_context(grpc.insecure_channel(bare, options=LIMITS))
        near = stack.enter_context(rankbridge.connect(endpoints))[0]
        far = stack.enter_context(rankbridge.connect(endpoints, shared_memory=False))[0]
        source = numpy.random.default_rng(0).integers(0, 255, nbytes, numpy.uint8)
        target = numpy.zeros_like(source)
        held = {it: it.put(source) for it in (near, far)}

        def fetch(rank: rankbridge.Rank) -> None:
            if not isinstance(rank.get(held[rank]), numpy.ndarray):
                raise RuntimeError("no array")

        ways: dict[str, Callable[[], object]] = {
            "memcpy": lambda: numpy.copyto(target, source),
            "memcpy to new memory": lambda: source.copy(),
            **bare_ways(channel, source),
            "stream, fetch": lambda: fetch(far),
            "stream, put": lambda: far.put(source),
            "shared memory, fetch": lambda: fetch(near),
            "shared memory, put": lambda: near.put(source),
        }
        times: dict[str, list[float]] = {name: [] for name in ways}
        for turn in range(rounds + 2):
            for name, way in ways.items():
                begun = time.perf_counter()
                made = way()
                took = time.perf_counter() - begun
                if isinstance(made, rankbridge.Ref):
                    (near if name.startswith("shared") else far).release(made)
                if turn >= 2:
                    times[name].append(took * 1e3)
        if near.transfers.streamed or far.transfers.shared:
            raise RuntimeError(f"not as was meant: {near.transfers}, {far.transfers}")
        return times


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    parser.add_argument("--mib", type=float, default=64, help="size of the tensor (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--backend", default="gloo", choices=["gloo", "fake"])
    options = parser.parse_args()
    if options.serve:
        serve(options.serve)
        return
    with tempfile.TemporaryDirectory() as directory:
        nbytes = int(options.mib * (1 << 20))
        times = measure(Path(directory), nbytes, options.rounds, options.backend)
    p50 = {name: statistics.median(each) for name, each in times.items()}
    print(f"{options.mib:g} MiB, {options.rounds} rounds, ms")
    for name, each in times.items():
        end = name.rpartition(", ")[2]
        beside = f"   {p50[name] / p50[f'bare stream, {end}']:5.2f} x bare" if ", " in name else ""
        print(
            f"{name:24s} p50 {p50[name]:7.2f}  min {min(each):7.2f}   {p50[name] / p50['memcpy']:5.2f} x memcpy{beside}"
        )


if __name__ == "__main__":
    main()
