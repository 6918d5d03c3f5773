"""Rounds of chaos as scenarios: each does the round's fault, and holds."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.chaos.faults.fault import Fault
from tests.chaos.faults.kinds import FAULTS
from tests.chaos.plan import Round, plan
from tests.chaos.written import write_round

from rankbridge.harness.cases import load
from rankbridge.harness.gangs import Pool
from rankbridge.harness.running import run

WITHOUT_A_WORD = {"dead controller", "full queue"}


def one_of_each(seed: int) -> dict[type[Fault], Round]:
    rounds = plan(2 * len(FAULTS), seed, sizes=[3], max_bytes=1 << 12, clients=["python", "both"])
    return {type(it.fault): it for it in rounds}


@pytest.mark.usefixtures("quick_gangs")
def test_a_round_of_each_kind_is_a_scenario_that_holds(tmp_path: Path) -> None:
    rounds = one_of_each(seed=3)
    assert rounds.keys() == set(FAULTS)
    files = {it.fault.kind: write_round(it, tmp_path) for it in rounds.values()}
    for kind, file in files.items():
        text = file.read_text()
        assert (f"There is no word for the fault {kind}" in text) == (kind in WITHOUT_A_WORD)
    both = next(it for it in rounds.values() if it.client == "both")
    assert "There is no word for who calls: " in files[both.fault.kind].read_text()
    with Pool() as pool:
        found = list(run(load([str(it) for kind, it in files.items() if kind not in WITHOUT_A_WORD]), pool))
    assert [(it.name, list(map(str, it.failures))) for it in found if it.status != "ok"] == []
