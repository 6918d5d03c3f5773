"""Tables for people. What others wrote moves no cursor in them."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable, Sequence

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from ..core.printable import printable

_WIDTH = 1_000_000


def show(what: RenderableType) -> None:
    """Prints it: within the width of a terminal; into anything else, with every line whole."""
    if sys.stdout.isatty():
        Console(highlight=False).print(what)
        return
    console = Console(highlight=False, width=_WIDTH, file=io.StringIO())
    with console.capture() as captured:
        console.print(what)
    print("\n".join(line.rstrip() for line in captured.get().splitlines()))


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> Table:
    """Rows below a head."""
    made = Table(box=None, pad_edge=False, header_style="bold", show_edge=False)
    for title in head:
        made.add_column(title, overflow="fold")
    for row in rows:
        made.add_row(*(Text(printable(str(cell))) for cell in row))
    return made


def paragraphs(parts: Iterable[Table | Text | None]) -> Group:
    """Tables and texts with an empty line between."""
    shown: list[Table | Text] = []
    for part in parts:
        if part is not None:
            shown += [*([Text()] if shown else []), part]
    return Group(*shown)
