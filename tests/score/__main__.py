"""`python -m tests.score`: labelled cases, faulty and correct, on real gangs; how right the errors are, by class.

Exits with 0 only if all were right: nothing silent or hung, nobody blamed falsely, no false alarm.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from pathlib import Path

from tests.score import table
from tests.score.labelled import SIZE, Labelled
from tests.score.order import ORDERS
from tests.score.plan import plan, titles
from tests.score.run import Outcome, run
from tests.score.score import Score, score

from rankbridge.harness.gangs import Pool, Wanted


def main(arguments: list[str]) -> int:
    """Runs them, prints each that was not right, and writes the tables."""
    parser = argparse.ArgumentParser(prog="python -m tests.score", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, metavar="S", help="draws the cases (default: 1)")
    parser.add_argument("--backends", nargs="+", default=["fake", "gloo"], metavar="B")
    parser.add_argument("--only", default="", metavar="CLASS", help="cases of this class")
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the tables into this page")
    options = parser.parse_args(arguments)
    good = True
    for backend in options.backends:
        ok, text = scored(backend, options.seed, options.only)
        good &= ok
        print(text, flush=True)
        if options.write is not None:
            insert(options.write, backend, text)
    return 0 if good else 1


def scored(backend: str, seed: int, only: str = "") -> tuple[bool, str]:
    """Runs the cases of a seed on a backend; tells whether all were right, and gives the tables."""
    faulty: dict[str, list[Score]] = defaultdict(list)
    correct: dict[str, list[Score]] = defaultdict(list)
    by_order: dict[str, list[Score]] = {order: [] for order in ORDERS}
    what, ok = titles(), True
    with Pool() as pool:
        for case in plan(seed, backend):
            if only and case.kind != only:
                continue
            outcome = run(case, pool.gang(Wanted(SIZE, backend)))
            found = score(case, outcome)
            (correct if case.truth is None else faulty)[what[case.kind]].append(found)
            if case.truth is not None:
                by_order[case.order].append(found)
            if not found.good:
                ok = False
                show(backend, case, outcome, found)
    tables = [table.faulty(faulty), table.faulty(by_order, "who comes first")] if faulty else []
    return ok, "\n\n".join(tables + ([table.correct(correct)] if correct else []))


def show(backend: str, case: Labelled, outcome: Outcome, found: Score) -> None:
    """Says what was not right."""
    print(f"{backend} {case.name}: {found}", flush=True)
    for rank, errors in outcome.errors.items():
        print(f"    rank {rank}: {errors[0]}", flush=True)


def insert(page: Path, backend: str, text: str) -> None:
    """Writes the tables of a backend between their marks."""
    begin, end = f"<!-- {backend}: begin -->\n", f"<!-- {backend}: end -->"
    before, _, rest = page.read_text().partition(begin)
    after = rest.partition(end)[2]
    page.write_text(f"{before}{begin}{text}\n{end}{after}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
