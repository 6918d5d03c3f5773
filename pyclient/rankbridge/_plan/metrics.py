"""Metrics of ranks, as Prometheus names them; and how they are read from the wire."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rankbridge.v1 import rank_service_pb2


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricSample:
    """One value.

    Attributes:
        suffix: What its name has beyond its family's: "_bucket".
        labels: Labels by name.
        value: The value; of times in seconds.
    """

    suffix: str
    labels: Mapping[str, str]
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricFamily:
    """Values of one name.

    Attributes:
        name: Name without a suffix.
        kind: "counter", "gauge" or "histogram".
        help: What it is, for people.
        samples: The values.
    """

    name: str
    kind: str
    help: str
    samples: tuple[MetricSample, ...]


def metrics_from_wire(metrics: rank_service_pb2.GetMetricsResponse) -> list[MetricFamily]:
    """Reads a rank's metrics."""
    return [
        MetricFamily(
            name=it.name,
            kind=it.kind,
            help=it.help,
            samples=tuple(
                MetricSample(
                    suffix=one.suffix, labels={it.name: it.value for it in one.labels}, value=one.value
                )
                for one in it.samples
            ),
        )
        for it in metrics.families
    ]
