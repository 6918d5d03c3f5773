"""Breakpoints on ranks whose tensors are on devices."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.support.devices import MEMBERS
from tests.support.gangs import up

import rankbridge

pytestmark = pytest.mark.gpu

WAIT_S = 60.0


def test_a_held_call_shows_what_is_on_the_devices_and_goes_on(tmp_path: Path) -> None:
    with (
        up(tmp_path, MEMBERS, "nccl") as running,
        rankbridge.connect(running.description, timeout=WAIT_S) as gang,
    ):
        refs = gang.put([np.full(3, rank, np.float32) for rank in range(MEMBERS)])
        with gang.hold("kind=all_reduce") as hold:
            adding: Any = gang.submit("all_reduce", refs, op="sum")
            assert [it.rank for it in hold.wait(timeout=WAIT_S)] == list(range(MEMBERS))
            looks = hold.inspect(start=1, count=5)
            assert [it.inputs[0].spec for it in looks] == ["float32[3]"] * MEMBERS
            assert [(it.inputs[0].min, it.inputs[0].max) for it in looks] == [
                (rank, rank) for rank in range(MEMBERS)
            ]
            hold.resume()
        for it in gang.get(adding.result()):
            assert np.asarray(it).tolist() == [sum(range(MEMBERS))] * 3
        with gang.hold("has=nan") as hold:
            spoiled = gang.put([np.array([1, np.nan], np.float32)] * MEMBERS)
            adding = gang.submit("all_reduce", spoiled, op="sum")
            assert [it.why for it in hold.wait(timeout=WAIT_S)] == ["NaN in input 0"] * MEMBERS
            hold.resume()
        assert len(adding.result()) == MEMBERS
