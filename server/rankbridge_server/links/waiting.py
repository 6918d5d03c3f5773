"""Verdicts that this sidecar's lanes wait for."""

from __future__ import annotations

import threading
from concurrent.futures import Future, InvalidStateError

from ..core.admission.admission import Arrival, Verdict


class Waiting:
    """One pending arrival for each group at most. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._futures: dict[str, tuple[Arrival, Future[Verdict]]] = {}
        self._closed: str | None = None

    def expect(self, group: str, arrival: Arrival) -> Future[Verdict]:
        """The future of a verdict; it fails at once when the links are closed."""
        future: Future[Verdict] = Future()
        with self._lock:
            if self._closed is None:
                self._futures[group] = (arrival, future)
            else:
                future.set_exception(ConnectionError(self._closed))
        return future

    def settle(self, group: str, sequence: int, operation_id: str, verdict: Verdict) -> None:
        """A verdict has come. One that nobody waits for any more is dropped."""
        with self._lock:
            pending = self._futures.get(group)
            if pending is None or (pending[0].sequence, pending[0].operation_id) != (sequence, operation_id):
                return
            del self._futures[group]
        _answer(pending[1], verdict)

    def forget(self, group: str) -> None:
        """Nobody will rule on this group's arrival."""
        with self._lock:
            pending = self._futures.pop(group, None)
        if pending is not None:
            _answer(pending[1], ConnectionError(f"group {group!r} was taken away"))

    def close(self, reason: str) -> None:
        """Fail everything that waits, and whatever will."""
        with self._lock:
            self._closed = reason
            futures, self._futures = list(self._futures.values()), {}
        for _, future in futures:
            _answer(future, ConnectionError(reason))


def _answer(future: Future[Verdict], answer: Verdict | ConnectionError) -> None:
    try:
        if isinstance(answer, ConnectionError):
            future.set_exception(answer)
        else:
            future.set_result(answer)
    except InvalidStateError:
        return
