"""One sidecar's part in the admissions of one group, and what its leader and its followers share."""

from __future__ import annotations

import socket
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Protocol

from rankbridge.link.v1 import link_pb2 as pb

from ..core.admission.admission import Arrival, Notice, Verdict
from ..core.admission.matching import Match, Post
from ..core.gang_calls.messages import GangMessage, Relay, Report
from ..core.links import Ended
from . import wire
from .link import Link
from .readers import Readers, Turn


class Owner(Protocol):
    """Whose parties these are."""

    def wake_before(self, due: float | None) -> None:
        """Have the links thread look again, if it would not before `due`; None: at once."""
        ...

    def forget(self, link: Link) -> None:
        """This link has ended."""
        ...

    def generation_ended(self, ended: Ended) -> None:
        """The generation is over."""
        ...

    def deliver(self, message: GangMessage) -> None:
        """A letter has come."""
        ...

    def deliver_notice(self, group: str, ranks: Sequence[int], notice: Notice) -> None:
        """What is told of the admissions of a group that this rank leads."""
        ...

    @property
    def rank(self) -> int:
        """Rank in the gang."""
        ...


class GroupLinks(ABC):
    """Links that one thread at a time reads, and a lane that waits: for a verdict, or, at rest, for work."""

    def __init__(self, group: str, owner: Owner, readers: Readers) -> None:
        self.group = group
        self.lock = threading.RLock()
        self.turn = Turn()
        self._owner = owner
        self._readers = readers
        # Held by the lane while it waits, so that nobody gives back sockets that it reads.
        self._waiting = threading.Lock()
        self._links: list[Link] = []
        self._alive: dict[int, Link] = {}
        self._expected: Arrival | None = None
        self._verdict: Verdict | None = None
        self._closed = ""
        self._parted = False
        self._posts: dict[int, Callable[[Match | None], None]] = {}
        self._is_idle = False
        # Letters in the order in which they came. Whoever reads gives them on, one thread at a time, and without the
        # lock: who holds what an operation needs may be waiting for that.
        self._inbox: deque[GangMessage] = deque()
        self._delivering = threading.RLock()
        self._wake_out, self._wake_in = socket.socketpair()
        # When it is full, there is word enough for the lane.
        self._wake_in.setblocking(False)

    @property
    def links(self) -> list[Link]:
        """Those that have not ended."""
        return list(self._alive.values())

    def filenos(self) -> Iterable[int]:
        """The file descriptors of links that have not ended."""
        return self._alive

    def attach(self, link: Link) -> None:
        """Use a link that has said hello."""
        with self.lock:
            self._links.append(link)
            self._alive[link.fileno()] = link

    def admit(self, arrival: Arrival, arrived: Callable[[], None], patience: float) -> Verdict:
        """Say that this rank has come, call `arrived`, and wait for the verdict, at most `patience` seconds."""
        end = time.monotonic() + patience
        try:
            with self._waiting:
                try:
                    with self.lock:
                        self._readers.take(self)
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

    def wait(self, has_work: Callable[[], bool]) -> bool:
        """Read the links until there is work for the lane; False: they are closed. See `core.links.Rest`."""
        with self._waiting:
            with self.lock:
                self._readers.take(self)
                self._is_idle = True
            while not self._closed and not has_work():
                self._idle()
            self._is_idle = False
            with self.lock:
                if self._closed:
                    self.turn.lane = 0
                else:
                    # What the lane does now may take its time.
                    self._leave_links()
        if self._parted:
            self._give_back()
        return not self._closed

    def wake_lane(self) -> None:
        """There is work for the lane."""
        if self._is_idle and self.turn.lane != threading.get_ident():
            self._wake()

    def post(self, post: Post, answered: Callable[[Match | None], None]) -> None:
        """Tell the leader of a send or a receive; `answered` gets its word, None when the group or all ends before."""
        with self.lock:
            if self._closed:
                raise ConnectionError(self._closed)
            self._posts[post.number] = answered
            try:
                self._announce_post(post)
            except OSError:
                # Who is told so is not answered as well.
                self._posts.pop(post.number, None)
                raise

    def receive(self, link: Link) -> None:
        """Read a link and act on what has come, unless another thread reads it.

        Its end is the generation's, unless it said goodbye.
        """
        self._read(link)
        self._deliver_all()

    def expire(self) -> float | None:
        """Do what is due; returns when something is due again, if it is."""
        return None

    def due(self) -> float | None:
        """When `expire` has something to do."""
        return None

    @abstractmethod
    def withdraw(self, arrival: Arrival) -> None:
        """Ask that this rank may leave again."""

    @abstractmethod
    def report(self, report: Report) -> None:
        """Tell the leader what became of this rank's part of a gang call."""

    def command(self, number: int, parts: Sequence[bytes]) -> None:
        """Send the others their parts of a gang call."""
        raise ConnectionError(f"rank {self._owner.rank} does not lead group {self.group!r}")

    def refuse(self, operation_id: str, verdict: Verdict) -> None:
        """Rule that an operation is not to be."""
        raise ConnectionError(f"rank {self._owner.rank} does not lead group {self.group!r}")

    @abstractmethod
    def relay(self, relay: Relay) -> None:
        """Pass a relay on, towards its target. Raises OSError when the link is closed."""

    @abstractmethod
    def recall(self, number: int) -> None:
        """Ask for a post back."""

    def close(self, reason: str) -> None:
        """Wake the lane: there will be no verdict. Sockets are only shut, because it may be reading them."""
        self._closed = reason
        for link in self.links:
            link.shut()
        self._drop_posts()
        self._wake_lane()

    def part(self) -> None:
        """The group has ended: say goodbye on every link. Each is given back when the other side has parted too."""
        with self.lock:
            self._closed, self._parted = "its group has ended", True
            for link in self.links:
                link.part()
                if self.turn.lane:
                    # Wakes the lane, which then is the one to see the link's end.
                    link.shut()
        self._drop_posts()
        self._wake_lane()
        self._give_back()

    def dispose(self) -> None:
        """Give all sockets back, once the lane is out."""
        with self._waiting:
            for link in self._links:
                link.close()
            self._wake_out.close()
            self._wake_in.close()

    def _leave_links(self) -> None:
        """The lane does something else; the lock is held."""
        if self._readers.give_back(self):
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
        """Tell the leader that this rank has come; the lock is held."""

    @abstractmethod
    def _announce_post(self, post: Post) -> None:
        """Tell the leader of a post; the lock is held."""

    @abstractmethod
    def _wait(self, end: float) -> None:
        """Wait until something has come, and act on it. Raises TimeoutError at `end`."""

    @abstractmethod
    def _idle(self) -> None:
        """Wait until something has come, and act on it, or until `_wake`."""

    def _wake_lane(self) -> None:
        """Let the lane look again; it may not be there."""
        self._wake()

    def _wake(self) -> None:
        # Disposed of: there is no lane to wake.
        with suppress(OSError):
            self._wake_in.send(b"x")

    def _deliver_all(self) -> None:
        """Give on the letters that have come. The lock is not held."""
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
        """The lock is held, so that matches are acted on in the order in which they come."""
        answered = self._posts.pop(number, None)
        if answered is not None:
            answered(match)

    def _drop_posts(self) -> None:
        # Without the lock: whoever closes may be holding another party's.
        posts, self._posts = self._posts, {}
        for answered in posts.values():
            answered(None)

    def _lost(self, link: Link, reason: str) -> None:
        with self.lock:
            if self._alive.pop(link.fileno(), None) is None:
                return
        self._owner.forget(link)
        if link.leaving or self._closed:
            self._closed = self._closed or "its group has ended"
            self._wake_lane()
            self._give_back()
        else:
            self._owner.generation_ended(Ended(link.rank or 0, True, reason))

    def _broken(self, link: Link, error: OSError) -> None:
        # What the other side said before it hung up tells more than that it did. Who reads this link sees its end.
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
