"""One sidecar's part in the admissions of one group: its leader, or a follower of it."""

from __future__ import annotations

import select
import socket
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Protocol

from rankbridge.link.v1 import link_pb2 as pb

from ..core.admission import Admission, Arrival, Reply, Verdict
from ..core.links import Ended
from . import wire
from .link import Link


class Switch(Protocol):
    """Who else reads links: a lane that waits for a verdict reads its group's links itself, without a hand-over."""

    def take(self, links: Sequence[Link]) -> None:
        """Stop reading these links."""
        ...

    def give_back(self, links: Sequence[Link], due: float | None) -> None:
        """Read them again; something is to be done at `due`, if anything is."""
        ...

    def forget(self, link: Link) -> None:
        """This link has ended."""
        ...

    def over(self, ended: Ended) -> None:
        """The generation is over."""
        ...


class Party(ABC):
    """What leader and follower share: links that one thread at a time reads, and a lane that waits."""

    def __init__(self, group: str, switch: Switch) -> None:
        self.group = group
        self.links: list[Link] = []
        # Held by the lane while it waits, so that nobody closes sockets that it polls.
        self.waiting = threading.Lock()
        self._switch = switch
        self._lock = threading.RLock()
        self._poll = select.poll()
        self._wake_out, self._wake_in = socket.socketpair()
        self._poll.register(self._wake_out, select.POLLIN)
        self._by_fd: dict[int, Link] = {}
        self._expected: Arrival | None = None
        self._verdict: Verdict | None = None
        self._closed = ""
        self._parted = False
        self._lane = 0

    def attach(self, link: Link) -> None:
        """Use a link that has said hello."""
        with self._lock:
            self.links.append(link)
            self._by_fd[link.fileno()] = link
            self._poll.register(link, select.POLLIN)

    def admit(self, arrival: Arrival, arrived: Callable[[], None], patience: float) -> Verdict:
        """Say that this rank has come, call `arrived`, and wait for the verdict, at most `patience` seconds."""
        end = time.monotonic() + patience
        with self.waiting:
            self._switch.take(self.links)
            try:
                self._come(arrival)
                arrived()
                while (verdict := self._verdict) is None:
                    self._wait(end)
                return verdict
            finally:
                self._expected = None
                self._switch.give_back(self.links, self.due())

    def receive(self, link: Link) -> None:
        """Read a link and act on what has come; its end is the generation's, unless it said goodbye."""
        try:
            with self._lock:
                for frame in link.receive():
                    self._handle(link, frame)
        except (OSError, ValueError) as error:
            self._lost(link, str(error))

    def expire(self) -> float | None:
        """Do what is due; returns when something is due again, if it is."""
        return None

    def due(self) -> float | None:
        """When `expire` has something to do."""
        return None

    @abstractmethod
    def withdraw(self, arrival: Arrival) -> None:
        """Ask that this rank may leave again."""

    def close(self, reason: str) -> None:
        """Wake the lane: there will be no verdict. Sockets are only shut, because it may be polling them."""
        self._closed = reason
        for link in self.links:
            link.shut()
        self._rouse()

    def part(self) -> None:
        """The group has ended: say goodbye on every link. Each is given back when the other side has parted too."""
        with self._lock:
            self._closed, self._parted = "its group has ended", True
            for link in self.links:
                link.part()
        self._rouse()
        self._give_back()

    def dispose(self) -> None:
        """Give all sockets back, once the lane is out."""
        with self.waiting:
            for link in self.links:
                link.close()
            self._wake_out.close()
            self._wake_in.close()

    def _come(self, arrival: Arrival) -> None:
        with self._lock:
            self._lane = threading.get_ident()
            self._expected, self._verdict = arrival, None
            self._announce(arrival)

    @abstractmethod
    def _announce(self, arrival: Arrival) -> None:
        """Tell the leader that this rank has come; the lock is held."""

    def _handle(self, link: Link, frame: pb.Frame) -> None:
        kind = frame.WhichOneof("kind")
        if kind == "abort":
            self._switch.over(wire.ended_of(frame.abort))
        elif kind == "goodbye":
            link.leaving = True
        elif kind != "beat":
            raise ValueError(f"a frame of kind {kind} at the wrong time")

    def _wait(self, end: float) -> None:
        if self._closed:
            raise ConnectionError(self._closed)
        due = self.due()
        left = (end if due is None else min(end, due)) - time.monotonic()
        events = self._poll.poll(max(0.0, left) * 1000)
        for fd, _ in events:
            # One that is neither was lost meanwhile, seen by the other reader.
            link = self._by_fd.get(fd)
            if link is not None:
                self.receive(link)
            elif fd == self._wake_out.fileno():
                self._wake_out.recv(64)
        if not events:
            self.expire()
            if self._verdict is None and time.monotonic() >= end:
                raise TimeoutError(f"no verdict on {self._expected}")

    def _settle(self, sequence: int, operation_id: str, verdict: Verdict) -> None:
        expected = self._expected
        if expected is not None and (expected.sequence, expected.operation_id) == (sequence, operation_id):
            self._verdict = verdict
            if threading.get_ident() != self._lane:
                # Read by the thread that was about to leave this link to the lane.
                self._rouse()

    def _lost(self, link: Link, reason: str) -> None:
        with self._lock:
            if self._by_fd.pop(link.fileno(), None) is None:
                return
            self._poll.unregister(link)
        self._switch.forget(link)
        if link.leaving or self._closed:
            self._closed = self._closed or "its group has ended"
            self._rouse()
            self._give_back()
        else:
            self._switch.over(Ended(link.rank or 0, True, reason))

    def _broken(self, link: Link, error: OSError) -> None:
        # What the other side said before it hung up tells more than that it did.
        self.receive(link)
        self._lost(link, str(error))

    def _give_back(self) -> None:
        with self._lock:
            if not self._parted or self._by_fd:
                return
        self.dispose()

    def _rouse(self) -> None:
        try:
            self._wake_in.send(b"x")
        except OSError:
            # Disposed of: there is no lane to wake.
            return


