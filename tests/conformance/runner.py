"""Replays cases on gangs, one world after the other."""

from __future__ import annotations

import itertools
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from tests.conformance.clients.client import Client
from tests.conformance.explanations import Explanation
from tests.conformance.gangs import Gangs
from tests.conformance.judge import Verdict, judge
from tests.conformance.recorded import Case
from tests.conformance.replays import replay_of
from tests.conformance.stage import Stage

from rankbridge import Gang

_NUMBERS = itertools.count()


def replay_all(
    cases: Iterable[Case], gangs: Gangs, table: Sequence[Explanation], client_of: Callable[[Gang], Client]
) -> Iterator[Verdict]:
    """Replays cases, smallest worlds first, and gives their verdicts as they come."""
    for world, of_world in itertools.groupby(
        sorted(cases, key=lambda case: case.world), lambda case: case.world
    ):
        for case in of_world:
            yield replay(case, gangs, table, client_of)
        gangs.end(world)


def replay(
    case: Case, gangs: Gangs, table: Sequence[Explanation], client_of: Callable[[Gang], Client]
) -> Verdict:
    """Replays one case. Whatever goes wrong is its failure."""
    play = replay_of(case)
    if play is None:
        return Verdict(case, failures=("there is no replay of such cases",))
    client: Client | None = None
    try:
        gang = gangs.of_size(case.world)
        with gang.session():
            client = client_of(gang)
            stage = Stage(gang, client, f"case{next(_NUMBERS)}", gangs)
            try:
                verdict = judge(case, play(case, stage), table)
            finally:
                stage.close()
    except Exception as error:
        shown = "".join(traceback.format_exception(error)[-3:])
        verdict = Verdict(case, failures=(f"the replay itself failed: {shown}",))
    if verdict.failures:
        gangs.end_broken(case.world)
    return verdict if client is None else replace(verdict, client=client.name)
