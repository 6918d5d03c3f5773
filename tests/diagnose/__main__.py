"""`python -m tests.diagnose`: programs that go wrong, with several seeds, as `rankbridge doctor` judges them; a table.

Exits with 0 only if nobody was blamed falsely.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tests.diagnose.faults import PROGRAMS, Program
from tests.diagnose.recorded import anonymous, name
from tests.diagnose.run import diagnose
from tests.diagnose.score import Score, row, score

HEAD = """| program | job | detected | kind right | ranks exact | false blame | p50 s | max s |
| --- | --- | --- | --- | --- | --- | --- | --- |"""


def main(arguments: list[str]) -> int:
    """Runs them, prints each that was not right, and writes the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.diagnose", description=__doc__)
    parser.add_argument("names", nargs="*", help="programs (default: all)")
    parser.add_argument(
        "--seeds", type=int, default=3, metavar="N", help="runs of each (default: %(default)s)"
    )
    parser.add_argument("--first", type=int, default=0, metavar="N", help="the first seed")
    parser.add_argument(
        "--jobs", nargs="+", choices=["unprepared", "watched"], default=["unprepared", "watched"]
    )
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the table into this page")
    parser.add_argument("--bundles", type=Path, metavar="FOLDER", help="keep the evidence of each run")
    parser.add_argument("--show", action="store_true", help="print every verdict")
    options = parser.parse_args(arguments)
    lines = [HEAD]
    every: dict[str, tuple[list[Score], list[Score]]] = {job: ([], []) for job in options.jobs}
    blamed = 0
    for it in options.names or PROGRAMS:
        program = PROGRAMS[it]
        for job in options.jobs:
            if not (program.watched if job == "watched" else program.unprepared):
                lines.append(row([program.what, job], []))
                continue
            scores = []
            for seed in range(options.first, options.first + options.seeds):
                scores.append(_one(program, seed, job, options))
            every[job][program.is_right].extend(scores)
            blamed += sum(it.false_blame for it in scores)
            lines.append(row([program.what, job], scores))
    for job, (wrong, right) in every.items():
        lines.append(row(["**all faults**", job], wrong))
        lines.append(row(["**all that is right**", job], right))
    text = "\n".join(lines)
    print(text)
    if options.write is not None:
        _insert(options.write, text)
    return 1 if blamed else 0


def _one(program: Program, seed: int, job: str, options: argparse.Namespace) -> Score:
    bundle = None
    if options.bundles is not None:
        options.bundles.mkdir(parents=True, exist_ok=True)
        bundle = options.bundles / name(program, job, seed)
    outcome = diagnose(program, seed, job == "watched", bundle)
    if bundle is not None:
        bundle.write_text(anonymous(bundle.read_text()))
    found = score(outcome)
    good = found.detected and found.right_kind and found.exact and not found.false_blame
    print(
        f"{'ok ' if good else 'BAD'} {program.name} {job} seed {seed}: {outcome.verdict['kind']} "
        f"{outcome.seconds:.2f} s, victim {outcome.plan.victim}, other {outcome.plan.other}",
        flush=True,
    )
    if not good or options.show:
        print(outcome.page, flush=True)
    return found


def _insert(page: Path, table: str) -> None:
    text = page.read_text()
    begin, end = "<!-- diagnose: begin -->\n", "<!-- diagnose: end -->"
    before, _, rest = text.partition(begin)
    after = rest.partition(end)[2]
    page.write_text(f"{before}{begin}{table}\n{end}{after}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
