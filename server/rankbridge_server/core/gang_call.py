"""One gang call, as the leader of its group sees it: every member's outcome, as they come."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from .task import Task


class GangCall:
    """What the members tell, by rank in group. Thread-safe.

    `number` names it among those of this leader; `parts` are what the members are asked. `own` is the leader's part,
    once that was begun.
    """

    def __init__(self, number: int, operation_id: str, parts: Sequence[bytes]) -> None:
        self.number = number
        self.operation_id = operation_id
        self.parts = parts
        self.own: Task | None = None
        size = len(parts)
        self._lock = threading.Lock()
        self._results: list[bytes | None] = [None] * size
        self._left = size
        self._open: bool | None = None
        self._done = threading.Event()

    @property
    def done(self) -> bool:
        """Whether all have told."""
        return self._done.is_set()

    @property
    def results(self) -> Sequence[bytes | None]:
        """What the members have told so far; None for one that has not."""
        return tuple(self._results)

    def begin(self) -> bool:
        """The members are about to be asked; False when it was given up before."""
        with self._lock:
            if self._open is None:
                self._open = True
            return self._open

    def give_up(self) -> bool:
        """Tells whether no member was asked, and will not be."""
        with self._lock:
            if self._open is None:
                self._open = False
            return not self._open

    def tell(self, rank_in_group: int, result: bytes) -> None:
        """A member's outcome; only its first counts. Raises IndexError when there is no such member."""
        with self._lock:
            if self._results[rank_in_group] is not None:
                return
            self._results[rank_in_group] = result
            self._left -= 1
            left = self._left
        if not left:
            self._done.set()

    def wait(self, timeout: float) -> bool:
        """Wait until all have told, at most `timeout` seconds; tells whether they have."""
        return self._done.wait(max(0.0, timeout))
