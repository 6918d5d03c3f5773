"""A stream of gang calls: the next is begun while one is under way, and each is answered in its turn."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from queue import SimpleQueue

import grpc

from rankbridge.v1 import gang_service_pb2 as pb

from ..core.errors import BridgeError, ErrorCode, Place
from ..core.rank import Rank
from . import wire
from .gang_calls import Begun

MAX_STREAMS = 64
"""At once. Each keeps two threads."""
MAX_UNDER_WAY = 256
"""Calls of one stream. What follows is read when one of them was answered."""


class Streams:
    """The streams of one rank."""

    def __init__(self, rank: Rank) -> None:
        self._rank = rank
        self._free = threading.BoundedSemaphore(MAX_STREAMS)

    def answer(
        self, requests: Iterator[pb.ExecuteRequest], context: grpc.ServicerContext
    ) -> Iterator[pb.CallResponse]:
        """Do what is asked, and answer, from this thread, until the caller has ended or gone."""
        if not self._free.acquire(blocking=False):
            yield self._refusal()
            return
        try:
            stream = _Stream(self._rank)
            if context.add_callback(stream.leave):
                reader = threading.Thread(target=stream.read, args=(requests,), name="execute", daemon=True)
                reader.start()
                yield from stream.responses()
        finally:
            self._free.release()

    def _refusal(self) -> pb.CallResponse:
        error = BridgeError.of(
            ErrorCode.RESOURCE_EXHAUSTED,
            "too many streams of gang calls on this rank",
            expected=f"at most {MAX_STREAMS}",
            got=str(MAX_STREAMS + 1),
        )
        place = Place(rank=self._rank.describe().rank, operation="execute")
        return pb.CallResponse(error=wire.pack_error(error.at(place).failure))


class _Stream:
    """Calls in the order in which they came, until they are answered. Thread-safe."""

    def __init__(self, rank: Rank) -> None:
        self._rank = rank
        self._lock = threading.Lock()
        self._under_way: deque[Begun] = deque()
        # Those whose turn it is to be answered; None: there are no more.
        self._ready: SimpleQueue[Begun | None] = SimpleQueue()
        self._room = threading.Semaphore(MAX_UNDER_WAY)
        self._ended = False
        self._left = False

    def read(self, requests: Iterator[pb.ExecuteRequest]) -> None:
        """Begin what comes, until nothing more does."""
        try:
            for request in requests:
                kind = request.WhichOneof("kind")
                if kind == "withdraw":
                    self._withdraw(request.withdraw)
                else:
                    # A request that says nothing is refused as a call without operations.
                    self._room.acquire()
                    if self._left:
                        break
                    self._begin(request.call)
        except grpc.RpcError:
            # The caller has gone, as `leave` has been told.
            pass
        finally:
            with self._lock:
                self._ended = True
                self._answer_first()

    def responses(self) -> Iterator[pb.CallResponse]:
        """What each call came to, as soon as those before it were answered."""
        while (begun := self._ready.get()) is not None:
            yield begun.response()
            self._room.release()

    def leave(self) -> None:
        """The caller has gone, or the stream is over."""
        with self._lock:
            self._left = True
            under_way = list(self._under_way)
        for begun in under_way:
            begun.withdraw()
        # Who reads may be waiting for room that nobody makes any more.
        self._room.release()

    def _begin(self, request: pb.CallRequest) -> None:
        begun = Begun(self._rank, request)
        with self._lock:
            self._under_way.append(begun)
            left = self._left
        begun.then(self._done)
        if left:
            begun.withdraw()

    def _withdraw(self, operation_id: str) -> None:
        with self._lock:
            found = [begun for begun in self._under_way if begun.operation_id == operation_id]
        for begun in found:
            begun.withdraw()

    def _done(self) -> None:
        with self._lock:
            self._answer_first()

    def _answer_first(self) -> None:
        """With the lock held."""
        while self._under_way and self._under_way[0].done:
            self._ready.put(self._under_way.popleft())
        if self._ended and not self._under_way:
            self._ready.put(None)
