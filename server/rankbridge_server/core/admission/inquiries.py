"""Inquiries: a leader asks missing members what they do instead, before it answers those that wait for them.

A state machine without clocks, threads or sockets; `links` drives it. Times are seconds of any one clock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from ..activity import Activity, Doing

ANSWER_S = 0.2
"""How long an answer may take. What the leader has to say is late by no more than that."""

Known = Mapping[int, Activity]
"""What members do, by rank in group."""
_STOPPED = Activity(doing=Doing.STOPPED)
_SILENT = Activity(doing=Doing.SILENT, seconds=ANSWER_S)


@dataclass(slots=True)
class _Inquiry:
    due: float
    missing: set[int]
    answered: Callable[[Known], None]
    known: dict[int, Activity] = field(default_factory=dict)


class Inquiries:
    """The inquiries of one group that wait for answers."""

    def __init__(self, ask: Callable[[int, int], Activity | None], is_stopped: Callable[[int], bool]) -> None:
        """`ask`: asks a member, by rank in group, the question of a number; gives what is known at once, None: nothing.

        `is_stopped`: whether the process of a member is known to be stopped. Its answer is not waited for.
        """
        self._ask = ask
        self._is_stopped = is_stopped
        self._last = 0
        self._waiting: dict[int, _Inquiry] = {}

    @property
    def deadline(self) -> float | None:
        """When `expire` is due; None: not while nothing changes."""
        return min(it.due for it in self._waiting.values()) if self._waiting else None

    def ask(self, missing: Iterable[int], answered: Callable[[Known], None], now: float) -> None:
        """Asks members, by rank in group. Calls `answered` once, when all have answered or at the deadline."""
        self._last += 1
        inquiry = self._waiting[self._last] = _Inquiry(now + ANSWER_S, set(missing), answered)
        for place in sorted(inquiry.missing):
            activity = self._ask(self._last, place)
            if activity is None and self._is_stopped(place):
                activity = _STOPPED
            if activity is not None:
                inquiry.missing.discard(place)
                inquiry.known[place] = activity
        self._look_at(self._last)

    def answer(self, number: int, rank_in_group: int, activity: Activity) -> None:
        """Takes a member's answer. Does nothing with one that comes too late."""
        inquiry = self._waiting.get(number)
        if inquiry is not None and rank_in_group in inquiry.missing:
            inquiry.missing.discard(rank_in_group)
            inquiry.known[rank_in_group] = activity
            self._look_at(number)

    def expire(self, now: float) -> None:
        """Ends the inquiries whose time has passed."""
        for number in [number for number, it in self._waiting.items() if it.due <= now]:
            inquiry = self._waiting[number]
            for place in inquiry.missing:
                inquiry.known[place] = _STOPPED if self._is_stopped(place) else _SILENT
            inquiry.missing.clear()
            self._look_at(number)

    def _look_at(self, number: int) -> None:
        if not self._waiting[number].missing:
            inquiry = self._waiting.pop(number)
            inquiry.answered(inquiry.known)
