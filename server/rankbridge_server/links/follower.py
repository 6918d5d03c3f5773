"""The links of a group on a member that does not lead it."""

from __future__ import annotations

import time

from rankbridge.link.v1 import link_pb2 as pb

from ..core.admission.admission import Arrival
from ..core.admission.matching import Post
from ..core.gang_calls.messages import Relay, Release, Report
from . import wire
from .group_links import GroupLinks
from .link import Link


class Follower(GroupLinks):
    """Has one link, to the leader."""

    def waiting(self) -> None:
        """None: this rank does not lead."""

    def met(self) -> None:
        """None: this rank does not lead."""

    def withdraw(self, arrival: Arrival) -> None:
        """Asks the leader to withdraw an arrival."""
        self._ask(wire.pack_withdrawal(self.group, arrival))

    def _announce(self, arrival: Arrival) -> None:
        self._tell(wire.pack_arrival(self.group, arrival))

    def recall(self, number: int) -> None:
        """Asks the leader to withdraw a post."""
        self._ask(wire.pack_recall(number))

    def report(self, report: Report) -> None:
        """Sends a report to the leader."""
        self._ask(wire.pack_report(report))

    def release(self, release: Release) -> None:
        """Sends a release to the leader, which passes it on."""
        self._ask(wire.pack_release(release))

    def relay(self, relay: Relay) -> None:
        """Sends a relay to the leader."""
        (link,) = self._links
        link.send(wire.pack_relay(relay))

    def _announce_post(self, post: Post) -> None:
        self._tell(wire.pack_post(post))

    def _ask(self, data: bytes) -> None:
        """Sends what the leader need not answer. The reader of the link acts on a broken one."""
        (link,) = self._links
        try:
            link.send(data)
        except OSError:
            link.shut()

    def _tell(self, data: bytes) -> None:
        (link,) = self._links
        try:
            link.send(data)
        except OSError as error:
            self._broken(link, error)
            raise ConnectionError(str(error)) from error

    def _wait(self, end: float) -> None:
        (link,) = self._links
        if not link.wait(end - time.monotonic()):
            raise TimeoutError(f"no verdict on {self._expected}")
        try:
            with self.lock:
                for body in link.receive():
                    self._take(link, body)
        except (OSError, ValueError) as error:
            self._lost(link, str(error))
            raise ConnectionError(self._closed or str(error)) from error
        self._deliver_all()

    def _idle(self, end: float) -> None:
        self._look(end - time.monotonic())

    def _wake_lane(self) -> None:
        # A lane that waits for a verdict sees the shut link by itself.
        if self._is_idle:
            self._waker.wake()

    def _handle(self, link: Link, frame: pb.Frame) -> None:
        if frame.HasField("verdict"):
            verdict = frame.verdict
            self._settle(verdict.sequence, verdict.operation_id, wire.verdict_of(verdict))
        elif frame.HasField("match"):
            self._matched(frame.match.number, wire.match_of(frame.match))
        elif frame.HasField("command"):
            self._inbox.append(wire.command_of(self.group, frame.command))
        elif frame.HasField("question"):
            self._ask(wire.pack_answer(frame.question.number, self._owner.activity(self.group)))
        elif frame.HasField("release"):
            self._inbox.append(wire.release_of(self.group, frame.release))
        else:
            super()._handle(link, frame)
