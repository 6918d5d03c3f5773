"""A member of a group that does not lead it."""

from __future__ import annotations

import time

from rankbridge.link.v1 import link_pb2 as pb

from ..core.admission import Arrival
from ..core.matching import Post
from . import wire
from .link import Link
from .party import Party


class Follower(Party):
    """Has one link, to the leader. Whatever its lane waits for comes on that link."""

    def withdraw(self, arrival: Arrival) -> None:
        """Ask the leader."""
        self._tell(wire.pack_withdrawal(self.group, arrival))

    def _announce(self, arrival: Arrival) -> None:
        self._tell(wire.pack_arrival(self.group, arrival))

    def recall(self, number: int) -> None:
        """Ask the leader."""
        self._tell(wire.pack_recall(number))

    def _announce_post(self, post: Post) -> None:
        self._tell(wire.pack_post(post))

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

    def _rouse(self) -> None:
        # The lane waits for the link, and sees when it is shut.
        return

    def _handle(self, link: Link, frame: pb.Frame) -> None:
        if frame.HasField("verdict"):
            it = frame.verdict
            self._settle(it.sequence, it.operation_id, wire.verdict_of(it))
        elif frame.HasField("match"):
            self._matched(frame.match.number, wire.match_of(frame.match))
        else:
            super()._handle(link, frame)
