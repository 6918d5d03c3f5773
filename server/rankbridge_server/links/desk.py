"""Where a leader receives the members of its groups: admissions of all groups that one sidecar leads."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..core.admission.admission import Admission, Arrival, Notice, Reply, Verdict
from ..core.admission.matching import Answer, Matching, Post


@dataclass(frozen=True, slots=True)
class _Led:
    ranks: tuple[int, ...]
    admission: Admission
    matching: Matching

    @property
    def deadline(self) -> float | None:
        """When one of them has something to do."""
        due = [at for at in (self.admission.deadline, self.matching.deadline) if at is not None]
        return min(due, default=None)


class Desk:
    """Thread-safe.

    `deliver(rank, group, reply)` sends a reply to a member, own rank included, and `match` the answer to a post; they
    must not block. Answers go out with the lock held: their order counts.

    `noticed(group, ranks, notice)` is told of admissions, also of those that have taken `patience` seconds; it must be
    quick.

    Arrivals for a group that is not there yet wait for it: a member may be quicker than its leader in forming.
    """

    def __init__(
        self,
        deliver: Callable[[int, str, Reply], None],
        match: Callable[[int, str, Answer], None],
        noticed: Callable[[str, Sequence[int], Notice], None] = lambda *_: None,
        patience: float = math.inf,
    ) -> None:
        self._deliver = deliver
        self._match = match
        self._noticed = noticed
        self._patience = patience
        self._lock = threading.Lock()
        self._led: dict[str, _Led] = {}
        self._early: dict[str, list[tuple[int, Arrival, float]]] = {}

    def lead(self, group: str, ranks: Sequence[int]) -> float | None:
        """Begin to admit the members of a group. Returns when it has something due, if it has."""

        def noticed(notice: Notice) -> None:
            self._noticed(group, ranks, notice)

        admission = Admission(len(ranks), self._patience, noticed)
        with self._lock:
            led = self._led[group] = _Led(tuple(ranks), admission, Matching(len(ranks)))
            early = self._early.pop(group, [])
            replies = [r for rank, arrival, at in early for r in self._admit(led, rank, arrival, at)]
            deadline = led.deadline
        self._send(group, led, replies)
        return deadline

    def leave(self, group: str) -> None:
        """Forget a group."""
        with self._lock:
            self._led.pop(group, None)
            self._early.pop(group, None)

    def arrive(self, rank: int, group: str, arrival: Arrival) -> float | None:
        """A member has come. Returns when the group's admission is due to expire, if it is.

        Raises ValueError when the rank is not a member, or has come already.
        """
        now = time.monotonic()
        with self._lock:
            led = self._led.get(group)
            if led is None:
                self._early.setdefault(group, []).append((rank, arrival, now))
                return now + arrival.timeout
            replies = self._admit(led, rank, arrival, now)
            deadline = led.deadline
        self._send(group, led, replies)
        return deadline

    def withdraw(self, rank: int, group: str, sequence: int, operation_id: str) -> None:
        """A member wants to leave again. Before its group is there nothing happens: it waits for its timeout."""
        with self._lock:
            led = self._led.get(group)
            if led is None or rank not in led.ranks:
                return
            replies = led.admission.withdraw(led.ranks.index(rank), sequence, operation_id)
        self._send(group, led, replies)

    def refuse(self, group: str, operation_id: str, verdict: Verdict) -> None:
        """An operation is not to be, unless it was admitted."""
        with self._lock:
            led = self._led.get(group)
            if led is None:
                return
            replies = led.admission.refuse(operation_id, verdict)
        self._send(group, led, replies)

    def post(self, rank: int, group: str, post: Post) -> float | None:
        """A member wants to send or to receive. Returns when the group has something due, if it has.

        Raises ConnectionError when the group is not there.
        """
        with self._lock:
            led = self._led.get(group)
            if led is None:
                raise ConnectionError(f"group {group!r} has ended")
            place = led.ranks.index(rank)
            self._answer(group, led, led.matching.post(place, post, time.monotonic()))
            return led.deadline

    def recall(self, rank: int, group: str, number: int) -> None:
        """A member wants its post back."""
        with self._lock:
            led = self._led.get(group)
            if led is not None and rank in led.ranks:
                self._answer(group, led, led.matching.recall(led.ranks.index(rank), number))

    def expire(self) -> float | None:
        """Rule on what is overdue; returns when the next admission is due, if one is."""
        now = time.monotonic()
        due: list[tuple[str, _Led, list[Reply]]] = []
        with self._lock:
            for group, led in self._led.items():
                if replies := led.admission.expire(now):
                    due.append((group, led, replies))
                self._answer(group, led, led.matching.expire(now))
            deadlines = [led.deadline for led in self._led.values()]
        for group, led, replies in due:
            self._send(group, led, replies)
        return min((deadline for deadline in deadlines if deadline is not None), default=None)

    @staticmethod
    def _admit(led: _Led, rank: int, arrival: Arrival, now: float) -> list[Reply]:
        if rank not in led.ranks:
            raise ValueError(f"rank {rank} is not a member: {led.ranks}")
        return led.admission.arrive(led.ranks.index(rank), arrival, now)

    def _send(self, group: str, led: _Led, replies: Sequence[Reply]) -> None:
        for reply in replies:
            self._deliver(led.ranks[reply.rank_in_group], group, reply)

    def _answer(self, group: str, led: _Led, answers: Sequence[Answer]) -> None:
        for answer in answers:
            self._match(led.ranks[answer.rank_in_group], group, answer)
