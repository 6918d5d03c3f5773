"""One stream of gang calls and parts: the next is begun while one is under way, and each is answered in its turn."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable
from typing import Protocol

from rankbridge.v1 import gang_service_pb2 as pb

from ...core.alarms import Alarms
from ...core.rank import Rank
from ..gang_calls import Begun
from .begun_part import BegunPart

MAX_UNDER_WAY = 256
"""Calls and parts of one stream. What follows is read when one of them was answered."""


class UnderWay(Protocol):
    """A gang call or a part that is under way, or failed: a response to come."""

    @property
    def operation_id(self) -> str:
        """Under which it can be withdrawn."""
        ...

    @property
    def withdraw(self) -> Callable[[], None]:
        """What withdraws it."""
        ...

    @property
    def done(self) -> bool:
        """Whether the response is there."""
        ...

    def then(self, told: Callable[[], None]) -> None:
        """Have `told` called when the response is there; it must be quick."""
        ...

    def response(self, kind: type[pb.ExecuteResponse]) -> pb.ExecuteResponse:
        """The response, once it is there. Raises nothing."""
        ...


class Stream:
    """What was asked, in the order in which it came, until it is answered. Thread-safe.

    `ready` is given what has its turn to be answered, one at a time, and None when there is no more; it must be quick.
    Whoever gives an answer says so: `answered`.
    """

    def __init__(self, rank: Rank, alarms: Alarms, ready: Callable[[UnderWay | None], None]) -> None:
        self._rank = rank
        self._alarms = alarms
        self._ready = ready
        self._lock = threading.Lock()
        self._under_way: deque[UnderWay] = deque()
        self._room = threading.Semaphore(MAX_UNDER_WAY)
        self._beginning = False
        self._ended = False
        self._over = False
        self._left = False

    def read(self, requests: Iterable[pb.ExecuteRequest]) -> None:
        """Begin what comes, until nothing more does. Raises what `requests` raises."""
        try:
            for request in requests:
                if request.WhichOneof("kind") == "withdraw":
                    self._withdraw(request.withdraw)
                    continue
                self._room.acquire()
                if not self._may_begin():
                    break
                self._begin(request)
        finally:
            self.end()

    def has_room(self, timeout: float) -> bool:
        """Whether another call may come, within so many seconds. For whoever reads."""
        if not self._room.acquire(timeout=timeout):
            return False
        self._room.release()
        return True

    def answered(self) -> None:
        """An answer has been given: another call may come."""
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
        begun: UnderWay
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
            self._ready(self._under_way.popleft())
        if self._ended and not self._over and not self._beginning and not self._under_way:
            self._over = True
            self._ready(None)
