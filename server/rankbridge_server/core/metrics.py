"""What a rank counts of its operations, and what it holds, as Prometheus names it."""

from __future__ import annotations

import threading
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from .events import Event, Kind
from .task import Task

BUCKETS = (0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
"""Upper bounds of durations, in seconds."""
MAX_GROUPS = 64
"""Groups that are counted by name; of those that come later, the name is `OTHER`."""
MAX_LAST = 64
"""Ranks that are counted by number as last comers of one kind of operation in one group; others likewise as `OTHER`."""
OTHER = "other"
_VERDICTS = (Kind.MISMATCH, Kind.PEER_MISSING, Kind.STRAGGLER, Kind.OVER)


@dataclass(frozen=True, slots=True)
class Sample:
    """One value. `suffix`: what its name has beyond its family's: "_bucket"."""

    value: float
    labels: Mapping[str, str] = field(default_factory=dict)
    suffix: str = ""


@dataclass(frozen=True, slots=True)
class Family:
    """Values of one name. `kind`: "counter", "gauge", "histogram"."""

    name: str
    kind: str
    help: str
    samples: Sequence[Sample]


@dataclass(slots=True)
class _Series:
    """What is counted of one kind of operation in one group. `counts`: by bucket, the last one without a bound."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS) + 1))
    duration: float = 0.0
    waited: float = 0.0
    waited_for: dict[str, float] = field(default_factory=dict)
    failures: Counter[str] = field(default_factory=Counter)

    def add_waited_for(self, last: str, seconds: float) -> None:
        """Counts for how long members have waited for the last comer."""
        name = last if last in self.waited_for or len(self.waited_for) < MAX_LAST else OTHER
        self.waited_for[name] = self.waited_for.get(name, 0.0) + seconds


class Metrics:
    """The counts of one rank. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._series: dict[tuple[str, str], _Series] = {}
        self._groups: set[str] = set()
        self._verdicts: Counter[str] = Counter()
        self._diagnoses: Counter[str] = Counter()

    def done(self, task: Task) -> None:
        """Counts an operation that is done. Quick: callers wait for it."""
        now, place = time.monotonic(), task.place
        with self._lock:
            key = self._group(place.group), place.operation
            series = self._series.get(key)
            if series is None:
                series = self._series[key] = _Series()
            duration = now - task.began
            series.counts[bisect_left(BUCKETS, duration)] += 1
            series.duration += duration
            series.waited += (task.entered or now) - task.began
            for last, seconds in task.waited_for:
                series.add_waited_for(str(last), seconds)
            if task.error is not None:
                series.failures[task.error.failure.code.name] += 1

    def happened(self, event: Event) -> None:
        """Counts a verdict."""
        if event.kind in _VERDICTS:
            with self._lock:
                self._verdicts[event.kind.name.lower()] += 1

    def diagnosed(self, kind: str) -> None:
        """Counts a verdict on the gang that somebody has asked this rank for."""
        with self._lock:
            self._diagnoses[kind] += 1

    def families(self) -> list[Family]:
        """What was counted."""
        with self._lock:
            series = sorted(self._series.items())
            durations = [it for (group, op), one in series for it in _histogram(group, op, one)]
            waits = [Sample(one.waited, {"group": group, "op": op}) for (group, op), one in series]
            waited_for = [
                Sample(seconds, {"group": group, "op": op, "last": last})
                for (group, op), one in series
                for last, seconds in sorted(one.waited_for.items())
            ]
            failures = [
                Sample(count, {"group": group, "op": op, "code": code})
                for (group, op), one in series
                for code, count in sorted(one.failures.items())
            ]
            verdicts = [
                Sample(self._verdicts[kind.name.lower()], {"kind": kind.name.lower()}) for kind in _VERDICTS
            ]
            diagnoses = [Sample(count, {"kind": kind}) for kind, count in sorted(self._diagnoses.items())]
        return [
            Family(
                "rankbridge_collective_duration_seconds",
                "histogram",
                "From when the rank accepted an operation until it answered.",
                durations,
            ),
            Family(
                "rankbridge_collective_wait_seconds",
                "counter",
                "The part of it before the backend: queued, and waiting for the other members.",
                waits,
            ),
            Family(
                "rankbridge_collective_waited_for_seconds",
                "counter",
                "Seconds that members have waited for the last comer, all together, by the last comer's rank.",
                waited_for,
            ),
            Family(
                "rankbridge_operation_failures", "counter", "Operations that failed, by error code.", failures
            ),
            Family(
                "rankbridge_verdicts",
                "counter",
                "Mismatches, missing members, stragglers, and generations that were over.",
                verdicts,
            ),
            Family(
                "rankbridge_diagnoses",
                "counter",
                "Verdicts of `rankbridge doctor` and of clients on the gang, by kind.",
                diagnoses,
            ),
        ]

    def _group(self, name: str) -> str:
        if name not in self._groups:
            if len(self._groups) >= MAX_GROUPS:
                return OTHER
            self._groups.add(name)
        return name


def gauges(pending: Iterable[Task]) -> list[Family]:
    """How many operations are pending, and how old the oldest of each group is."""
    now, oldest, count = time.monotonic(), dict[str, float](), 0
    for task in pending:
        count += 1
        oldest[task.place.group] = max(oldest.get(task.place.group, 0.0), now - task.began)
    named = sorted(oldest.items(), key=lambda it: -it[1])[:MAX_GROUPS]
    return [
        gauge("rankbridge_operations_pending", "Operations accepted and not yet answered.", count),
        Family(
            "rankbridge_collective_pending_seconds",
            "gauge",
            "Age of the oldest operation that is pending in a group.",
            [Sample(age, {"group": group}) for group, age in sorted(named)],
        ),
    ]


def gauge(name: str, text: str, value: float, **labels: str) -> Family:
    """One value as of now."""
    return Family(name, "gauge", text, [Sample(value, labels)])


def _histogram(group: str, op: str, series: _Series) -> Iterable[Sample]:
    labels, count = {"group": group, "op": op}, 0
    for bound, more in zip((*map(str, BUCKETS), "+Inf"), series.counts, strict=True):
        count += more
        yield Sample(count, {**labels, "le": bound}, "_bucket")
    yield Sample(count, labels, "_count")
    yield Sample(series.duration, labels, "_sum")
