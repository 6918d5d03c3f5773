"""One gang call on the leader of its group: it collects every member's outcome."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import Future

from ..task import Task


class GangCall:
    """The members' results, by rank in group. Thread-safe.

    `number`: unique among this leader's calls. `parts`: the members' operations. `own`: the task of the leader's part,
    once it has begun. `future`: gets all results, in group order, when all members have reported. `led`: the leader
    alone admits it.
    """

    def __init__(self, number: int, operation_id: str, parts: Sequence[bytes], led: bool) -> None:
        self.number = number
        self.led = led
        # Held while the members get their parts: what withdraws them is sent after them.
        self.beginning = threading.Lock()
        self.operation_id = operation_id
        self.parts = parts
        self.own: Task | None = None
        self.future: Future[Sequence[bytes]] = Future()
        size = len(parts)
        self._lock = threading.Lock()
        self._results: list[bytes | None] = [None] * size
        self._left = size
        self._open: bool | None = None

    @property
    def done(self) -> bool:
        """Whether all members have reported."""
        return not self._left

    @property
    def results(self) -> Sequence[bytes | None]:
        """The members' results so far; None for one that has not reported."""
        return tuple(self._results)

    def begin(self) -> bool:
        """Marks the call as begun before the members get their parts. Returns False if it was given up before."""
        with self._lock:
            if self._open is None:
                self._open = True
            return self._open

    def give_up(self) -> bool:
        """Gives the call up unless it has begun. Returns whether no member has got a part, and none will."""
        with self._lock:
            if self._open is None:
                self._open = False
            return not self._open

    def set_result(self, rank_in_group: int, result: bytes) -> None:
        """Stores a member's result; only the first counts. Raises IndexError when there is no such member."""
        with self._lock:
            if self._results[rank_in_group] is not None:
                return
            self._results[rank_in_group] = result
            self._left -= 1
            if self._left:
                return
        self.future.set_result([it or b"" for it in self._results])

    def set_all(self, result: bytes) -> None:
        """Stores the result of every member that has not reported."""
        for place in range(len(self._results)):
            self.set_result(place, result)
