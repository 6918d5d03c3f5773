"""What ranks have accepted and not answered yet, and for whom they wait, as others see it."""

from __future__ import annotations

import numpy as np
import pytest
from tests.support.gangs import RunningGang
from tests.support.waiting import until

import rankbridge
from rankbridge import Gang, PendingAdmission


@pytest.fixture(params=["fake4", "gloo4"])
def gang(request: pytest.FixtureRequest) -> RunningGang:
    running: RunningGang = request.getfixturevalue(request.param)
    return running


def admissions(gang: Gang) -> list[PendingAdmission]:
    """Of operations of `world`; other tests' groups may be in use."""
    return [it for each in gang.pending() for it in each.admissions if it.group == "world"]


def test_who_has_come_and_who_is_missing_is_listed_until_all_have(gang: RunningGang) -> None:
    with rankbridge.connect(gang.description) as driver, rankbridge.connect(gang.description) as watcher:
        for rank in (0, 1, 3):
            driver[rank].submit("barrier", operation_id="one", timeout=60)
        until(lambda: [set(it.arrived) for it in admissions(watcher)] == [{0, 1, 3}])
        (admission,) = admissions(watcher)
        assert (admission.operation, admission.operation_id, admission.missing) == ("barrier", "one", (2,))
        assert min(admission.arrived.values()) == 0.0
        assert 0 < admission.waited < 60
        listed = [[it for it in each.operations if it.operation_id == "one"] for each in watcher.pending()]
        assert [len(each) for each in listed] == [1, 1, 0, 1]
        for (it,) in (listed[0], listed[1], listed[3]):
            assert (it.operation, it.group, it.phase, it.session_id) == (
                "barrier",
                "world",
                "admission",
                driver.session_id,
            )
            assert it.waited > 0
            assert 0 < it.remaining < 60
        driver[2].barrier(operation_id="one")
        assert admissions(watcher) == []
        # The other ranks may still leave the backend.
        until(
            lambda: (
                not [it for each in watcher.pending() for it in each.operations if it.operation_id == "one"]
            )
        )


def test_what_is_queued_behind_another_is_listed_after_it(gang: RunningGang) -> None:
    with rankbridge.connect(gang.description) as driver:
        refs = driver.put([np.zeros(1, np.float32)] * 4)
        driver[1].submit("barrier", operation_id="first", timeout=60)
        driver[1].submit("all_reduce", refs[1], operation_id="second", timeout=60)

        def phases() -> list[tuple[str, str]]:
            own = [it for it in driver[1].pending().operations if it.session_id == driver.session_id]
            return [(it.operation_id, it.phase) for it in own]

        until(lambda: phases() == [("first", "admission"), ("second", "check")])
        # Who has come is known to the group's first rank alone.
        assert driver[1].pending().admissions == ()
        assert driver[1].cancel("second")
        assert driver[1].cancel("first")
        assert phases() == []


def test_an_idle_gang_has_nothing_pending(gang: RunningGang) -> None:
    with rankbridge.connect(gang.description) as driver:
        assert [it.operations for it in driver.pending()] == [()] * 4
