"""bench/results.svg: p50 of every way, a panel for each operation; and how cost grows with ranks."""

from __future__ import annotations

import math
from collections.abc import Sequence

from bench.operation import OPERATIONS, Operation
from bench.report import GROWTH
from bench.rows import SIZE
from bench.samples import Measure, Samples
from bench.svg import Drawing

COLOURS = {"python": "#2b6cb0", "elixir": "#6b46c1", "sidecars": "#2b6cb0"}
OTHERS = "#a0aec0"
_LABEL, _BAR, _VALUE, _STEP = 160.0, 220.0, 60.0, 16.0
_PANEL = _LABEL + _BAR + _VALUE
_COLUMNS = 2
_SIDE = 260.0


def plot(samples: Samples) -> str:
    """Draws it."""
    drawing = Drawing()
    size = _size(samples)
    columns = [20.0] * _COLUMNS
    for operation in OPERATIONS:
        bars = [measure for measure in samples if measure[2:] == (operation.name, size)]
        if bars:
            column = columns.index(min(columns))
            columns[column] = _panel(drawing, 10 + column * _PANEL, columns[column], operation, bars, samples)
    top = max(columns) + 20
    for column, (title, way_names) in enumerate(
        {"a barrier of so many sidecars, p50 ms": "p50", "the same, CPU ms": "cpu_each"}.items()
    ):
        _growth(drawing, 50 + column * _PANEL, top, title, way_names, samples)
    return str(drawing)


def _size(samples: Samples) -> int:
    sizes = sorted({measure.size for measure in samples if measure.subject != GROWTH})
    return SIZE if SIZE in sizes or not sizes else sizes[-1]


def _panel(
    drawing: Drawing,
    left: float,
    top: float,
    operation: Operation,
    bars: Sequence[Measure],
    samples: Samples,
) -> float:
    drawing.text(left, top, f"{operation.title}, p50 ms, {bars[0].size} ranks", "title")
    longest = max(samples[measure].p50 for measure in bars)
    for place, measure in enumerate(bars):
        y = top + 6 + place * _STEP
        p50 = samples[measure].p50
        drawing.text(
            left + _LABEL - 6, y + 11, f"{measure.subject} {measure.way}".replace("_", " "), anchor="end"
        )
        drawing.bar(
            left + _LABEL,
            y + 2,
            max(1.0, _BAR * p50 / longest),
            _STEP - 4,
            COLOURS.get(measure.subject, OTHERS),
        )
        drawing.text(left + _LABEL + _BAR * p50 / longest + 4, y + 11, f"{p50 * 1e3:.3g}", "small")
    return top + len(bars) * _STEP + 30


def _growth(drawing: Drawing, left: float, top: float, title: str, value: str, samples: Samples) -> None:
    lines = {
        way: [
            (measure.size, getattr(samples[measure], value) * 1e3)
            for measure in samples
            if measure[:3] == (GROWTH, way, "barrier")
        ]
        for way in ("gang", "ranks")
    }
    points = [point for line in lines.values() for point in line]
    if not points:
        return
    drawing.text(left, top, title, "title")
    across = _Axis([x for x, _ in points], left, left + _SIDE)
    down = _Axis([y for _, y in points], top + _SIDE, top + 20)
    drawing.line([(left, top + 20), (left, top + _SIDE), (left + _SIDE, top + _SIDE)], "#222")
    for x in sorted({x for x, _ in points}):
        drawing.text(across.at(x), top + _SIDE + 14, str(x), "small", "middle")
    for y in down.ticks():
        drawing.text(left - 4, down.at(y) + 4, f"{y:g}", "small", "end")
    for way, line in lines.items():
        drawn = [(across.at(x), down.at(y)) for x, y in line]
        colour = COLOURS[GROWTH] if way == "gang" else OTHERS
        drawing.line(drawn, colour, 2)
        if drawn:
            drawing.text(drawn[-1][0] + 6, drawn[-1][1] + 4, way)


class _Axis:
    """A logarithmic axis from the least value to the largest."""

    def __init__(self, values: Sequence[float], begin: float, end: float) -> None:
        self._low, self._high = math.log10(min(values)), math.log10(max(values))
        self._begin, self._end = begin, end

    def at(self, value: float) -> float:
        """Where a value is."""
        span = self._high - self._low or 1.0
        return self._begin + (self._end - self._begin) * (math.log10(value) - self._low) / span

    def ticks(self) -> list[float]:
        """The powers of ten on it, and its ends."""
        powers = range(math.ceil(self._low), math.floor(self._high) + 1)
        ends = [float(f"{10**exponent:.2g}") for exponent in (self._low, self._high)]
        return sorted({*(float(10**power) for power in powers), *ends})
