"""What calls of functions report while they run."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict, deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ..errors import exhausted
from ..operations.outcome import Packed

KEPT_REPORTS = 1024
KEPT_BYTES = 4 * 1024 * 1024
"""Of one call: the newest are kept."""
KEPT_CALLS = 256
MAX_READERS = 64


@dataclass(frozen=True, slots=True)
class Report:
    """One report. `number`: from 1, of its call on this rank. `time_us`: microseconds since 1970."""

    number: int
    time_us: int
    value: Packed


class Reports:
    """The reports of one call on this rank, the newest. A slow reader holds up nobody. Thread-safe.

    `closed`: the call has ended.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._kept: deque[Report] = deque()
        self._bytes = 0
        self._last = 0
        self.closed = False

    def add(self, value: Packed) -> None:
        """Adds a report, unless the call has ended."""
        with self._changed:
            if self.closed:
                return
            self._last += 1
            self._kept.append(Report(self._last, time.time_ns() // 1000, value))
            self._bytes += len(value.data)
            while len(self._kept) > KEPT_REPORTS or (self._bytes > KEPT_BYTES and len(self._kept) > 1):
                self._bytes -= len(self._kept.popleft().value.data)
            self._changed.notify_all()

    def close(self) -> None:
        """Ends the reports: the call has ended. Wakes every reader."""
        with self._changed:
            self.closed = True
            self._changed.notify_all()

    def wake(self) -> None:
        """Lets readers see whether they are abandoned."""
        with self._changed:
            self._changed.notify_all()

    def next(self, after: int, reader: Reader) -> tuple[Report, int] | None:
        """Waits for the report after the number `after`. Returns it, and how many between the two were dropped.

        Returns None when there are no more, or `reader` has gone.
        """
        with self._changed:
            self._changed.wait_for(lambda: reader.gone or self.closed or self._last > after)
            if reader.gone or self._last <= after:
                return None
            found = next(it for it in self._kept if it.number > after)
            return found, found.number - after - 1


class Reader:
    """Somebody who reads the reports of a call, those after a number. `gone`: they want no more."""

    def __init__(self, reports: Reports, after: int) -> None:
        self.gone = False
        self._reports = reports
        self._after = after

    def next(self) -> tuple[Report, int] | None:
        """Waits for the next report. Returns it, and how many before it were dropped; None: there are no more."""
        found = self._reports.next(self._after, self)
        if found is not None:
            self._after = found[0].number
        return found

    def leave(self) -> None:
        """Ends the reading; a waiting `next` returns None."""
        self.gone = True
        self._reports.wake()


class ReportBook:
    """The reports of the latest calls of one rank, by operation id. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._calls: OrderedDict[str, Reports] = OrderedDict()
        self._readers = 0

    @contextmanager
    def reading(self, operation_id: str, after: int) -> Iterator[Reader]:
        """A reader of the reports of a call, which may not have come yet. Raises RESOURCE_EXHAUSTED for too many."""
        with self._lock:
            if self._readers >= MAX_READERS:
                got = str(self._readers + 1)
                raise exhausted("too many watchers of functions on this rank", most=str(MAX_READERS), got=got)
            self._readers += 1
        try:
            yield Reader(self.of(operation_id), after)
        finally:
            with self._lock:
                self._readers -= 1

    def add(self, operation_id: str, value: Packed) -> None:
        """Adds a report of a call. One without an id has none: nobody could find them."""
        if operation_id:
            self.of(operation_id).add(value)

    def close(self, operation_id: str) -> None:
        """Ends the reports of a call, if it has any, or somebody waits for them."""
        with self._lock:
            reports = self._calls.get(operation_id)
        if reports is not None:
            reports.close()

    def of(self, operation_id: str) -> Reports:
        """The reports of a call, which may not have come yet."""
        with self._lock:
            reports = self._calls.setdefault(operation_id, Reports())
            self._calls.move_to_end(operation_id)
            old = self._oldest() if len(self._calls) > KEPT_CALLS else ""
            dropped = self._calls.pop(old, None)
        if dropped is not None:
            dropped.close()
        return reports

    def _oldest(self) -> str:
        """The oldest call that has ended; if none has, the oldest."""
        ended = (name for name, it in self._calls.items() if it.closed)
        return next(ended, next(iter(self._calls)))
