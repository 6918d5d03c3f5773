"""Matching: the leader of a group brings its members' sends and receives together.

A state machine without clocks, threads or sockets; `links` drives it. Times are seconds of any one clock.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from typing import NamedTuple

from .admission import Member, Ruling

TRANSFERS = 2**31
"""After this many transfers, their numbers begin again at 0."""


class Side(Enum):
    """The end of a transfer."""

    SEND = auto()
    RECV = auto()


class Post(NamedTuple):
    """A member's request to send or to receive. `number`: unique among the member's own posts.

    `peer`: rank in group of the other end; None, for a receive only: any. `kind` and `spec` of both ends must be equal;
    an empty `spec` of a receive takes any. `timeout`: seconds that the member waits for the other end. `payload`: bytes
    from the sender to the receiver. Only posts of the same `channel` meet; that of callers is "". `site`: the line of
    code that has called; it is not compared.
    """

    number: int
    side: Side
    peer: int | None
    tag: int
    kind: str
    spec: str
    timeout: float
    payload: bytes = b""
    channel: str = ""
    site: str = ""

    def __str__(self) -> str:
        what = f"{self.kind} {self.spec}".rstrip()
        if self.side is Side.SEND:
            return f"send of {what} to rank_in_group {self.peer} tag={self.tag}"
        source = "any" if self.peer is None else f"rank_in_group {self.peer}"
        return f"receive of {what} from {source} tag={self.tag}"


@dataclass(frozen=True, slots=True)
class Match:
    """The leader's answer to a post.

    `transfer`: with GO, a number that both ends share. `payload`: the sender's. `peer`: rank in group of the other end.
    `theirs`, `site`: with MISMATCH, the text of its post and the line that has called.
    `missing`: with PEER_MISSING, the members that may have been the other end.
    """

    ruling: Ruling
    transfer: int = 0
    peer: int = 0
    theirs: str = ""
    payload: bytes = b""
    site: str = ""
    missing: tuple[Member, ...] = ()


class Answer(NamedTuple):
    """A match for one member, and the number of its post."""

    rank_in_group: int
    number: int
    match: Match


@dataclass(frozen=True, slots=True)
class _Waiting:
    rank_in_group: int
    post: Post
    due: float


class Matching:
    """The posts of one group that wait for their other end, in the order in which they came.

    Posts that fit by source, destination and tag meet, the earliest first. Two posts that meet and differ in kind or
    spec both fail with MISMATCH; no other post is touched. Answers are in the order in which both ends must act.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._waiting: list[_Waiting] = []
        self._transfers = 0

    @property
    def deadline(self) -> float | None:
        """When `expire` is due; None: not while nothing changes."""
        if not self._waiting:
            return None
        due = min(it.due for it in self._waiting)
        return None if due == math.inf else due

    def post(self, rank_in_group: int, post: Post, now: float) -> list[Answer]:
        """Adds a member's post; returns the answers to send. Raises ValueError for a post that can never match."""
        if not 0 <= rank_in_group < self._size:
            raise ValueError(f"rank_in_group {rank_in_group} is not in a group of {self._size}")
        if post.peer == rank_in_group or (post.peer is None and post.side is Side.SEND):
            raise ValueError(f"rank_in_group {rank_in_group} cannot post a {post}")
        mine = _Waiting(rank_in_group, post, now + post.timeout)
        for at, other in enumerate(self._waiting):
            if _meet(mine, other):
                del self._waiting[at]
                return self._rule(mine, other)
        self._waiting.append(mine)
        return []

    def recall(self, rank_in_group: int, number: int) -> list[Answer]:
        """Withdraws a member's post. Does nothing after the match: the answer is on its way."""
        return self._remove(
            lambda waiting: (waiting.rank_in_group, waiting.post.number) == (rank_in_group, number),
            lambda waiting: Match(Ruling.WITHDRAWN),
        )

    def forget(self, rank_in_group: int) -> None:
        """Drops the posts of a member that has left, and waits for no answer."""
        self._waiting = [it for it in self._waiting if it.rank_in_group != rank_in_group]

    def expire(self, now: float) -> list[Answer]:
        """Answers the posts whose time has passed."""
        return self._remove(lambda waiting: waiting.due <= now, self._nobody_came)

    def _nobody_came(self, waiting: _Waiting) -> Match:
        peer, me = waiting.post.peer, waiting.rank_in_group
        places = (peer,) if peer is not None else (it for it in range(self._size) if it != me)
        return Match(Ruling.PEER_MISSING, missing=tuple(Member(place, None) for place in places))

    def _remove(self, over: Callable[[_Waiting], bool], match: Callable[[_Waiting], Match]) -> list[Answer]:
        gone = [waiting for waiting in self._waiting if over(waiting)]
        if gone:
            self._waiting = [waiting for waiting in self._waiting if not over(waiting)]
        return [Answer(waiting.rank_in_group, waiting.post.number, match(waiting)) for waiting in gone]

    def _rule(self, mine: _Waiting, other: _Waiting) -> list[Answer]:
        send, recv = (mine, other) if mine.post.side is Side.SEND else (other, mine)
        agree = send.post.kind == recv.post.kind and recv.post.spec in ("", send.post.spec)
        ruling, number, payload = Ruling.MISMATCH, 0, b""
        if agree:
            ruling, number, payload = Ruling.GO, self._transfers, send.post.payload
            self._transfers = (self._transfers + 1) % TRANSFERS
        sides = [("", "")] * 2 if agree else [(str(it.post), it.post.site) for it in (recv, send)]
        to_sender = Match(ruling, number, recv.rank_in_group, sides[0][0], site=sides[0][1])
        to_receiver = Match(ruling, number, send.rank_in_group, sides[1][0], payload, sides[1][1])
        return [
            Answer(send.rank_in_group, send.post.number, to_sender),
            Answer(recv.rank_in_group, recv.post.number, to_receiver),
        ]


def _meet(one: _Waiting, other: _Waiting) -> bool:
    return (
        one.post.side is not other.post.side
        and (one.post.tag, one.post.channel) == (other.post.tag, other.post.channel)
        and one.post.peer in (None, other.rank_in_group)
        and other.post.peer in (None, one.rank_in_group)
    )
