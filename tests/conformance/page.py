"""Writes docs/deviations.md from the table: `python -m tests.conformance.page`. With --check, says whether it is so."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from tests.conformance.deviations import KINDS, Deviation, read

PAGE = Path(__file__).resolve().parents[2] / "docs" / "deviations.md"

HEAD = """# Deviations

Where the bridge does another thing than the systems that it was compared with ([conformance.md](conformance.md)). Each
row is checked: `make conformance` fails if the bridge does anything but what stands here, and if no recorded case needs
the row. Written by `python -m tests.conformance.page` from
[tests/conformance/deviations.toml](../tests/conformance/deviations.toml); change that.

What is the matter with the other system's behaviour:
"""


def page(table: Sequence[Deviation]) -> str:
    """Writes the page."""
    lines = [HEAD, *(f"- **{kind}**: {told};" for kind, told in KINDS.items())]
    lines[-1] = lines[-1].removesuffix(";") + "."
    titles = dict.fromkeys(entry.systems.replace(",", " ").split()[0] for entry in table)
    for title in titles:
        lines += ["", f"## {title}", "", "| what it does | | the bridge | why |", "| --- | --- | --- | --- |"]
        lines += [_row(entry) for entry in table if entry.systems.replace(",", " ").split()[0] == title]
    return "\n".join(lines) + "\n"


def _row(entry: Deviation) -> str:
    title = entry.systems.replace(",", " ").split()[0]
    whose = "" if entry.systems == title else f"({entry.systems}) "
    return f"| {whose}{entry.does} | {entry.kind} | {entry.bridge} | {entry.why} |"


def main(arguments: Sequence[str]) -> int:
    """Writes the page, or checks it."""
    written = page(read())
    if "--check" in arguments:
        fresh = PAGE.exists() and PAGE.read_text() == written
        print("fresh" if fresh else f"{PAGE} is not what `python -m tests.conformance.page` writes")
        return 0 if fresh else 1
    PAGE.write_text(written)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
