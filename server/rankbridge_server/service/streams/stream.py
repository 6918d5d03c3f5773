"""One stream of gang calls and parts: the next is begun while one is under way.

Each request that has a number is answered as soon as it is done; those that have none, in the order in which they came.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable
from typing import Protocol

from rankbridge.v1 import gang_service_pb2 as pb

from ...core.alarms import Alarms
from ...core.errors import Place, invalid
from ...core.rank import Rank
from ..gang_calls import Begun
from ..wire import wire
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

    def then(self, callback: Callable[[], None], /) -> None:
        """Calls `callback`, which must be quick, when the response is there."""
        ...

    def response(self, kind: type[pb.ExecuteResponse]) -> pb.ExecuteResponse:
        """The response, once it is there. Raises nothing."""
        ...


class Asked:
    """A request of a stream, until it is answered. `number`: the caller's; 0: none."""

    __slots__ = ("begun", "number")

    def __init__(self, begun: UnderWay, number: int) -> None:
        self.begun = begun
        self.number = number

    def response(self) -> pb.ExecuteResponse:
        """Gives the response, once it is there. Raises nothing."""
        response = self.begun.response(pb.ExecuteResponse)
        response.number = self.number
        return response


class Stream:
    """The requests that are under way, in the order in which they came. Thread-safe.

    Calls `ready` with each request that is to be answered, one at a time, and with None when there are no more; it must
    be quick. Whoever gives an answer calls `answered`.
    """

    def __init__(self, rank: Rank, alarms: Alarms, ready: Callable[[Asked | None], None]) -> None:
        self._rank = rank
        self._alarms = alarms
        self._ready = ready
        self._lock = threading.Lock()
        self._under_way: dict[Asked, None] = {}
        # Of those, what has no number: the first is answered first.
        self._in_turn: deque[Asked] = deque()
        self._numbers: set[int] = set()
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
            self._end_if_over()

    def leave(self) -> None:
        """The caller has gone, or the stream is over."""
        with self._lock:
            self._left = True
            under_way = list(self._under_way)
        self.end()
        # The last first: none is begun because one before it is not any more.
        for asked in reversed(under_way):
            asked.begun.withdraw()
        # Who reads may be waiting for room that nobody makes any more.
        self._room.release()

    def _may_begin(self) -> bool:
        with self._lock:
            self._beginning = not self._ended
            return self._beginning

    def _begin(self, request: pb.ExecuteRequest) -> None:
        with self._lock:
            free = not request.number or request.number not in self._numbers
            if request.number:
                self._numbers.add(request.number)
        # Without the lock: whoever finishes another request takes it.
        begun: UnderWay
        if not free:
            begun = _Refused(self._rank, request.number)
        elif request.HasField("part"):
            begun = BegunPart(self._rank, request.part, self._alarms)
        else:
            # A request that says nothing is refused as a call without operations.
            begun = Begun(self._rank, request.call)
        asked = Asked(begun, request.number)
        with self._lock:
            self._under_way[asked] = None
            if not asked.number:
                self._in_turn.append(asked)
            self._beginning = False
            left = self._left
        begun.then(lambda: self._done(asked))
        if left:
            begun.withdraw()

    def _withdraw(self, operation_id: str) -> None:
        # A part may have none.
        if not operation_id:
            return
        with self._lock:
            found = [asked.begun for asked in self._under_way if asked.begun.operation_id == operation_id]
        for begun in found:
            begun.withdraw()

    def _done(self, asked: Asked) -> None:
        with self._lock:
            if asked.number:
                if not isinstance(asked.begun, _Refused):
                    self._numbers.discard(asked.number)
                self._answer(asked)
            while self._in_turn and self._in_turn[0].begun.done:
                self._answer(self._in_turn.popleft())
            self._end_if_over()

    def _answer(self, asked: Asked) -> None:
        """With the lock held."""
        del self._under_way[asked]
        self._ready(asked)

    def _end_if_over(self) -> None:
        """With the lock held."""
        if self._ended and not self._over and not self._beginning and not self._under_way:
            self._over = True
            self._ready(None)


class _Refused:
    """A request whose number another has that is under way."""

    operation_id = ""
    done = True

    def __init__(self, rank: Rank, number: int) -> None:
        self._rank = rank
        self._number = number

    def withdraw(self) -> None:
        """Nothing was begun."""

    def then(self, callback: Callable[[], None]) -> None:
        """Calls `callback` at once."""
        callback()

    def response(self, kind: type[pb.ExecuteResponse]) -> pb.ExecuteResponse:
        """Gives the error."""
        error = invalid(
            "another request with this number is under way on the stream",
            expected="a number of its own",
            got=str(self._number),
        )
        place = Place(rank=self._rank.describe().rank, operation="execute")
        return kind(error=wire.pack_error(error.at(place).failure))
