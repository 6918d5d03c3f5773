"""`python -m tests.diagnose`: programs that go wrong, with several seeds, as `rankbridge doctor` judges them; a table.

Exits with 0 only if nobody was blamed falsely.
"""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path

from tests.diagnose import faults
from tests.diagnose.faults import Program
from tests.diagnose.plan import Plan
from tests.diagnose.programs import programs
from tests.diagnose.recorded import anonymous, name
from tests.diagnose.results import Results, Row
from tests.diagnose.rivals.run import Answer, judge, listen
from tests.diagnose.rivals.table import tables
from tests.diagnose.rivals.tools import Tool, in_favour
from tests.diagnose.run import diagnose
from tests.diagnose.said import Said
from tests.diagnose.score import Score, row, score
from tests.diagnose.variants import Variant

HEAD = """| program | detected | kind right | ranks exact | false blame | p50 s | max s |
| --- | --- | --- | --- | --- | --- | --- |"""


def main(arguments: list[str]) -> int:
    """Runs them, prints each that was not right, and writes the tables."""
    parser = argparse.ArgumentParser(prog="python -m tests.diagnose", description=__doc__)
    parser.add_argument("names", nargs="*", help="programs (default: all)")
    parser.add_argument(
        "--seeds", type=int, default=3, metavar="N", help="runs of each (default: %(default)s)"
    )
    parser.add_argument(
        "--right", type=int, metavar="N", help="runs of each that is right (default: as of the others)"
    )
    parser.add_argument(
        "--jobs", type=int, default=1, metavar="N", help="runs at a time (default: %(default)s)"
    )
    parser.add_argument("--first", type=int, default=0, metavar="N", help="the first seed")
    parser.add_argument("--variants", nargs="+", type=Variant, choices=[*Variant], default=[*Variant])
    parser.add_argument(
        "--rivals", action="store_true", help="torch's own tools instead, with the doctor beside them"
    )
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the tables into this page")
    parser.add_argument("--bundles", type=Path, metavar="FOLDER", help="keep the evidence of each run")
    parser.add_argument(
        "--results", type=Path, metavar="FILE", help="keep scores; runs that it has are not made again"
    )
    parser.add_argument("--show", action="store_true", help="print every verdict")
    options = parser.parse_args(arguments)
    known_names = {it for variant in Variant for it in programs(variant)}
    if unknown := sorted({*options.names} - known_names):
        parser.error(f"no such program: {', '.join(unknown)}; there are {', '.join(sorted(known_names))}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    results = Results(options.results)
    if options.rivals:
        _rivals(options, results)
        return 0
    blamed = 0
    for variant in options.variants:
        known = programs(variant)
        chosen = [known[it] for it in options.names or known if it in known]
        scores = _scores(chosen, variant, options, results)
        blamed += sum(it.false_blame for _, them in scores for it in them)
        text = _table(scores)
        print(text)
        if options.write is not None:
            _insert(options.write, variant, text)
    return 1 if blamed else 0


def _rivals(options: argparse.Namespace, results: Results) -> None:
    chosen = [faults.PROGRAMS[it] for it in options.names or faults.PROGRAMS]
    # One after the other: jobs that are listened to compute for as long as nothing stands still.
    listened, judged = (
        _rows(chosen, f"rivals {it.__name__}", partial(_scores_of_rivals, options, it), options, results)
        for it in (listen, judge)
    )
    text = tables(
        [
            (
                program,
                [
                    {Tool(name): it for name, it in {**a, **b}.items()}
                    for a, b in zip(one, other, strict=True)
                ],
            )
            for (program, one), (_, other) in zip(listened, judged, strict=True)
        ]
    )
    print(text)
    if options.write is not None:
        _insert(options.write, "rivals", text)


def _scores_of_rivals(
    options: argparse.Namespace,
    ask: Callable[[Program, int], dict[Tool, Answer]],
    program: Program,
    seed: int,
) -> Row:
    plan = Plan.drawn(program.name, seed)
    bare = replace(program, conditions=frozenset())
    answers = ask(program, seed)
    for tool, it in answers.items():
        blamed = sorted(it.said.blamed)
        print(f"{program.name} seed {seed} {tool}: {it.said.kind} {blamed} {it.seconds:.2f} s", flush=True)
        if options.show:
            print(it.output, flush=True)
    return {
        str(tool): score(bare, plan, in_favour(program, plan, it.said), it.seconds)
        for tool, it in answers.items()
    }


def _scores(
    chosen: Sequence[Program], variant: Variant, options: argparse.Namespace, results: Results
) -> list[tuple[Program, list[Score]]]:
    found = _rows(chosen, str(variant), partial(_score_of_doctor, options, variant), options, results)
    return [(program, [row[Tool.DOCTOR] for row in rows]) for program, rows in found]


def _rows(
    chosen: Sequence[Program],
    how: str,
    run: Callable[[Program, int], Row],
    options: argparse.Namespace,
    results: Results,
) -> list[tuple[Program, list[Row]]]:
    """What each program's runs give, one for each seed. `how`: names the runs among others of the program."""

    def one(program: Program, seed: int) -> Row:
        return results.of(f"{program.name} {how} {seed}", partial(run, program, seed))

    def runs(program: Program) -> int:
        return int(options.right if program.is_right and options.right is not None else options.seeds)

    # One seed of all, then the next: what was cut off has whole seeds.
    most = max(map(runs, chosen), default=0)
    wanted = [(it, seed) for seed in range(most) for it in chosen if seed < runs(it)]
    pool = ThreadPoolExecutor(options.jobs)
    try:
        begun = [(program, pool.submit(one, program, options.first + seed)) for program, seed in wanted]
        return [(it, [row.result() for program, row in begun if program is it]) for it in chosen]
    finally:
        # Those that have begun end their jobs.
        pool.shutdown(cancel_futures=True)


def _table(scores: Sequence[tuple[Program, list[Score]]]) -> str:
    lines = [HEAD, *(row(program.what, them) for program, them in scores)]
    for title, is_right in (("**all that goes wrong**", False), ("**all that is right**", True)):
        lines.append(
            row(title, [it for program, them in scores if program.is_right is is_right for it in them])
        )
    return "\n".join(lines)


def _score_of_doctor(options: argparse.Namespace, variant: Variant, program: Program, seed: int) -> Row:
    bundle = None
    if options.bundles is not None and variant not in (Variant.GANG, Variant.ATTACHED):
        options.bundles.mkdir(parents=True, exist_ok=True)
        bundle = options.bundles / name(program, variant, seed)
    outcome = diagnose(program, seed, variant, bundle)
    if bundle is not None:
        bundle.write_text(anonymous(bundle.read_text()))
    plan = Plan.drawn(program.name, seed)
    found = score(program, plan, Said.by_doctor(outcome.verdict), outcome.seconds)
    good = found.detected and found.right_kind and found.exact and not found.false_blame
    print(
        f"{'ok ' if good else 'BAD'} {program.name} {variant} seed {seed}: {outcome.verdict['kind']} "
        f"{outcome.seconds:.2f} s, victim {plan.victim}, other {plan.other}",
        flush=True,
    )
    if not good or options.show:
        print(outcome.text, flush=True)
    return {Tool.DOCTOR: found}


def _insert(page: Path, name: str, table: str) -> None:
    text = page.read_text()
    begin, end = f"<!-- {name}: begin -->\n", f"<!-- {name}: end -->"
    before, _, rest = text.partition(begin)
    after = rest.partition(end)[2]
    page.write_text(f"{before}{begin}{table}\n{end}{after}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
