"""One group's communicator."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from ..errors import data_failed
from .binding import MPI
from .waiting import ends

# Operations that did not end in time. MPI may still read and write their memory, which they hold.
_abandoned: list[MPI.Request] = []
_abandoning = threading.Lock()


@dataclass(frozen=True, slots=True)
class Count:
    """A member's numbers of collectives, sends and receives on a communicator."""

    collectives: int = 0
    sent: int = 0
    received: int = 0


class Channel:
    """A communicator of one group, which knows whether messages may still be under way.

    `ranks`: MPI's ranks of the members, in group order. `key` names the communicator among its members.
    """

    def __init__(self, comm: MPI.Intracomm, key: str, ranks: tuple[int, ...]) -> None:
        self.key = key
        self.ranks = ranks
        self._comm = comm
        self._lock = threading.Lock()
        self._count = Count()
        self._inside = 0
        self._broken = False
        self._closed = False

    def collective(self, start: Callable[[MPI.Intracomm], MPI.Request], timeout: float) -> None:
        """Run a collective. Raises BACKEND_FAILED when it fails, or has not ended after `timeout` seconds."""
        self._run(start, timeout, Count(collectives=1))

    def send(self, start: Callable[[MPI.Intracomm], MPI.Request], timeout: float) -> None:
        """Run a send; errors are those of `collective`."""
        self._run(start, timeout, Count(sent=1))

    def receive(
        self, start: Callable[[MPI.Intracomm], MPI.Request], timeout: float, status: MPI.Status
    ) -> None:
        """Run a receive, which tells in `status` what came; errors are those of `collective`."""
        self._run(start, timeout, Count(received=1), status)

    def close(self) -> None:
        """Fails the running operations, and all later ones."""
        self._closed = True

    def quiet(self) -> Count | None:
        """What was done on a closed channel, if nothing is under way here and all went well."""
        with self._lock:
            return self._count if self._closed and not self._inside and not self._broken else None

    def free(self) -> None:
        """Frees the communicator of a channel that is quiet on all members."""
        self._comm.Free()

    def _run(
        self,
        start: Callable[[MPI.Intracomm], MPI.Request],
        timeout: float,
        done: Count,
        status: MPI.Status | None = None,
    ) -> None:
        deadline = time.monotonic() + timeout
        with self._lock:
            if self._closed:
                raise data_failed("MPI", "the group was closed")
            self._inside += 1
        ended = False
        try:
            request = start(self._comm)
            ended = ends(request, deadline, lambda: self._closed, status)
            if not ended:
                with _abandoning:
                    _abandoned.append(request)
                raise data_failed(
                    "MPI", "the group was closed" if self._closed else f"no end after {timeout:.1f} s"
                )
        except MPI.Exception as error:
            ended = False
            raise data_failed("MPI", str(error)) from error
        finally:
            self._left(done if ended else None)

    def _left(self, done: Count | None) -> None:
        with self._lock:
            self._inside -= 1
            if done is None:
                self._broken = True
                return
            count = self._count
            self._count = Count(
                count.collectives + done.collectives, count.sent + done.sent, count.received + done.received
            )


def sweep() -> None:
    """Releases the memory of abandoned operations that have ended."""
    with _abandoning:
        _abandoned[:] = [request for request in _abandoned if not _over(request)]


def _over(request: MPI.Request) -> bool:
    try:
        return bool(request.Test())
    except MPI.Exception:
        return True
