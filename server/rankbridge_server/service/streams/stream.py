"""One stream of gang calls and parts: the next is begun while one is under way.

Each request that has a number is answered as soon as it is done; those that have none, in the order in which they came.
"""

from __future__ import annotations

import itertools
import threading
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial

from rankbridge.v1 import gang_service_pb2 as pb

from ...core.errors import BridgeError, invalid
from ...core.rank import Rank
from ..answering import packed_error
from ..gang_calls import PendingGangCall
from ..pending import Pending, PendingPart

MAX_UNDER_WAY = 256
"""Calls and parts of one stream. What follows is read when one of them was answered."""

Answer = Callable[[], pb.ExecuteResponse]
"""Makes the response of a request that is done. Raises nothing."""


class Stream:
    """The requests that are under way, in the order in which they came. Thread-safe.

    Calls `ready` with the answer of each request, one at a time, and with None when there are no more; it must be
    quick. Whoever gives an answer calls `answered`.
    """

    def __init__(self, rank: Rank, ready: Callable[[Answer | None], None]) -> None:
        self._rank = rank
        self._ready = ready
        self._lock = threading.Lock()
        # By their numbers; those that have none, below 0.
        self._under_way: dict[int, Pending] = {}
        self._unnumbered = itertools.count(-1, -1)
        # Of those, what has no number: the first is answered first.
        self._in_turn: deque[int] = deque()
        self._capacity = threading.Semaphore(MAX_UNDER_WAY)
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
                self._capacity.acquire()
                if not self._may_begin():
                    break
                self._begin(request)
        finally:
            self.end()

    def wait_for_capacity(self, timeout: float) -> bool:
        """Whether another call may come, within so many seconds. For whoever reads."""
        if not self._capacity.acquire(timeout=timeout):
            return False
        self._capacity.release()
        return True

    def answered(self) -> None:
        """An answer has been given: another call may come."""
        self._capacity.release()

    def end(self) -> None:
        """Begin nothing more."""
        with self._lock:
            self._ended = True
            self._end_if_over()

    def leave(self) -> None:
        """The caller has gone, or the stream is over."""
        with self._lock:
            self._left = True
            under_way = list(self._under_way.values())
        self.end()
        # The last first: none is begun because one before it is not any more.
        for pending in reversed(under_way):
            pending.withdraw()
        # Who reads may be waiting for room that nobody makes any more.
        self._capacity.release()

    def _may_begin(self) -> bool:
        with self._lock:
            self._beginning = not self._ended
            return self._beginning

    def _begin(self, request: pb.ExecuteRequest) -> None:
        number = request.number or next(self._unnumbered)
        with self._lock:
            if number in self._under_way:
                self._beginning = False
                self._ready(partial(_taken, self._rank, number))
                self._end_if_over()
                return
        # Without the lock: whoever finishes another request takes it.
        pending: Pending
        if request.HasField("part"):
            pending = PendingPart.of(self._rank, request.part)
        else:
            # A request that says nothing is refused as a call without operations.
            pending = PendingGangCall(self._rank, request.call)
        with self._lock:
            self._under_way[number] = pending
            if not request.number:
                self._in_turn.append(number)
            self._beginning = False
            left = self._left
        pending.then(lambda: self._done(number))
        if left:
            pending.withdraw()

    def _withdraw(self, operation_id: str) -> None:
        # A part may have none.
        if not operation_id:
            return
        with self._lock:
            found = [it for it in self._under_way.values() if it.operation_id == operation_id]
        for pending in found:
            pending.withdraw()

    def _done(self, number: int) -> None:
        with self._lock:
            if number > 0:
                self._answer(number)
            while self._in_turn and self._under_way[self._in_turn[0]].done:
                self._answer(self._in_turn.popleft())
            self._end_if_over()

    def _answer(self, number: int) -> None:
        """With the lock held."""
        self._ready(partial(_response, self._under_way.pop(number), max(number, 0)))

    def _end_if_over(self) -> None:
        """With the lock held."""
        if self._ended and not self._over and not self._beginning and not self._under_way:
            self._over = True
            self._ready(None)


def refusal(rank: Rank, error: BridgeError, number: int = 0) -> pb.ExecuteResponse:
    """The response to what a stream refuses itself."""
    return pb.ExecuteResponse(error=packed_error(rank, "execute", error), number=number)


def _taken(rank: Rank, number: int) -> pb.ExecuteResponse:
    error = invalid(
        "another request with this number is under way on the stream",
        expected="a number of its own",
        got=str(number),
    )
    return refusal(rank, error, number)


def _response(pending: Pending, number: int) -> pb.ExecuteResponse:
    response = pending.stream_response()
    response.number = number
    return response
