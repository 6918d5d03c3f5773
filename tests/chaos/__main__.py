"""`python -m tests.chaos`: random operations under random faults. Exits with 0 only when all held."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from tests.chaos.controllers.process import ElixirMissingError
from tests.chaos.plan import CLIENTS, plan
from tests.chaos.run import run
from tests.chaos.table import table


def main(arguments: list[str]) -> int:
    """Runs chaos and gives the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--rounds", type=int, default=100, metavar="N", help="faults (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=None, metavar="S", help="repeats a run (default: random)")
    parser.add_argument("--ranks", type=_sizes, default=[2, 3, 4], metavar="A-B", help="2-4 unless said")
    parser.add_argument(
        "--max-bytes", type=int, default=64 << 20, metavar="N", help="largest tensor (default: 64 MiB)"
    )
    parser.add_argument(
        "--clients",
        nargs="+",
        choices=CLIENTS,
        default=CLIENTS,
        help="whose operations rounds have (default: all; the faults and operations of a seed stay the same)",
    )
    parser.add_argument(
        "--record",
        type=Path,
        metavar="FOLDER",
        help="write rounds that do not hold into FOLDER, as scenarios for `rankbridge test`",
    )
    parser.add_argument("--backend", default="gloo", metavar="B", help="what moves the data (default: gloo)")
    options = parser.parse_args(arguments)
    seed = time.time_ns() % 1_000_000 if options.seed is None else options.seed
    rounds = plan(options.rounds, seed, options.ranks, options.max_bytes, options.clients)
    print(f"chaos: {len(rounds)} rounds, seed {seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="rankbridge-chaos-") as directory:
        try:
            say = lambda line: print(line, flush=True)  # noqa: E731
            report = run(rounds, Path(directory), say, options.record, options.backend)
        except ElixirMissingError as error:
            print(f"chaos: {error}", file=sys.stderr)
            return 1
    print(table(report), flush=True)
    return 0 if report.findings.held and report.done == len(rounds) else 1


def _sizes(text: str) -> list[int]:
    first, _, last = text.partition("-")
    sizes = list(range(int(first), int(last or first) + 1))
    if not sizes or sizes[0] < 2:
        raise argparse.ArgumentTypeError("two ranks at least: 2-4")
    return sizes


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
