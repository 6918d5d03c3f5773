"""One stream of gang calls and parts. Requests run concurrently.

A request with a number is answered as soon as it is done; requests without one are answered in their order.
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
"""Requests of one stream that may be under way. The next is read when one of them was answered."""

Answer = Callable[[], pb.ExecuteResponse]
"""Makes the response of a request that is done. Raises nothing."""


class Stream:
    """The requests that are under way, in the order in which they came. Thread-safe.

    Calls `ready`, which must be quick, with the answer of each request, one at a time, and with None after the last.
    The thread that has sent an answer calls `answered`.
    """

    def __init__(self, rank: Rank, ready: Callable[[Answer | None], None]) -> None:
        self._rank = rank
        self._ready = ready
        self._lock = threading.Lock()
        # By number; requests without a number get one below 0.
        self._under_way: dict[int, Pending] = {}
        self._unnumbered = itertools.count(-1, -1)
        # The requests without a number, in their order.
        self._in_turn: deque[int] = deque()
        self._capacity = threading.Semaphore(MAX_UNDER_WAY)
        self._beginning = False
        self._ended = False
        self._over = False
        self._left = False

    def read(self, requests: Iterable[pb.ExecuteRequest]) -> None:
        """Begins each request that comes, until the last. Raises what `requests` raises."""
        try:
            for request in requests:
                if request.WhichOneof("kind") == "withdraw":
                    self._withdraw(request.withdraw, request.number)
                    continue
                self._capacity.acquire()
                if not self._may_begin():
                    break
                self._begin(request)
        finally:
            self.end()

    def wait_for_capacity(self, timeout: float) -> bool:
        """Waits at most `timeout` seconds until the stream can take a request; returns whether it can."""
        if not self._capacity.acquire(timeout=timeout):
            return False
        self._capacity.release()
        return True

    def answered(self) -> None:
        """Notes that an answer was sent: the stream can take another request."""
        self._capacity.release()

    def end(self) -> None:
        """Begins no more requests."""
        with self._lock:
            self._ended = True
            self._end_if_over()

    def leave(self) -> None:
        """Withdraws what is under way, because the caller has gone or the stream is over."""
        with self._lock:
            self._left = True
            under_way = list(self._under_way.values())
        self.end()
        # The last first, so that no request begins because an earlier one was withdrawn.
        for pending in reversed(under_way):
            pending.withdraw()
        # The reader may be waiting for capacity.
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
        # Without the lock, which the threads that finish other requests take.
        pending: Pending
        if request.HasField("part"):
            pending = PendingPart.of(self._rank, request.part)
        else:
            # An empty request is refused as a gang call without operations.
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

    def _withdraw(self, operation_id: str, number: int) -> None:
        """What has that number; without one, what has that operation id, which a part may have none of."""
        with self._lock:
            if number:
                found = [self._under_way[number]] if number in self._under_way else []
            else:
                found = [it for it in self._under_way.values() if operation_id == it.operation_id != ""]
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
    """The response to a request that the stream itself refuses."""
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
