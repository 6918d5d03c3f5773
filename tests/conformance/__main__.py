"""`python -m tests.conformance`: replays recorded cases through the bridge, and tells how they went, file by file."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from tests.conformance import tables
from tests.conformance.clients.elixir import elixir_clients
from tests.conformance.clients.python import PythonClient
from tests.conformance.explanations import Explanation
from tests.conformance.gangs import Gangs
from tests.conformance.judge import Verdict
from tests.conformance.recorded import DATA, Case, read_all
from tests.conformance.replays import with_any_client
from tests.conformance.runner import replay_all

CLIENTS = ("python", "elixir")
OUTCOMES = ("passed", "deviations", "failed")


def main(arguments: Sequence[str] | None = None) -> int:
    """Replays what the command line says; gives 1 if anything failed."""
    asked = options(arguments)
    files = read_all(asked.cases)
    chosen = [case for cases in files.values() for case in cases if is_chosen(case, asked.only)]
    if not chosen:
        print(f"no cases in {asked.cases}", file=sys.stderr)
        return 1
    table = tables.read()
    verdicts: list[Verdict] = []
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="rankbridge-conformance-")))
        gangs = stack.enter_context(Gangs(directory, asked.backend))
        for client in CLIENTS if asked.client == "both" else (asked.client,):
            for verdict in replayed_with(client, chosen, gangs, table, stack, directory):
                verdicts.append(verdict)
                report(verdict, asked.verbose)
    whole = asked.only is None and asked.client != "elixir" and asked.cases.resolve() == DATA.resolve()
    return summarise(verdicts, unused(table, verdicts) if whole else [])


def replayed_with(
    client: str,
    cases: Sequence[Case],
    gangs: Gangs,
    table: Sequence[Explanation],
    stack: ExitStack,
    directory: Path,
) -> Iterator[Verdict]:
    """Replays cases with one client; with Elixir's, those whose calls it can make."""
    if client == "python":
        return replay_all(cases, gangs, table, PythonClient)
    clients = stack.enter_context(elixir_clients(directory))
    return replay_all(filter(with_any_client, cases), gangs, table, clients)


def options(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance", description=__doc__)
    parser.add_argument("--cases", type=Path, default=DATA, metavar="DIR", help="folder of records")
    parser.add_argument("--only", metavar="FILE/CASE", help="cases whose file and name begin so")
    parser.add_argument("--backend", default="gloo", help="what moves the data (default: gloo)")
    parser.add_argument(
        "--client", choices=(*CLIENTS, "both"), default="python", help="who replays (default: python)"
    )
    parser.add_argument("--verbose", action="store_true", help="tell of every case")
    return parser.parse_args(arguments)


def is_chosen(case: Case, only: str | None) -> bool:
    """Whether a case is to be replayed."""
    return only is None or f"{case.suite}/{case.name}#{case.place}".startswith(only)


def report(verdict: Verdict, verbose: bool) -> None:
    """Tells of a case that failed, or of any."""
    if verdict.failures or verbose:
        print(
            f"{verdict.outcome}: {verdict.client} {verdict.case}", *sorted(verdict.explained_by), flush=True
        )
    for failure in verdict.failures[:4]:
        print(f"    {failure}", flush=True)
    if len(verdict.failures) > 4:
        print(f"    and {len(verdict.failures) - 4} more", flush=True)


def unused(table: Sequence[Explanation], verdicts: Sequence[Verdict]) -> list[str]:
    """Gives the entries that no case needs."""
    used = frozenset[str]().union(*(verdict.explained_by for verdict in verdicts))
    return [entry.id for entry in table if entry.id not in used]


def summarise(verdicts: Sequence[Verdict], unused: Sequence[str] = ()) -> int:
    """Tells the numbers of each file and client, and of all cases.

    Gives 1 if anything failed, or an entry of a table is unused.
    """
    for client in CLIENTS:
        own = [verdict for verdict in verdicts if verdict.client == client]
        for suite in sorted({verdict.case.suite for verdict in own}):
            of_suite = counted([verdict for verdict in own if verdict.case.suite == suite])
            print(f"{suite}{'' if client == 'python' else ' from Elixir'}: {of_suite}")
    for entry in unused:
        print(f"failed: no case needs the entry {entry!r}")
    worst = by_case(verdicts)
    if translated := sum(verdict.outcome == "passed" and bool(verdict.translations) for verdict in worst):
        print(f"said in another way, of those passed: {translated}")
    print(f"total: {counted(worst, len(unused))}")
    return 1 if unused or any(verdict.failures for verdict in verdicts) else 0


def by_case(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """Gives for each case, of however many clients replayed it, the worst verdict."""
    worst: dict[tuple[str, int], Verdict] = {}
    for verdict in verdicts:
        key = verdict.case.suite, verdict.case.place
        known = worst.setdefault(key, verdict)
        if OUTCOMES.index(verdict.outcome) > OUTCOMES.index(known.outcome):
            worst[key] = verdict
    return list(worst.values())


def counted(verdicts: Sequence[Verdict], more_failed: int = 0) -> str:
    """Gives how many went how."""
    numbers = {outcome: sum(verdict.outcome == outcome for verdict in verdicts) for outcome in OUTCOMES}
    numbers["failed"] += more_failed
    return ", ".join(f"{number} {outcome}" for outcome, number in numbers.items())


if __name__ == "__main__":
    sys.exit(main())
