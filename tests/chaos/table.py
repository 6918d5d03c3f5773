"""The table at a run's end."""

from __future__ import annotations

from collections.abc import Sequence

from tests.chaos.run import Report


def table(report: Report) -> str:
    """What was done, how long it took, and what was found."""
    lines = [
        "| fault | rounds | errors | to error p50 | max | to whole p50 | p99 |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for kind, times in sorted(report.findings.times.items()):
        errors, whole = times.to_error, times.to_whole
        cells = [
            *(kind, str(times.rounds), str(len(errors))),
            *(milliseconds(percentile(errors, 50)), milliseconds(max(errors, default=None))),
            *(milliseconds(percentile(whole, 50)), milliseconds(percentile(whole, 99))),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    findings = report.findings
    lines.append("")
    lines.extend(f"not tried: {kind}: {why}" for kind, why in findings.unavailable.items())
    threads = max((now.threads - then.threads for then, now in report.usage), default=0)
    fds = max((now.fds - then.fds for then, now in report.usage), default=0)
    lines += [
        f"rounds: {report.done}; operations judged: {findings.operations}; formings: {report.formed}"
        f" ({report.retried} more were tried)",
        f"wrong results: {len(findings.wrong)}; wrong errors: {len(findings.errors)}; hangs: {len(findings.hangs)}",
        f"leaks: {len(findings.leaks)}; most that one of {len(report.usage)} ranks holds more than when it was new: "
        f"threads {threads:+d}, file descriptors {fds:+d}",
    ]
    found = [*findings.wrong, *findings.errors, *findings.hangs, *findings.leaks]
    return "\n".join([*lines, *(f"FOUND: {it}" for it in found)])


def percentile(values: Sequence[float], percent: float) -> float | None:
    """The smallest value that so many percent do not exceed; None of no values."""
    if not values:
        return None
    place = -(-len(values) * percent // 100) - 1
    return sorted(values)[max(0, int(place))]


def milliseconds(seconds: float | None) -> str:
    """Seconds in words."""
    return "-" if seconds is None else f"{seconds * 1000:.0f} ms"
