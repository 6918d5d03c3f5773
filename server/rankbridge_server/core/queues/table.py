"""The queues of one rank in one group."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Protocol

from ..errors import BridgeError, ErrorCode
from .view import QueueView


class End(Protocol):
    """One rank's end of a queue."""

    @property
    def view(self) -> QueueView:
        """The queue."""

    @property
    def finished(self) -> bool:
        """Whether the end has released everything: thread, memory and sockets."""

    def shut_down(self) -> None:
        """Ends it on purpose: waiting calls get ABORTED, and the other ends learn of it. Does not wait."""

    def close(self, error: BridgeError) -> None:
        """Ends it with its group: waiting calls get `error`. Does not wait."""


class Bystander:
    """The end of a member that neither writes nor reads."""

    finished = True

    def __init__(self, view: QueueView) -> None:
        self.view = view

    def shut_down(self) -> None:
        """Does nothing: no call waits here."""

    def close(self, error: BridgeError) -> None:
        """Does nothing: no call waits here."""


class QueueTable:
    """This rank's ends of a group's queues, by name. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ends: dict[str, End] = {}
        # The ends that were shut down, and from which others still read.
        self._leaving: list[End] = []
        self._closed: BridgeError | None = None

    def __contains__(self, name: str) -> bool:
        return name in self._ends

    def views(self) -> Sequence[QueueView]:
        """All queues, by name."""
        with self._lock:
            return [self._ends[name].view for name in sorted(self._ends)]

    def find(self, name: str) -> End:
        """The end of that name. Raises UNKNOWN_QUEUE."""
        with self._lock:
            end = self._ends.get(name)
        if end is None:
            raise _unknown(name)
        return end

    def add(self, end: End) -> None:
        """Adds an end. Raises NAME_EXISTS, or the error that has ended the group; the caller then closes the end."""
        with self._lock:
            if self._closed is not None:
                raise BridgeError(self._closed.failure)
            if end.view.name in self._ends:
                raise name_exists(end.view.name)
            self._ends[end.view.name] = end

    def shut_down(self, name: str) -> QueueView:
        """Removes an end and shuts it down. Raises UNKNOWN_QUEUE."""
        with self._lock:
            end = self._ends.pop(name, None)
            if end is None:
                raise _unknown(name)
            self._leaving = [it for it in self._leaving if not it.finished]
            self._leaving.append(end)
        end.shut_down()
        return end.view

    def close(self, error: BridgeError) -> None:
        """Closes all ends, because the group has ended."""
        with self._lock:
            self._closed = error
            ends = [*self._ends.values(), *self._leaving]
            self._ends, self._leaving = {}, []
        for end in ends:
            end.close(error)


def name_exists(name: str) -> BridgeError:
    """The error for a name that a queue has already."""
    return BridgeError.of(ErrorCode.NAME_EXISTS, f"there is a queue {name!r} in the group already")


def _unknown(name: str) -> BridgeError:
    return BridgeError.of(ErrorCode.UNKNOWN_QUEUE, f"no queue {name!r} in the group on this rank")
