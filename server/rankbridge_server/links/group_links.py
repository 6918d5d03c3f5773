"""One sidecar's links in one group: the common part of leaders and followers."""

from __future__ import annotations

import math
import select
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol

from rankbridge.link.v1 import link_pb2 as pb

from ..core import links as core
from ..core.activity import Activity
from ..core.admission.admission import Arrival, Notice, Verdict
from ..core.admission.matching import Match, Post
from ..core.gang_calls.messages import GangMessage, Relay
from ..core.links import Ended
from ..core.waker import Waker
from . import wire
from .link import Link
from .readers import Readers, Turn


class Owner(Protocol):
    """What a group's links need from the links of their generation."""

    def wake_before(self, due: float | None) -> None:
        """Wakes the links thread no later than `due`; None: at once."""

    def forget(self, link: Link) -> None:
        """Drops a link that has ended."""

    def generation_ended(self, ended: Ended) -> None:
        """Reports that the generation is over."""

    def deliver(self, message: GangMessage) -> None:
        """Delivers a message of a gang call."""

    def deliver_notice(self, group: str, ranks: Sequence[int], notice: Notice) -> None:
        """Delivers a notice of admissions in a group that this rank leads."""

    @property
    def rank(self) -> int:
        """This sidecar's rank in the gang."""

    def activity(self, group: str) -> Activity:
        """What this rank does while members of a group wait for it."""


