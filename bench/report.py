"""bench/results.md: the rows, and everything that was measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bench.growth import COUNTED
from bench.markdown import table
from bench.operation import BY_NAME, LOOP
from bench.rows import Result
from bench.samples import Measure, Samples

GROWTH = "sidecars"


@dataclass(frozen=True, slots=True, kw_only=True)
class Circumstances:
    """Where and how it was measured.

    Attributes:
        command: What was run.
        machine: Cores and kind.
        loads: The load average of a minute, at the beginning of each round.
        plot: Name of the plot's file.
    """

    command: str
    machine: str
    loads: Sequence[float]
    plot: str


def report(results: Sequence[Result], samples: Samples, of: Circumstances) -> str:
    """Writes the page."""
    return "\n".join(_lines(results, samples, of)) + "\n"


def _lines(results: Sequence[Result], samples: Samples, of: Circumstances) -> Iterator[str]:
    yield "# Results"
    yield ""
    yield f"Written by `{of.command}`; [docs/benchmark.md](../docs/benchmark.md) says how to read it."
    yield ""
    load = f"{min(of.loads):.1f} to {max(of.loads):.1f}" if of.loads else "not taken"
    yield f"Machine: {of.machine}. Load average of a minute at the beginning of the rounds: {load}."
    versions = {name: version for each in samples.versions.values() for name, version in each.items()}
    yield f"Versions: {', '.join(f'{name} {version}' for name, version in sorted(versions.items()))}."
    yield ""
    yield f"![p50 of every way, and growth]({of.plot})"
    yield ""
    yield "## What is to be reached"
    yield ""
    yield from table(["row", "ratio", "limit", "", "of means"], [_row(each, samples) for each in results])
    for size in sorted({measure.size for measure in samples if measure.subject != GROWTH}):
        yield from ("", f"## {size} ranks", "")
        yield from table(
            ["operation", "by", "p50 ms", "p99 ms", "mean ms", "operations/s", "CPU ms each", "calls"],
            [_measured(measure, samples) for measure in _sorted(samples, size)],
        )
    yield from _growth(samples)
    yield from _memory(samples)
    if samples.missing:
        yield from ("", "## Not there", "")
        yield from table(
            ["what", "why"],
            [[" ".join(place).replace("_", " "), _cell(why)] for place, why in samples.missing.items()],
        )


def _row(result: Result, samples: Samples) -> list[str]:
    unit = f" {result.row.unit}" if result.row.unit else ""
    several = len(result.row.ratios) > 1
    said = [
        f"{value:.2f}{unit}" + (f" ({ratio.over} : {ratio.under})" if several else "")
        for ratio, value in result.values
    ]
    said += [f"not there: {measure}" for measure, _ in result.missing]
    means = "; ".join(f"{ratio.by('mean', samples):.2f}" for ratio, _ in result.values)
    return [result.row.title, "; ".join(said), f"{result.row.limit:g}{unit}", result.verdict, means]


def _sorted(samples: Samples, size: int) -> list[Measure]:
    order = list(BY_NAME)
    return sorted(
        (measure for measure in samples if measure.size == size and measure.subject != GROWTH),
        key=lambda measure: order.index(measure.operation),
    )


def _measured(measure: Measure, samples: Samples) -> list[str]:
    sample, operation = samples[measure], BY_NAME[measure.operation]
    # The CPU time of a loop is that of all that it calls.
    each = sample.cpu_each / (LOOP if measure.operation.startswith("loop_") else 1)
    times = [f"{seconds * 1e3:.3g}" for seconds in (sample.p50, sample.at(0.99), sample.mean)]
    by = f"{measure.subject} {measure.way}".replace("_", " ")
    return [operation.title, by, *times, f"{sample.rate:.4g}", f"{each * 1e3:.3g}", str(sample.calls)]


def _growth(samples: Samples) -> Iterator[str]:
    sizes = sorted({measure.size for measure in samples if measure.subject == GROWTH})
    if not sizes:
        return
    yield from ("", "## Growth: a barrier of so many sidecars in one process, on the fake backend", "")
    heads = ["sidecars", "by", "p50 ms", "CPU ms each", "control bytes to and from each follower", "messages"]
    rows = []
    for size in sizes:
        for way in ("gang", "ranks"):
            barrier = samples.get(Measure(GROWTH, way, "barrier", size))
            counted = [samples.get(Measure(GROWTH, way, name, size)) for name in COUNTED]
            times = [f"{barrier.p50 * 1e3:.3g}", f"{barrier.cpu_each * 1e3:.3g}"] if barrier else ["-", "-"]
            rows.append([str(size), way, *times, *(f"{it.mean:.0f}" if it else "-" for it in counted)])
    yield from table(heads, rows)


def _memory(samples: Samples) -> Iterator[str]:
    yield from ("", "## Memory: peak resident sizes of all processes, in sum", "")
    yield from table(
        ["of", "ranks", "MiB"],
        [
            [name.replace("_", " "), str(size), f"{nbytes / 2**20:.0f}"]
            for (name, size), nbytes in sorted(samples.peak_bytes.items())
        ],
    )


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
