"""A sample of every file on gangs of the recorded sizes, on the fake backend; `make conformance` replays everything."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.conformance import tables
from tests.conformance.clients.python import PythonClient
from tests.conformance.gangs import Gangs
from tests.conformance.recorded import Case, cases
from tests.conformance.runner import replay
from tests.conformance.test_recorded_cases import SUITES
from tests.support.sampling import sample

TABLE = tables.read()
LARGEST = 4
NOT_ON_FAKE = {
    # Its ranks are of one process.
    "hazards/rank_killed",
}
EACH = 5
"""How many of a file, at most, of each world: of as many names."""


def sampled(suite: str) -> list[Case]:
    """Some cases of a file: of each world as many, of as many names as there are."""
    found: list[Case] = []
    for world in range(1, LARGEST + 1):
        by_name: dict[str, list[Case]] = {}
        for case in cases(suite):
            if case.world == world and f"{suite}/{case.name}" not in NOT_ON_FAKE:
                by_name.setdefault(case.name, []).append(case)
        found += [case for named in sample(list(by_name.values()), EACH) for case in sample(named, 1)]
    return found


@pytest.fixture(scope="module")
def gangs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gangs]:
    """Gangs of any size, started when they are asked for first."""
    with Gangs(tmp_path_factory.mktemp("gangs"), "fake") as gangs:
        yield gangs


@pytest.mark.parametrize("case", [case for suite in SUITES for case in sampled(suite)], ids=str)
def test_the_bridge_does_what_was_recorded_or_a_deviation(case: Case, gangs: Gangs) -> None:
    verdict = replay(case, gangs, TABLE, PythonClient)
    assert verdict.failures == ()
    assert verdict.moments > 0
