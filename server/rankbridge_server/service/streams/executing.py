"""The streams of a rank, and how those over gRPC are answered."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from queue import SimpleQueue

import grpc

from rankbridge.v1 import gang_service_pb2 as pb

from ...core import engine_threads
from ...core.errors import exhausted
from ...core.rank import Rank
from .stream import Answer, Stream, refusal

MAX_STREAMS = 64
"""At once, however they come. Each keeps one or two threads."""


class Streams:
    """The streams of one rank. Thread-safe."""

    def __init__(self, rank: Rank) -> None:
        self._rank = rank
        self._lock = threading.Lock()
        self._open: set[Stream] = set()
        self._ended = False

    def __len__(self) -> int:
        """The number of open streams."""
        return len(self._open)

    def begin(self, ready: Callable[[Answer | None], None]) -> Stream | pb.ExecuteResponse:
        """Begins a stream, to be passed to `discard` at its end; or returns the only response of a refused one."""
        stream = Stream(self._rank, ready)
        with self._lock:
            if len(self._open) >= MAX_STREAMS:
                got = str(MAX_STREAMS + 1)
                error = exhausted(
                    "too many streams of gang calls on this rank", most=str(MAX_STREAMS), got=got
                )
                return refusal(self._rank, error)
            self._open.add(stream)
            ended = self._ended
        if ended:
            stream.end()
        return stream

    def discard(self, stream: Stream) -> None:
        """Removes a stream that has ended."""
        with self._lock:
            self._open.discard(stream)

    def end(self) -> None:
        """Ends every stream after the answers of what it has begun, because the rank stops. No new one begins."""
        with self._lock:
            self._ended = True
            streams = list(self._open)
        for stream in streams:
            stream.end()

    def answer(
        self, requests: Iterable[pb.ExecuteRequest], context: grpc.ServicerContext
    ) -> Iterator[pb.ExecuteResponse]:
        """Serves a stream over gRPC, on this thread, until the caller ends it or has gone, or the rank stops.

        A stream ends after the answers of everything it has begun: a request without an answer was not begun.
        """
        ready: SimpleQueue[Answer | None] = SimpleQueue()
        stream = self.begin(ready.put)
        if isinstance(stream, pb.ExecuteResponse):
            yield stream
            return
        try:
            if context.add_callback(stream.leave):
                engine_threads.start("execute", lambda: _read(stream, requests))
                while (answer := ready.get()) is not None:
                    yield answer()
                    stream.answered()
        finally:
            self.discard(stream)


def _read(stream: Stream, requests: Iterable[pb.ExecuteRequest]) -> None:
    # The caller has gone; `leave` was called.
    with suppress(grpc.RpcError):
        stream.read(requests)
