"""What became of operations, by their ids: a repeated id never runs twice."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable

from ..errors import BridgeError, ErrorCode, invalid
from ..task import Task
from .outcome import weight_of

REMEMBERED = 4096
KEPT_BYTES = 64 * 1024 * 1024
"""Of objects in requests and outcomes of operations that are done."""
LARGE = 4096
FORGOTTEN = object()
"""In place of a request that is not kept: no other is compared with it."""
# Of a request in an error; one with an object in it may be very long.
MAX_SHOWN = 500


class Outcomes:
    """The last operations of one rank by id: all that are pending, and the latest that are done."""

    def __init__(self, remembered: int = REMEMBERED, kept_bytes: int = KEPT_BYTES) -> None:
        self._remembered = remembered
        self._kept_bytes = kept_bytes
        self._lock = threading.Lock()
        self._tasks: OrderedDict[str, tuple[object, Task]] = OrderedDict()
        # What is large, and done: bytes of objects in request and outcome.
        self._large: OrderedDict[str, int] = OrderedDict()

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
        if known is None:
            task.then(lambda task: self._weigh(operation_id, request, task))
            return task
        if known[0] is not FORGOTTEN and known[0] != request:
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

    def _weigh(self, operation_id: str, request: object, task: Task) -> None:
        """Of what is large, keep the latest, one at least; of the rest, that it was done."""
        weight = weight_of(request)
        if task.error is None:
            weight += weight_of(task.outcome())
        if weight < LARGE:
            return
        with self._lock:
            self._large[operation_id] = weight
            while len(self._large) > 1 and sum(self._large.values()) > self._kept_bytes:
                oldest, _ = self._large.popitem(last=False)
                if oldest in self._tasks:
                    self._tasks[oldest] = (FORGOTTEN, _without_outcome(self._tasks[oldest][1]))

    def _forget(self) -> None:
        while len(self._tasks) > self._remembered:
            oldest, (_, task) = next(iter(self._tasks.items()))
            if not task.done:
                return
            del self._tasks[oldest]
            self._large.pop(oldest, None)


def _without_outcome(task: Task) -> Task:
    it = Task(task.place, 0.0, task.session_id)
    it.fail(
        BridgeError.of(ErrorCode.RESOURCE_EXHAUSTED, "it is done, and its outcome was too large to be kept")
    )
    return it


def _shown(request: object) -> str:
    text = str(request)
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}... ({len(text)} characters)"