class GroupLinks(core.GroupLinks, ABC):
    """Links that one thread at a time reads, and a lane that waits for a verdict or, idle, for work."""

    def __init__(self, group: str, owner: Owner, readers: Readers) -> None:
        self.group = group
        self._owner = owner
        self._readers = readers
        # The lane holds it while it waits, so that no thread closes the sockets that it reads.
        self._waiting = threading.Lock()
        self._links: list[Link] = []
        self._alive: dict[int, Link] = {}
        self.turn = Turn(self._alive.keys)
        self.lock = self.turn.lock
        self._expected: Arrival | None = None
        self._verdict: Verdict | None = None
        self._closed = ""
        self._parted = False
        self._posts: dict[int, Callable[[Match | None], None]] = {}
        self._is_idle = False
        # Messages in the order in which they came. The reader delivers them, one thread at a time and without the lock:
        # a thread that holds a lock which an operation needs may be waiting for this one.
        self._inbox: deque[GangMessage] = deque()
        self._delivering = threading.RLock()
        self._waker = Waker()
        self._poll = select.poll()
        self._poll.register(self._waker, select.POLLIN)

    @property
    def links(self) -> list[Link]:
        """The links that have not ended."""
        return list(self._alive.values())

    def attach(self, link: Link) -> None:
        """Adds a link that has said hello."""
        with self.lock:
            self._links.append(link)
            self._alive[link.fileno()] = link
            self._poll.register(link, select.POLLIN)

    def admit(self, arrival: Arrival, arrived: Callable[[], None], patience: float) -> Verdict:
        """Sends this rank's arrival, calls `arrived`, and waits for the verdict. See `core.links.GroupLinks`."""
        end = time.monotonic() + patience
        try:
            with self._waiting:
                try:
                    with self.lock:
                        self._readers.take(self.turn)
                        self._expect(arrival)
                        self._announce(arrival)
                    arrived()
                    while (verdict := self._verdict) is None:
                        if self._closed:
                            raise ConnectionError(self._closed)
                        self._wait(end)
                    return verdict
                finally:
                    with self.lock:
                        self._expected = None
                        self._leave_links()
        finally:
            if self._parted:
                self._give_back()

    def wait(self, has_work: Callable[[], bool], patience: float = math.inf) -> bool:
        """Reads the links until the lane has work. Returns False when they are closed. See `core.links.GroupLinks`."""
        end = time.monotonic() + patience
        try:
            with self._waiting:
                try:
                    with self.lock:
                        self._readers.take(self.turn)
                        self._is_idle = True
                    while not self._closed and not has_work() and (end == math.inf or time.monotonic() < end):
                        self._idle(end)
                finally:
                    self._is_idle = False
                    with self.lock:
                        if self._closed:
                            self.turn.lane = 0
                        else:
                            # The lane's work may take long.
                            self._leave_links()
        finally:
            if self._parted:
                self._give_back()
        return not self._closed

    def wake_lane(self) -> None:
        """Wakes the idle lane, because it has work."""
        if self._is_idle and self.turn.lane != threading.get_ident():
            self._waker.wake()

    def post(self, post: Post, answered: Callable[[Match | None], None], *, waits_next: bool = False) -> None:
        """Posts a send or a receive to the leader. See `core.links.GroupLinks`."""
        with self.lock:
            if self._closed:
                raise ConnectionError(self._closed)
            self._posts[post.number] = answered
            try:
                self._announce_post(post)
            except OSError:
                # The exception tells the caller; `answered` must not be called, too.
                self._posts.pop(post.number, None)
                raise
            if not waits_next:
                self._readers.attend(self.turn)

    def receive(self, link: Link) -> None:
        """Reads a link and acts on its frames, unless another thread reads it.

        The end of a link without a goodbye ends the generation.
        """
        self._read(link)
        self._deliver_all()

    def expire(self) -> float | None:
        """Acts on what is due. Returns when something is due next, if anything is."""
        return None

    def due(self) -> float | None:
        """When `expire` is due."""
        return None

    def command(self, number: int, parts: Sequence[bytes]) -> None:
        """Sends the other members their parts of a gang call. Raises ConnectionError on a follower."""
        raise ConnectionError(f"rank {self._owner.rank} does not lead group {self.group!r}")

    def refuse(self, operation_id: str, verdict: Verdict) -> None:
        """Refuses an operation for all members. Raises ConnectionError on a follower."""
        raise ConnectionError(f"rank {self._owner.rank} does not lead group {self.group!r}")

    def close(self, reason: str) -> None:
        """Ends the links, and wakes the lane. Only shuts the sockets, because the lane may be reading them."""
        self._closed = reason
        for link in self.links:
            link.shut()
        self._drop_posts()
        self._wake_lane()

    def part(self) -> None:
        """Says goodbye on every link, because the group has ended. Links close when the other side has parted, too."""
        with self.lock:
            self._closed, self._parted = "its group has ended", True
            for link in self.links:
                link.part()
                if self.turn.lane:
                    # Wakes the lane, which then acts on the link's end.
                    link.shut()
        self._drop_posts()
        self._wake_lane()
        self._give_back()

    def dispose(self) -> None:
        """Closes all sockets, once the lane does not use them."""
        with self._waiting:
            for link in self._links:
                link.close()
            self._waker.close()

    def _leave_links(self) -> None:
        """Hands the links over to the links thread. The caller holds the lock."""
        if self._readers.give_back(self.turn, is_awaited=bool(self._posts)):
            self._owner.wake_before(None)
        elif (due := self.due()) is not None:
            self._owner.wake_before(due)

    def _read(self, link: Link) -> None:
        try:
            with self.lock:
                if self.turn.is_mine():
                    for body in link.receive():
                        self._take(link, body)
        except (OSError, ValueError) as error:
            self._lost(link, str(error))

    def _expect(self, arrival: Arrival) -> None:
        self._expected, self._verdict = arrival, None

    @abstractmethod
    def _announce(self, arrival: Arrival) -> None:
        """Sends this rank's arrival to the leader. The caller holds the lock."""

    @abstractmethod
    def _announce_post(self, post: Post) -> None:
        """Sends a post to the leader. The caller holds the lock."""

    @abstractmethod
    def _wait(self, end: float) -> None:
        """Waits until a frame has come, and acts on it. Raises TimeoutError at `end`."""

    @abstractmethod
    def _idle(self, end: float) -> None:
        """Waits until a frame has come, and acts on it, or until `_wake_lane`, or `end`."""

    def _look(self, timeout: float) -> bool:
        """Waits `timeout` seconds for frames or `_wake`, and acts on them. Returns whether any have come."""
        events = self._poll.poll(None if timeout == math.inf else max(0.0, timeout) * 1000)
        for fileno, _ in events:
            link = self._alive.get(fileno)
            if link is not None:
                self.receive(link)
            elif fileno == self._waker.fileno():
                self._waker.clear()
        return bool(events)

    def _wake_lane(self) -> None:
        """Wakes the lane if it waits for its links."""
        self._waker.wake()

    def _deliver_all(self) -> None:
        """Delivers the messages that have come. The caller does not hold the lock."""
        while self._inbox:
            with self._delivering:
                if self._inbox:
                    self._owner.deliver(self._inbox.popleft())

    def _take(self, link: Link, body: bytes) -> None:
        self._handle(link, wire.parse(body))

    def _handle(self, link: Link, frame: pb.Frame) -> None:
        kind = frame.WhichOneof("kind")
        if kind == "abort":
            self._owner.generation_ended(wire.ended_of(frame.abort))
        elif kind == "goodbye":
            link.leaving = True
        elif kind == "relay":
            self._relayed(wire.relay_of(frame.relay))
        elif kind != "beat":
            raise ValueError(f"a frame of kind {kind} at the wrong time")

    def _relayed(self, relay: Relay) -> None:
        self._inbox.append(relay)

    def _settle(self, sequence: int, operation_id: str, verdict: Verdict) -> bool:
        expected = self._expected
        if expected is None or (expected.sequence, expected.operation_id) != (sequence, operation_id):
            return False
        self._verdict = verdict
        return True

    def _matched(self, number: int, match: Match) -> None:
        """Passes on a match. The caller holds the lock, so that matches keep their order."""
        answered = self._posts.pop(number, None)
        if answered is not None:
            answered(match)

    def _drop_posts(self) -> None:
        # Without the lock: the closing thread may hold that of another group's links.
        posts, self._posts = self._posts, {}
        for answered in posts.values():
            answered(None)

    def _lost(self, link: Link, reason: str) -> None:
        with self.lock:
            if self._alive.pop(link.fileno(), None) is None:
                return
            self._poll.unregister(link)
        self._owner.forget(link)
        stays = self._has_left(link)
        if not link.leaving and not self._closed:
            self._owner.generation_ended(Ended(link.rank or 0, True, reason))
        elif not stays:
            self._closed = self._closed or "its group has ended"
            self._drop_posts()
            self._wake_lane()
            self._give_back()

    def _has_left(self, link: Link) -> bool:
        """Lets go of a member that has left, if the group goes on without it."""
        return False

    def _broken(self, link: Link, error: OSError) -> None:
        # The last frames of the other side say more than the broken link. The reader of the link sees its end.
        if self.turn.is_mine():
            self._read(link)
            self._lost(link, str(error))
        else:
            link.shut()

    def _give_back(self) -> None:
        with self.lock:
            if not self._parted or self._alive or self.turn.lane:
                return
        self.dispose()
