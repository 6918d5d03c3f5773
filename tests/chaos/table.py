"""The table at a run's end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tests.chaos.findings import Times
from tests.chaos.run import Report


def table(report: Report) -> str:
    """What was done, how long it took, and what was found."""
    findings = report.findings
    lines = [*_times("fault", findings.times), "", *_times("client", findings.clients), ""]
    lines.extend(f"not tried: {kind}: {why}" for kind, why in findings.unavailable.items())
    threads = max((now.threads - then.threads for then, now in report.usage), default=0)
    segments = max((now.segments for _, now in report.usage), default=0)
    fds = max((now.fds - then.fds for then, now in report.usage), default=0)
    lines += [
        f"rounds: {report.done}; operations judged: {findings.operations}, by "
        f"{_counts(findings.calls)} calls; formings: {report.formed} ({report.retried} more were tried)",
        f"wrong results: {len(findings.wrong)}; wrong errors: {len(findings.errors)}; hangs: {len(findings.hangs)}",
        f"leaks: {len(findings.leaks)}; most that one of {len(report.usage)} ranks holds more than when it was new: "
        f"threads {threads:+d}, file descriptors {fds:+d}; segments of shared memory that one keeps: {segments}",
    ]
    if report.held:
        new, now = report.held
        lines.append(
            f"the Elixir controller holds more than when it was new: processes {now.processes - new.processes:+d}, "
            f"ports {now.ports - new.ports:+d}"
        )
    return "\n".join([*lines, *(f"FOUND: {it}" for it in findings.all)])


def _times(what: str, rows: Mapping[str, Times]) -> list[str]:
    lines = [
        f"| {what} | rounds | operations | errors | to error p50 | max | to whole p50 | p99 |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name, times in sorted(rows.items()):
        errors, whole = times.to_error, times.to_whole
        cells = [
            *(name, str(times.rounds), str(times.operations), str(len(errors))),
            *(milliseconds(percentile(errors, 50)), milliseconds(max(errors, default=None))),
            *(milliseconds(percentile(whole, 50)), milliseconds(percentile(whole, 99))),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _counts(calls: Mapping[str, int]) -> str:
    return " and ".join(f"{number} {client}" for client, number in sorted(calls.items())) or "no"


def percentile(values: Sequence[float], percent: float) -> float | None:
    """The smallest value that so many percent do not exceed; None of no values."""
    if not values:
        return None
    place = -(-len(values) * percent // 100) - 1
    return sorted(values)[max(0, int(place))]


def milliseconds(seconds: float | None) -> str:
    """Seconds in words."""
    return "-" if seconds is None else f"{seconds * 1000:.0f} ms"
