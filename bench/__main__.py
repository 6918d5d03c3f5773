"""`python -m bench`: ours beside its peers, in interleaved rounds. Writes results.md and results.svg."""

from __future__ import annotations

import argparse
import os
import platform
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bench import growth, rounds, subjects
from bench.plot import plot
from bench.report import Circumstances, report
from bench.rounds import Plan, Run
from bench.rows import ROWS, SIZE, result
from bench.samples import Samples

HERE = Path(__file__).resolve().parent
# Of the rounds of one size, in seconds: with the starts and the growth, a quick run takes less than three minutes.
_QUICK_S, _WHOLE_S = 75.0, 900.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures, writes, and tells of every row."""
    asked = options(arguments)
    plan = Plan(rounds=asked.rounds, seconds=asked.seconds, scale=asked.scale, quick=asked.quick)
    samples, loads = Samples(), list[float]()
    with tempfile.TemporaryDirectory(prefix="rankbridge-bench-") as directory:
        log = Path(directory)
        for size in asked.sizes:
            rounds.measure(
                asked.subjects,
                Run(size=size, plan=plan, samples=samples, loads=loads, log=log, say=say),
            )
        growth.measure(asked.growth, asked.scale, samples, log, say)
    results = [result(row, samples) for row in ROWS]
    of = Circumstances(command=command(arguments), machine=machine(), loads=loads, plot="results.svg")
    asked.out.mkdir(parents=True, exist_ok=True)
    (asked.out / "results.md").write_text(report(results, samples, of))
    (asked.out / of.plot).write_text(plot(samples))
    say(f"wrote {asked.out / 'results.md'} and {of.plot}")
    print(*results, sep="\n")
    return 0


def options(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help=f"{SIZE} ranks alone, no 1 GiB, less of the rest"
    )
    parser.add_argument("--sizes", type=_numbers, metavar="N,N", help="ranks (default: 2,4,8)")
    parser.add_argument("--growth", type=_numbers, metavar="N,N", help="sidecars (default: 8 to 256)")
    parser.add_argument("--rounds", type=int, metavar="N", help="rounds at most of each size")
    parser.add_argument("--seconds", type=float, metavar="S", help="after which no further round begins")
    parser.add_argument(
        "--scale", type=float, default=1.0, metavar="X", help="of the calls in a block (default: 1)"
    )
    parser.add_argument(
        "--subjects",
        type=lambda text: text.split(","),
        default=list(subjects.NAMES),
        metavar="NAME,NAME",
        help=f"default: {','.join(subjects.NAMES)}",
    )
    parser.add_argument("--out", type=Path, default=HERE, metavar="DIR", help="where results are written")
    asked = parser.parse_args(arguments)
    quick = asked.quick
    asked.sizes = asked.sizes or ([SIZE] if quick else [2, 4, 8])
    if asked.growth is None:
        asked.growth = growth.QUICK_SIZES if quick else growth.SIZES
    asked.rounds = asked.rounds or (6 if quick else 20)
    asked.seconds = asked.seconds or (_QUICK_S if quick else _WHOLE_S)
    return asked


def _numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(",") if number]


def command(arguments: Sequence[str] | None) -> str:
    """What was run, as one would type it."""
    return " ".join(["python -m bench", *(sys.argv[1:] if arguments is None else arguments)])


def machine() -> str:
    """Its cores and kind."""
    return f"{os.cpu_count()} cores, {platform.machine()}, {platform.system()}"


def say(text: str) -> None:
    """One line of progress, apart from what is told of the rows."""
    print(f"bench: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
