"""What is to be reached: each row once, what it divides by what, and its limit."""

from __future__ import annotations

from dataclasses import dataclass

from bench.samples import Measure, Samples, Statistic

SIZE = 4
"""Ranks that the rows are about."""


@dataclass(frozen=True, slots=True)
class Ratio:
    """What is divided by what. `under` None: the time itself, in microseconds."""

    over: Measure
    under: Measure | None
    statistic: Statistic = "p50"

    def value(self, samples: Samples) -> float:
        """Its value. Raises KeyError: the measure that is not there."""
        return self.by(self.statistic, samples)

    def by(self, statistic: Statistic, samples: Samples) -> float:
        """What its value is, or would be, by one of the statistics. Raises KeyError."""
        over = samples[self.over].of(statistic)
        return over * 1e6 if self.under is None else over / samples[self.under].of(statistic)


@dataclass(frozen=True, slots=True)
class Row:
    """One row: every ratio of it is to be at most `limit`. `unit`: of the ratios; empty: none."""

    title: str
    limit: float
    ratios: tuple[Ratio, ...]
    unit: str = ""


@dataclass(frozen=True, slots=True)
class Result:
    """What became of a row.

    Attributes:
        row: It.
        values: Of those of its ratios that could be had.
        missing: What could not, and why.
    """

    row: Row
    values: tuple[tuple[Ratio, float], ...]
    missing: tuple[tuple[Measure, str], ...]

    @property
    def verdict(self) -> str:
        """Whether it is "reached", "not reached" by a ratio that is there, or else "not there" in part."""
        if any(value > self.row.limit for _, value in self.values):
            return "not reached"
        return "not there" if self.missing else "reached"

    def __str__(self) -> str:
        """One line: the ratio, the limit, reached or not."""
        unit = f" {self.row.unit}" if self.row.unit else ""
        several = len(self.row.ratios) > 1
        parts = [
            f"{value:.2f}{unit}" + (f" ({ratio.over} : {ratio.under})" if several else "")
            for ratio, value in self.values
        ]
        parts += [f"not there: {measure} ({why})" for measure, why in self.missing]
        return f"{self.row.title}: {'; '.join(parts)}; limit {self.row.limit:g}{unit}: {self.verdict}"


def result(row: Row, samples: Samples) -> Result:
    """Divides."""
    values, missing = [], []
    for ratio in row.ratios:
        wanted = [each for each in (ratio.over, ratio.under) if each is not None]
        if lacking := [each for each in wanted if each not in samples]:
            missing += [(each, samples.why_missing(each)) for each in lacking]
        else:
            values.append((ratio, ratio.value(samples)))
    return Result(row, tuple(values), tuple(dict.fromkeys(missing)))


def _at(subject: str, way: str, operation: str) -> Measure:
    return Measure(subject, way, operation, SIZE)


def _beside(
    over: tuple[str, str, str], *under: tuple[str, str, str], by: Statistic = "p50"
) -> tuple[Ratio, ...]:
    return tuple(Ratio(_at(*over), _at(*each), by) for each in under)


def _program(operation: str) -> Ratio:
    return _beside(("python", "program", operation), ("native", "loop", operation), by="mean")[0]


FEW, MANY = 8, 256
"""Sidecars between which growth is told."""

TRAFFIC = tuple(Measure("sidecars", "gang", "control_bytes_per_follower", size) for size in (FEW, MANY))

ROWS = (
    Row(
        "an empty gang call, p50, beside torch.distributed.rpc's call to all ranks",
        0.8,
        _beside(("python", "gang", "empty_all"), ("torch_rpc", "calls", "empty_all")),
    ),
    Row(
        "an empty function of the user's on all ranks, p50, beside torch.distributed.rpc's call to all",
        1.0,
        _beside(("python", "gang", "function"), ("torch_rpc", "calls", "empty_all")),
    ),
    Row(
        "the same, beside Ray's actor calls",
        0.5,
        _beside(("python", "gang", "function"), ("ray", "calls", "empty_all")),
    ),
    Row(
        "a gang-call all_reduce of 4 B, p50, beside torch.distributed.rpc's",
        0.7,
        _beside(("python", "gang", "all_reduce_4B"), ("torch_rpc", "calls", "all_reduce_4B")),
    ),
    Row(
        "a gang-call barrier, p50, beside torch.distributed.rpc's",
        1.0,
        _beside(("python", "gang", "barrier"), ("torch_rpc", "calls", "barrier")),
    ),
    Row(
        "a per-rank-call barrier, p50, beside Ray's and Monarch's",
        0.7,
        _beside(("python", "ranks", "barrier"), ("ray", "calls", "barrier"), ("monarch", "calls", "barrier")),
    ),
    Row(
        "a program of 1,000 barriers or all_reduces of 4 B, each, beside the native loop",
        1.15,
        (_program("loop_barrier"), _program("loop_all_reduce_4B")),
    ),
    Row(
        "all_reduce of 4 MB, gang call, in place, p50, beside the native loop",
        1.1,
        _beside(("python", "gang", "all_reduce_4MB"), ("native", "loop", "all_reduce_4MB")),
    ),
    Row(
        "fetch of 64 MB over gRPC, p50, beside bare grpcio in chunks of 1 MiB",
        1.1,
        _beside(("python", "grpc", "fetch_64MB"), ("grpc_floor", "calls", "fetch_64MB")),
    ),
    Row(
        "fetch and put of 64 MB by shared memory, p50, beside one copy of it",
        1.5,
        (
            *_beside(("python", "shared_memory", "fetch_64MB"), ("copy", "memcpy", "copy_64MB")),
            *_beside(("python", "shared_memory", "put_64MB"), ("copy", "memcpy", "copy_64MB")),
        ),
    ),
    Row(
        "a gang-call barrier from Elixir, p50, beside the Python client's",
        1.0,
        _beside(("elixir", "gang", "barrier"), ("python", "gang", "barrier")),
    ),
    Row(
        "admission, each, p50",
        120.0,
        (Ratio(_at("admission", "links", "admission"), None),),
        unit="us",
    ),
    Row(
        "a test's own gang on Gloo, p50",
        30_000.0,
        (Ratio(_at("lent_gang", "pytest", "own_gang"), None),),
        unit="us",
    ),
    Row(
        "the same with a rank killed, p50",
        300_000.0,
        (Ratio(_at("lent_gang", "pytest", "own_gang_killed"), None),),
        unit="us",
    ),
    Row(
        "a test's own gang, p50, beside torch's MultiProcessTestCase of 2 ranks",
        0.1,
        _beside(("lent_gang", "pytest", "own_gang"), ("torch_test", "processes", "own_gang")),
    ),
    Row(
        f"control traffic of a gang-call barrier per follower, {MANY} ranks beside {FEW} (1: linear)",
        1.0,
        (Ratio(TRAFFIC[1], TRAFFIC[0]),),
    ),
)
