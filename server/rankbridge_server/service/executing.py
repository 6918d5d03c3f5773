"""A stream of gang calls and parts: the next is begun while one is under way, and each is answered in its turn."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from queue import SimpleQueue
from typing import Protocol

import grpc

from rankbridge.v1 import gang_service_pb2 as pb

from ..core.alarms import Alarms
from ..core.errors import BridgeError, ErrorCode, Place
from ..core.rank import Rank
from . import wire
from .begun_part import BegunPart
from .gang_calls import Begun

MAX_STREAMS = 64
"""At once. Each keeps two threads."""
MAX_UNDER_WAY = 256
"""Calls and parts of one stream. What follows is read when one of them was answered."""


class _UnderWay(Protocol):
    """A gang call or a part that is under way, or failed: a response to come."""

    @property
    def operation_id(self) -> str: ...

    @property
    def withdraw(self) -> Callable[[], None]: ...

    @property
    def done(self) -> bool: ...

    def then(self, told: Callable[[], None]) -> None: ...

    def response(self, kind: type[pb.ExecuteResponse]) -> pb.ExecuteResponse: ...


class Streams:
    """The streams of one rank. Thread-safe."""

    def __init__(self, rank: Rank) -> None:
        self._rank = rank
        self._alarms = Alarms("streams")
        self._lock = threading.Lock()
        self._open: set[_Stream] = set()
        self._ended = False

    def __len__(self) -> int:
        """How many there are now."""
        return len(self._open)

    def answer(
        self, requests: Iterator[pb.ExecuteRequest], context: grpc.ServicerContext
    ) -> Iterator[pb.ExecuteResponse]:
        """Do what is asked, and answer, from this thread, until the caller has ended or gone, or the rank stops.

        Whatever was begun is answered before a stream ends: what is not, was not begun.
        """
        stream = _Stream(self._rank, self._alarms)
        try:
            refusal = self._refusal(stream)
            if refusal is not None:
                yield refusal
            elif context.add_callback(stream.leave):
                reader = threading.Thread(target=stream.read, args=(requests,), name="execute", daemon=True)
                reader.start()
                yield from stream.responses()
        finally:
            with self._lock:
                self._open.discard(stream)

    def end(self) -> None:
        """The rank stops: every stream ends when it has answered what it has begun, and none begins."""
        with self._lock:
            self._ended = True
            streams = list(self._open)
        for stream in streams:
            stream.end()

    def _refusal(self, stream: _Stream) -> pb.ExecuteResponse | None:
        """What is answered to a stream that is one too many; None: it is one of these now."""
        with self._lock:
            free = len(self._open) < MAX_STREAMS
            if free:
                self._open.add(stream)
            ended = self._ended
        if free:
            if ended:
                stream.end()
            return None
        error = BridgeError.of(
            ErrorCode.RESOURCE_EXHAUSTED,
            "too many streams of gang calls on this rank",
            expected=f"at most {MAX_STREAMS}",
            got=str(MAX_STREAMS + 1),
        )
        place = Place(rank=self._rank.describe().rank, operation="execute")
        return pb.ExecuteResponse(error=wire.pack_error(error.at(place).failure))


class _Stream:
    """What was asked, in the order in which it came, until it is answered. Thread-safe."""

    def __init__(self, rank: Rank, alarms: Alarms) -> None:
        self._rank = rank
        self._alarms = alarms
        self._lock = threading.Lock()
        self._under_way: deque[_UnderWay] = deque()
        # Those whose turn it is to be answered; None: there are no more.
        self._ready: SimpleQueue[_UnderWay | None] = SimpleQueue()
        self._room = threading.Semaphore(MAX_UNDER_WAY)
        self._beginning = False
        self._ended = False
        self._left = False

    def read(self, requests: Iterator[pb.ExecuteRequest]) -> None:
        """Begin what comes, until nothing more does."""
        try:
            for request in requests:
                if request.WhichOneof("kind") == "withdraw":
                    self._withdraw(request.withdraw)
                    continue
                self._room.acquire()
                if not self._may_begin():
                    break
                self._begin(request)
        except grpc.RpcError:
            # The caller has gone, as `leave` has been told.
            pass
        finally:
            self.end()

    def responses(self) -> Iterator[pb.ExecuteResponse]:
        """What each call came to, as soon as those before it were answered."""
        while (begun := self._ready.get()) is not None:
            yield begun.response(pb.ExecuteResponse)
            self._room.release()

    def end(self) -> None:
        """Begin nothing more."""
        with self._lock:
            self._ended = True
            self._answer_first()

    def leave(self) -> None:
        """The caller has gone, or the stream is over."""
        with self._lock:
            self._left = True
            under_way = list(self._under_way)
        self.end()
        # The last first: none is begun because one before it is not any more.
        for begun in reversed(under_way):
            begun.withdraw()
        # Who reads may be waiting for room that nobody makes any more.
        self._room.release()

    def _may_begin(self) -> bool:
        with self._lock:
            self._beginning = not self._ended
            return self._beginning

    def _begin(self, request: pb.ExecuteRequest) -> None:
        # Without the lock, which those take who tell what became of others.
        begun: _UnderWay
        if request.HasField("part"):
            begun = BegunPart(self._rank, request.part, self._alarms)
        else:
            # A request that says nothing is refused as a call without operations.
            begun = Begun(self._rank, request.call)
        with self._lock:
            self._under_way.append(begun)
            self._beginning = False
            left = self._left
        begun.then(self._done)
        if left:
            begun.withdraw()

    def _withdraw(self, operation_id: str) -> None:
        # A part may have none.
        if not operation_id:
            return
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
        if self._ended and not self._beginning and not self._under_way:
            self._ready.put(None)
