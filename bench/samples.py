"""What was measured, by who was measured."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

Statistic = Literal["p50", "mean"]


class Measure(NamedTuple):
    """Calls that are alike.

    Attributes:
        subject: Who makes them.
        way: How.
        operation: What.
        size: Ranks.
    """

    subject: str
    way: str
    operation: str
    size: int

    def __str__(self) -> str:
        """For people."""
        return f"{self.subject} {self.way} {self.operation}".replace("_", " ")


@dataclass(slots=True)
class Sample:
    """Times of one measure, in seconds."""

    seconds: list[float] = field(default_factory=list)
    cpu: float = 0.0
    calls: int = 0

    def add(self, seconds: list[float], cpu: float) -> None:
        """Adds one block."""
        self.seconds += seconds
        self.cpu += cpu
        self.calls += len(seconds)

    def at(self, share: float) -> float:
        """The value that `share` of the times do not exceed."""
        ordered = sorted(self.seconds)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))]

    @property
    def p50(self) -> float:
        """The median."""
        return statistics.median(self.seconds)

    @property
    def mean(self) -> float:
        """The average."""
        return statistics.fmean(self.seconds)

    @property
    def rate(self) -> float:
        """Operations in a second."""
        return 1 / self.mean

    @property
    def cpu_each(self) -> float:
        """CPU seconds of one call."""
        return self.cpu / self.calls

    def of(self, statistic: Statistic) -> float:
        """One of the above."""
        return self.p50 if statistic == "p50" else self.mean


class Samples(Mapping[Measure, Sample]):
    """Every sample that was taken, and why others were not."""

    def __init__(self) -> None:
        self._samples: dict[Measure, Sample] = {}
        self._missing: dict[tuple[str, ...], str] = {}
        self.peak_bytes: dict[tuple[str, int], int] = {}
        self.versions: dict[str, Mapping[str, str]] = {}

    def __getitem__(self, measure: Measure) -> Sample:
        """The sample of a measure. Raises KeyError."""
        return self._samples[measure]

    def __iter__(self) -> Iterator[Measure]:
        """In the order in which they were first taken."""
        return iter(self._samples)

    def __len__(self) -> int:
        """How many there are."""
        return len(self._samples)

    def add(self, measure: Measure, seconds: list[float], cpu: float = 0.0) -> None:
        """Adds one block."""
        self._samples.setdefault(measure, Sample()).add(seconds, cpu)

    def lack(self, why: str, subject: str, *place: str) -> None:
        """Tells that a subject, a way of it, or one operation of that, is not there."""
        self._missing[subject, *place] = why

    def why_missing(self, measure: Measure) -> str:
        """Why there is no such sample."""
        for place in (measure[:1], measure[:2], measure[:3]):
            if place in self._missing:
                return self._missing[place]
        return f"not measured at {measure.size} ranks"

    @property
    def missing(self) -> Mapping[tuple[str, ...], str]:
        """Why, by subject, way and operation."""
        return self._missing
