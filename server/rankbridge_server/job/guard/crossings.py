"""Crossings: ranks that wait for each other in different calls, so that none will ever go on.

Each rank that has waited for a while writes down in the job's store in which collective of which group it waits, or in
which send or receive, and how many of each it has come to before. A rank waits for a member of its group that had not
passed that collective when it wrote down that it waits in another; or for the other end of its send or receive, which
had not been asked for when that rank wrote down that it waits. A circle of such waits never ends, also if what was
written is old: the first of them to go on would need the next to have come, which could not before it went on itself.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ..board import Board

PATIENCE_S = 0.1
"""How long a rank waits before it looks for a crossing, and between two looks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """A rank that waits. `attempt`: the rank's calls so far, which tells its waits apart.

    `group`: torch's name of it; `name`: the bridge's; `ranks`: its members. `number`: collectives that it has passed
    there. `passed`: likewise, in each group. `text`: what it has called, with its line of code.

    Of a send or a receive, `channel` names source, destination, tag and group, `number` is its own there, from 1, and
    `ranks` is the other end alone. `posted`: how many sends and receives the rank has asked for, by channel; None: too
    many to write down.
    """

    attempt: int
    group: str
    name: str
    number: int
    ranks: tuple[int, ...]
    passed: Mapping[str, int]
    text: str
    channel: str = ""
    posted: Mapping[str, int] | None = None


def crossing(waits: Mapping[int, Wait], rank: int) -> list[int]:
    """The ranks of a circle in which a rank waits, each for the next, the last for the first; empty: in none."""
    paths = [[rank]] if rank in waits else []
    seen: set[int] = set()
    for path in paths:
        for following in _waited_for(waits, path[-1]):
            if following == rank:
                return path
            if following not in seen:
                seen.add(following)
                paths.append([*path, following])
    return []


def _waited_for(waits: Mapping[int, Wait], rank: int) -> Sequence[int]:
    """The ranks for which one waits, of those that wait themselves."""
    mine = waits[rank]
    had_not_come = _had_not_posted if mine.channel else _had_not_passed
    return [it for it in mine.ranks if it != rank and it in waits and had_not_come(waits[it], mine)]


def _had_not_passed(other: Wait, mine: Wait) -> bool:
    """Whether a rank that waits elsewhere had not passed the collective yet in which another waits."""
    has_come = not other.channel and (other.group, other.number) == (mine.group, mine.number)
    return not has_come and other.passed.get(mine.group, 0) <= mine.number


def _had_not_posted(other: Wait, mine: Wait) -> bool:
    """Whether a rank that waits had not asked yet for the other end of the send or receive in which another waits."""
    if other.posted is None:
        return False
    posted = sum(other.posted.get(it, 0) for it in (mine.channel, from_any(mine.channel)))
    return posted < mine.number


def channel_of(group: str, source: int | None, destination: int, tag: int) -> str:
    """The name of a channel, by ranks in the job. A receive may be from any source: None."""
    return f"{group} {'any' if source is None else source} {destination} {tag}"


def from_any(channel: str) -> str:
    """The channel of receives from any source that may take what is sent on this one."""
    group, _, destination, tag = channel.rsplit(" ", 3)
    return f"{group} any {destination} {tag}"


def in_words(waits: Mapping[int, Wait], circle: Sequence[int]) -> str:
    """A crossing in words."""
    lines = [
        f"rank {rank} waits on {waits[rank].name} for rank {following}: {waits[rank].text}"
        for rank, following in zip(circle, [*circle[1:], circle[0]], strict=True)
    ]
    return "\n  ".join([f"{len(circle)} ranks wait for each other, and none can go on", *lines])


class Crossings:
    """Looks for crossings of this rank, on a thread of its own, from the first wait on.

    `waiting`: in what this rank waits for longer than PATIENCE_S; None: in nothing, or it may do something else beside.
    `cross`: called with a wait of this rank that will never end, the ranks of its circle, and why.
    """

    def __init__(
        self,
        board: Board,
        rank: int,
        size: int,
        waiting: Callable[[], Wait | None],
        cross: Callable[[Wait, Sequence[int], str], None],
    ) -> None:
        self._board = board
        self._rank = rank
        self._size = size
        self._waiting = waiting
        self._cross = cross
        self._written: Wait | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="guard:crossings", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread."""
        self._stop.set()

    def _run(self) -> None:
        while not self._stop.wait(PATIENCE_S):
            wait = self._waiting()
            try:
                self._look(wait)
            except Exception:
                # The store has gone, with the job: nothing is left to be looked for.
                return

    def _look(self, wait: Wait | None) -> None:
        if wait is None:
            return
        if wait != self._written:
            self._board.write_mine("wait", json.dumps(asdict(wait)))
            self._written = wait
            return
        if (found := self._board.find(f"crossed/{self._rank}")) is not None:
            attempt, circle, text = json.loads(found)
            if attempt == wait.attempt:
                self._end(wait, circle, text)
                return
        waits = {rank: it for rank in wait.ranks if (it := self._read(rank)) is not None}
        # Further ranks, as far as a rank that waits waits for them.
        for _ in range(self._size):
            more = {it for each in waits.values() for it in each.ranks} - waits.keys()
            found_more = {rank: it for rank in more if (it := self._read(rank)) is not None}
            if not found_more:
                break
            waits |= found_more
        if circle := crossing(waits, self._rank):
            first = circle.index(min(circle))
            circle = circle[first:] + circle[:first]
            text = in_words(waits, circle)
            for rank in circle:
                self._board.write(f"crossed/{rank}", json.dumps([waits[rank].attempt, circle, text]))
            self._end(wait, circle, text)

    def _end(self, wait: Wait, circle: Sequence[int], text: str) -> None:
        # Who reads of this wait from now on does not take it for one that goes on.
        self._board.write_mine("wait", "")
        self._written = None
        self._cross(wait, circle, text)

    def _read(self, rank: int) -> Wait | None:
        entry = self._board.find(f"wait/{rank}")
        if not entry:
            return None
        message: dict[str, Any] = json.loads(entry)
        return Wait(**{**message, "ranks": tuple(message["ranks"])})