class Follower(Party):
    """A member that is not the leader: one link, to it."""

    def withdraw(self, arrival: Arrival) -> None:
        """Ask the leader."""
        self._tell(wire.pack_withdrawal(self.group, arrival))

    def _announce(self, arrival: Arrival) -> None:
        self._tell(wire.pack_arrival(self.group, arrival))

    def _tell(self, data: bytes) -> None:
        (link,) = self.links
        try:
            link.send(data)
        except OSError as error:
            self._broken(link, error)
            raise ConnectionError(str(error)) from error

    def _handle(self, link: Link, frame: pb.Frame) -> None:
        if frame.WhichOneof("kind") == "verdict":
            it = frame.verdict
            self._settle(it.sequence, it.operation_id, wire.verdict_of(it))
        else:
            super()._handle(link, frame)


class Leader(Party):
    """The member that rules: a link from every other one."""

    def __init__(self, group: str, switch: Switch, ranks: Sequence[int]) -> None:
        super().__init__(group, switch)
        self.ranks = tuple(ranks)
        self._admission = Admission(len(ranks))
        self._members: dict[int, Link] = {}

    def attach(self, link: Link) -> None:
        """Use a member's link. Raises ValueError when it is no member's, or a second one's."""
        place = self.ranks.index(link.rank) if link.rank in self.ranks[1:] else None
        if place is None or place in self._members:
            raise ValueError(f"rank {link.rank} has no place in group {self.group!r} to link for")
        self._members[place] = link
        super().attach(link)

    def expire(self) -> float | None:
        """Rule on what is overdue."""
        with self._lock:
            self._send(self._admission.expire(time.monotonic()))
            return self._admission.deadline

    def due(self) -> float | None:
        """When the round that is under way is overdue."""
        return self._admission.deadline

    def withdraw(self, arrival: Arrival) -> None:
        """Let this rank leave its own round."""
        with self._lock:
            self._send(self._admission.withdraw(0, arrival.sequence, arrival.operation_id))
        self._rouse()

    def _announce(self, arrival: Arrival) -> None:
        self._send(self._admission.arrive(0, arrival, time.monotonic()))

    def _handle(self, link: Link, frame: pb.Frame) -> None:
        kind = frame.WhichOneof("kind")
        place = self.ranks.index(link.rank or 0)
        if kind == "arrival":
            self._send(self._admission.arrive(place, wire.arrival_of(frame.arrival), time.monotonic()))
        elif kind == "withdrawal":
            it = frame.withdrawal
            self._send(self._admission.withdraw(place, it.sequence, it.operation_id))
        else:
            super()._handle(link, frame)

    def _send(self, replies: Sequence[Reply]) -> None:
        # The others first: this rank's lane needs no message.
        packed: dict[tuple[int, str], bytes] = {}
        for reply in replies:
            link = self._members.get(reply.rank_in_group)
            if link is not None:
                # In a round that agrees all arrivals are alike, and one message answers all of them.
                key = reply.arrival.sequence, reply.arrival.operation_id
                if key not in packed:
                    packed[key] = wire.pack_reply(self.group, reply)
                try:
                    link.send(packed[key])
                except OSError as error:
                    self._broken(link, error)
        for reply in replies:
            if reply.rank_in_group == 0:
                self._settle(reply.arrival.sequence, reply.arrival.operation_id, reply.verdict)
