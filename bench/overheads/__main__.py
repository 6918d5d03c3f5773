"""`python -m bench.overheads`: what the bridge adds to what a rank does anyway. Writes overheads.md."""

from __future__ import annotations

import argparse
import platform
import sys
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Protocol

from bench.__main__ import HERE, machine
from bench.overheads.guard import guard
from bench.overheads.overhead import Overhead
from bench.overheads.page import page
from bench.overheads.record import record
from bench.overheads.watch import record_of_calls, watch


class _Measure(Protocol):
    def __call__(self, *, quick: bool) -> Overhead: ...


_ALL: dict[str, _Measure] = {
    "record": record,
    "watch": watch,
    "calls": record_of_calls,
    "guard": guard,
    "page": page,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures, prints, and writes the page, if all were asked for."""
    parser = argparse.ArgumentParser(prog="python -m bench.overheads", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"default: all: {', '.join(_ALL)}")
    parser.add_argument("--quick", action="store_true", help="a tenth of the blocks, or fewer")
    parser.add_argument("--out", type=Path, default=HERE, metavar="DIR", help="where the page is written")
    asked = parser.parse_args(arguments)
    if unknown := [name for name in asked.names if name not in _ALL]:
        parser.error(f"there is no {', '.join(unknown)}; there are {', '.join(_ALL)}")
    found = []
    for name in asked.names or _ALL:
        overhead = _ALL[name](quick=asked.quick)
        print(*overhead.lines(), "", sep="\n", flush=True)
        found.append(overhead)
    if not asked.names:
        asked.out.mkdir(parents=True, exist_ok=True)
        (asked.out / "overheads.md").write_text("\n".join(_page(found, quick=asked.quick)))
    return 0


def _page(found: Sequence[Overhead], *, quick: bool) -> Iterator[str]:
    command = "python -m bench.overheads" + (" --quick" if quick else "")
    yield from ("# Overheads", "")
    yield f"Written by `{command}`; [docs/benchmark.md](../docs/benchmark.md#overheads) says how to read it."
    yield ""
    yield f"Machine: {machine()}. Versions: Python {platform.python_version()}, torch {version('torch')}."
    for overhead in found:
        yield ""
        yield from overhead.lines()
    yield ""


if __name__ == "__main__":
    sys.exit(main())
