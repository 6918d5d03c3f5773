"""Reports on how long the steps of a program took on each rank, as torchgfn writes them. Pure: asks no rank."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rankbridge.errors import InvalidArgumentError

Timings = Mapping[str, Sequence[float] | float]
"""Of one rank: for each step the seconds that it took in each iteration, or in the only one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTime:
    """How long a step took on one rank: the mean of its iterations, and their sum, in seconds."""

    step: str
    mean: float
    total: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeReport:
    """How long every step took on every rank.

    Attributes:
        ranks: By rank, its steps in its order.
        maximum: The longest total of each step, in seconds; steps in the order in which ranks reported them.
        average: The mean total of each step, over the ranks that have it.
    """

    ranks: tuple[tuple[StepTime, ...], ...]
    maximum: Mapping[str, float]
    average: Mapping[str, float]

    @property
    def lines(self) -> tuple[str, ...]:
        """The report in the words of torchgfn's ``report_time_info``, a message each."""
        lines = ["Timing information for each rank:"]
        for rank, steps in enumerate(self.ranks):
            lines.append(f"Rank {rank} timing information:")
            lines += [f"  {it.step}: {it.mean:.4f} seconds (total: {it.total:.4f} seconds)" for it in steps]
        for title, totals in (("Maximum", self.maximum), ("Average", self.average)):
            lines.append(f"\n{title} timing information:")
            lines += [f"  {step}: {seconds:.4f} seconds" for step, seconds in totals.items()]
        return tuple(lines)

    def __str__(self) -> str:
        """Gives the lines."""
        return "\n".join(self.lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepImbalance:
    """How unevenly a step was shared.

    Attributes:
        step: Its name.
        useful: Mean time that a rank worked, in seconds, over all iterations. None: not all ranks have the step.
        waiting: Mean time that a rank waited for the slowest, in seconds. None as `useful`.
    """

    step: str
    useful: float | None
    waiting: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ImbalanceReport:
    """How unevenly every step of rank 0 was shared, in its order."""

    steps: tuple[StepImbalance, ...]

    @property
    def lines(self) -> tuple[str, ...]:
        """The report in the words of torchgfn's ``report_load_imbalance``, a message each."""
        return (f"{'Step Name':<25} {'Useful Work':>12} {'Waiting':>12}", "-" * 80, *map(_line, self.steps))

    def __str__(self) -> str:
        """Gives the lines."""
        return "\n".join(self.lines)


def report_time_info(timings: Sequence[Timings]) -> TimeReport:
    """Tells how long every step took on every rank, as torchgfn's ``report_time_info``.

    Args:
        timings: Those of each rank, by rank: what an ``all_gather_object`` of them gives.

    Raises:
        InvalidArgumentError: A step has no iteration.
    """
    ranks = tuple(
        tuple(_step_time(rank, step, _iterations(seconds)) for step, seconds in own.items())
        for rank, own in enumerate(timings)
    )
    totals: dict[str, list[float]] = {}
    for steps in ranks:
        for it in steps:
            totals.setdefault(it.step, []).append(it.total)
    return TimeReport(
        ranks=ranks,
        maximum={step: max(each) for step, each in totals.items()},
        average={step: sum(each) / len(each) for step, each in totals.items()},
    )


def report_load_imbalance(timings: Sequence[Timings]) -> ImbalanceReport:
    """Tells how long ranks worked and waited for each other in every step, as torchgfn's ``report_load_imbalance``.

    In each iteration of a step all wait for the slowest rank.

    Args:
        timings: Those of each rank, by rank, one at least.

    Raises:
        InvalidArgumentError: There is no rank, or a step has not equally many iterations on all ranks.
    """
    if not timings:
        raise InvalidArgumentError(
            "there are no timings",
            operation="report_load_imbalance",
            expected="those of one rank at least",
            got="none",
        )
    return ImbalanceReport(steps=tuple(_imbalance(step, timings) for step in timings[0]))


def _iterations(seconds: Sequence[float] | float) -> Sequence[float]:
    return [seconds] if isinstance(seconds, int | float) else seconds


def _step_time(rank: int, step: str, iterations: Sequence[float]) -> StepTime:
    if not iterations:
        raise InvalidArgumentError(
            f"rank {rank} has no iteration of step {step!r}",
            operation="report_time_info",
            expected="one or more",
            got="none",
        )
    total = float(sum(iterations))
    return StepTime(step=step, mean=total / len(iterations), total=total)


def _imbalance(step: str, timings: Sequence[Timings]) -> StepImbalance:
    if not all(step in own for own in timings):
        return StepImbalance(step=step, useful=None, waiting=None)
    by_rank = [_iterations(own[step]) for own in timings]
    if len({len(iterations) for iterations in by_rank}) > 1:
        raise InvalidArgumentError(
            f"step {step!r} has not equally many iterations on all ranks",
            operation="report_load_imbalance",
            expected=f"{len(by_rank[0])} on each",
            got=str([len(iterations) for iterations in by_rank]),
        )
    useful = waiting = 0.0
    for seconds in zip(*by_rank, strict=True):
        mean = sum(seconds) / len(seconds)
        useful += mean
        waiting += max(seconds) - mean
    return StepImbalance(step=step, useful=useful, waiting=waiting)


def _line(it: StepImbalance) -> str:
    if it.useful is None or it.waiting is None:
        return f"Time for Step - {it.step!r} not found in all ranks, skipping..."
    return f"{it.step:<25} {it.useful:>10.4f}s {it.waiting:>10.4f}s"
