"""What became of operations, by their ids: a repeated id never runs twice."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable

from .errors import BridgeError, ErrorCode, invalid
from .task import Task

REMEMBERED = 4096
# Of a request in an error; one with an object in it may be very long.
MAX_SHOWN = 500


class Outcomes:
    """The last operations of one rank by id: all that are pending, and the latest that are done."""

    def __init__(self, remembered: int = REMEMBERED) -> None:
        self._remembered = remembered
        self._lock = threading.Lock()
        self._tasks: OrderedDict[str, tuple[object, Task]] = OrderedDict()

    def once(self, operation_id: str, request: object, start: Callable[[], Task]) -> Task:
        """The task of that id; `start` makes it if there is none.

        Raises INVALID_ARGUMENT when the id was used for another request, and what `start` raises; then the id
        is free.
        """
        with self._lock:
            known = self._tasks.get(operation_id)
            if known is None:
                task = start()
                self._tasks[operation_id] = (request, task)
                self._forget()
                return task
        if known[0] != request:
            raise invalid(
                f"operation id {operation_id!r} was used for another operation",
                expected=_shown(known[0]),
                got=_shown(request),
            )
        return known[1]

    def find(self, operation_id: str) -> Task:
        """The task of that id. Raises UNKNOWN_OPERATION."""
        with self._lock:
            known = self._tasks.get(operation_id)
        if known is None:
            raise BridgeError.of(
                ErrorCode.UNKNOWN_OPERATION, f"no operation {operation_id!r} is known on this rank"
            )
        return known[1]

    def _forget(self) -> None:
        while len(self._tasks) > self._remembered:
            oldest, (_, task) = next(iter(self._tasks.items()))
            if not task.future.done():
                return
            del self._tasks[oldest]


def _shown(request: object) -> str:
    text = str(request)
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}... ({len(text)} characters)"
