"""An SVG drawing, as far as plots need it."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

_STYLE = "text { font: 12px sans-serif; fill: #222 } .title { font-weight: bold } .small { font-size: 10px }"


class Drawing:
    """Shapes on white, in pixels from the upper left corner."""

    def __init__(self) -> None:
        self._shapes: list[str] = []
        self._width = 0.0
        self._height = 0.0

    def bar(self, x: float, y: float, width: float, height: float, colour: str) -> None:
        """A filled rectangle."""
        self._grow(x + width, y + height)
        self._shapes.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{colour}"/>'
        )

    def line(self, points: Sequence[tuple[float, float]], colour: str, width: float = 1.0) -> None:
        """A line through points."""
        for x, y in points:
            self._grow(x, y)
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self._shapes.append(
            f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="{width:g}"/>'
        )

    def text(self, x: float, y: float, text: str, kind: str = "", anchor: str = "start") -> None:
        """Text on a base line. `kind`: "title", "small" or nothing. `anchor`: "start", "middle" or "end"."""
        self._grow(x + (7 * len(text) if anchor == "start" else 0), y + 4)
        what = f' class="{kind}"' if kind else ""
        self._shapes.append(
            f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{what}>{escape(text)}</text>'
        )

    def __str__(self) -> str:
        """The file."""
        width, height = self._width + 10, self._height + 10
        head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}">'
        ground = '<rect width="100%" height="100%" fill="white"/>'
        return "\n".join([head, f"<style>{_STYLE}</style>", ground, *self._shapes, "</svg>"]) + "\n"

    def _grow(self, x: float, y: float) -> None:
        self._width, self._height = max(self._width, x), max(self._height, y)
