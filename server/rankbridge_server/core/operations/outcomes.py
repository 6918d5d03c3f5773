"""What became of operations, by their ids: a repeated id never runs twice."""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import NamedTuple

from ..errors import BridgeError, ErrorCode, invalid, shown
from ..task import Task
from .outcome import weight_of

REMEMBERED = 4096
KEPT_BYTES = 64 * 1024 * 1024
"""Of objects in requests and outcomes of operations that are done."""
LARGE = 4096
FORGOTTEN = object()
"""In place of a request that is not kept: no other is compared with it."""


class _Known(NamedTuple):
    """An operation whose id is taken. While it is being planned it has no task, and `planned` is locked."""

    request: object
    task: Task | None
    planned: threading.Lock | None = None


class Outcomes:
    """The last operations of one rank by id: all that are pending, and the latest that are done. Thread-safe."""

    def __init__(self, remembered: int = REMEMBERED, kept_bytes: int = KEPT_BYTES) -> None:
        """`remembered`: how many that are done. `kept_bytes`: of objects in their requests and outcomes."""
        self._remembered = remembered
        self._kept_bytes = kept_bytes
        self._lock = threading.Lock()
        self._known: dict[str, _Known] = {}
        # Ids in the order in which their operations were done.
        self._done: deque[str] = deque()
        # Of those, what is large: bytes of objects in request and outcome.
        self._large: OrderedDict[str, int] = OrderedDict()

    def once(self, operation_id: str, request: object, start: Callable[[], Task]) -> Task:
        """Gives the task of that id. If there is none, `start` makes it, without any lock that others need.

        Raises INVALID_ARGUMENT when the id was used for another request, and what `start` raises; then the id
        is free.
        """
        planned = threading.Lock()
        with planned:
            known = self._settled(operation_id, _Known(request, None, planned))
            if known is None:
                try:
                    task = start()
                except BaseException:
                    with self._lock:
                        del self._known[operation_id]
                    raise
                with self._lock:
                    self._known[operation_id] = _Known(request, task)
        if known is None:
            task.then(lambda task: self._ended(operation_id, request, task))
            return task
        if known.request is not FORGOTTEN and known.request != request:
            raise invalid(
                f"operation id {operation_id!r} was used for another operation",
                expected=shown(_text(known.request)),
                got=shown(_text(request)),
            )
        assert known.task is not None
        return known.task

    def find(self, operation_id: str) -> Task:
        """Gives the task of that id. Raises UNKNOWN_OPERATION."""
        known = self._settled(operation_id)
        if known is None:
            raise BridgeError.of(
                ErrorCode.UNKNOWN_OPERATION, f"no operation {operation_id!r} is known on this rank"
            )
        assert known.task is not None
        return known.task

    def _settled(self, operation_id: str, otherwise: _Known | None = None) -> _Known | None:
        """Gives what is known of an id, once it is planned; None, and `otherwise` takes the id, if nothing is."""
        while True:
            with self._lock:
                known = self._known.get(operation_id)
                if known is None and otherwise is not None:
                    self._known[operation_id] = otherwise
            if known is None or known.planned is None:
                return known
            with known.planned:
                """Another thread has planned it, or failed to."""

    def _ended(self, operation_id: str, request: object, task: Task) -> None:
        """Keeps so many that are done; of what is large, the latest, one at least; of the rest, that it was done."""
        weight = weight_of(request)
        if task.error is None:
            weight += weight_of(task.outcome())
        with self._lock:
            self._done.append(operation_id)
            if weight >= LARGE:
                self._large[operation_id] = weight
                while len(self._large) > 1 and sum(self._large.values()) > self._kept_bytes:
                    self._lighten(self._large.popitem(last=False)[0])
            while len(self._done) > self._remembered:
                oldest = self._done.popleft()
                del self._known[oldest]
                self._large.pop(oldest, None)

    def _lighten(self, operation_id: str) -> None:
        task = self._known[operation_id].task
        assert task is not None
        self._known[operation_id] = _Known(FORGOTTEN, _without_outcome(task))


def _text(request: object) -> str:
    try:
        return str(request)
    except ValueError:
        # Python writes no int of more than 4,300 digits.
        return "a number with thousands of digits"


def _without_outcome(task: Task) -> Task:
    forgotten = Task(task.place, 0.0, task.session_id)
    forgotten.fail(
        BridgeError.of(ErrorCode.RESOURCE_EXHAUSTED, "it is done, and its outcome was too large to be kept")
    )
    return forgotten
