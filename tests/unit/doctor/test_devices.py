"""Verdicts on jobs whose collectives run on devices: calls return at once, and a rank waits where it reads a result."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest
from tests.support.jobs import NOW, WORLD, elsewhere, frame, history, job, main_thread, waiting

from rankbridge_server.core.processes import GONE
from rankbridge_server.doctor import flight_recorder
from rankbridge_server.doctor.evidence import Call, Frame, Group, Process, RankEvidence
from rankbridge_server.doctor.judge import judge
from rankbridge_server.doctor.verdict import Condition, Kind

SIZE = 4
GROUPS = {WORLD: range(SIZE)}
ITEM = (frame("step", 12), frame("<module>", 20))
SYNCHRONIZE = (Frame(name="synchronize", file="/x/site-packages/torch/cuda/__init__.py", line=1), *ITEM)
RUNS = Process(state="R", cpu_s=0.4, switches=0)


def on_device(calls: Iterable[Call]) -> list[Call]:
    """As the record of a watched rank has them: they have returned, and nobody knows what became of them."""
    return [replace(it, on_device=True, done=None, returned_at=it.called_at) for it in calls]


def running(rank: int, calls: Iterable[Call], frames: tuple[Frame, ...]) -> RankEvidence:
    """A rank that uses its CPU at one place."""
    made = waiting(rank, on_device(calls), GROUPS)
    return replace(made, source="ring", process=RUNS, threads=(main_thread(frames, state="R"),))


def sleeping(rank: int, calls: Iterable[Call]) -> RankEvidence:
    """A rank that sleeps in its own code."""
    return replace(elsewhere(rank, on_device(calls), GROUPS), source="ring")


@pytest.mark.parametrize("frames", [ITEM, SYNCHRONIZE], ids=["item", "synchronize"])
@pytest.mark.parametrize("how", [Condition.ASLEEP, Condition.SPINNING], ids=str)
def test_who_has_not_called_is_named_wherever_the_others_wait(
    frames: tuple[Frame, ...], how: Condition
) -> None:
    before = history(8)
    late = sleeping(2, before) if how is Condition.ASLEEP else running(2, before, (frame("loop", 3), *ITEM))
    verdict = judge(job([late if it == 2 else running(it, history(9), frames) for it in range(SIZE)]))
    assert (verdict.kind, [it.rank for it in verdict.culprits]) == (Kind.NEVER_CALLED, [2])
    assert (verdict.call, verdict.culprits[0].condition) == ("all_reduce world#9", how)


@pytest.mark.parametrize(
    ("in_call_s", "kind"), [(7.0, Kind.NEVER_CALLED), (0.0, Kind.UNKNOWN)], ids=["in the call", "after it"]
)
def test_what_the_first_call_takes_to_connect_is_no_pause_of_the_rank(in_call_s: float, kind: Kind) -> None:
    ranks = [running(it, history(9), ITEM) for it in range(SIZE)]
    ranks[2] = sleeping(2, history(8))
    first, *others = ranks[2].calls
    assert first.called_at is not None
    first = replace(first, called_at=first.called_at - 7, returned_at=first.called_at - 7 + in_call_s)
    ranks[2] = replace(ranks[2], calls=(first, *others))
    verdict = judge(job(ranks))
    assert (verdict.kind, [it.rank for it in verdict.culprits]) == (kind, [2] if in_call_s else [])


def asked(rank: RankEvidence, open_: int) -> RankEvidence:
    """The same rank of a job that nobody prepared. By torch's recorder, calls from this number on are not done."""
    calls = tuple(replace(it, done=it.number < open_, returned_at=None) for it in rank.calls)
    return replace(rank, source="flight recorder", calls=calls)


@pytest.mark.parametrize("how", [Condition.ASLEEP, Condition.SPINNING], ids=str)
def test_of_a_job_that_nobody_prepared_the_recorder_says_what_is_done(how: Condition) -> None:
    before = history(8)
    late = sleeping(2, before) if how is Condition.ASLEEP else running(2, before, (frame("loop", 3), *ITEM))
    ranks = [asked(running(it, history(12), ITEM), 9) for it in range(SIZE)]
    ranks[2] = asked(late, 9)
    verdict = judge(job(ranks))
    assert (verdict.kind, [it.rank for it in verdict.culprits]) == (Kind.NEVER_CALLED, [2])
    assert (verdict.call, verdict.culprits[0].condition) == ("all_reduce world#9", how)
    # One that is behind and moves is slow at most.
    moving = [replace(it, called_at=NOW - 0.3 * (8 - it.number)) for it in before]
    ranks[2] = asked(running(2, moving, ITEM), 9)
    assert judge(job(ranks)).kind is Kind.HEALTHY


def test_who_sleeps_and_has_called_is_not_named() -> None:
    ranks = [running(it, history(9), ITEM) for it in range(SIZE)]
    ranks[0], ranks[2] = sleeping(0, history(9)), sleeping(2, history(8))
    assert [it.rank for it in judge(job(ranks)).culprits] == [2]


def test_who_is_behind_and_moves_is_slow_and_no_more() -> None:
    ahead = history(60, gap_s=0.1, until=NOW - 1)
    behind = [replace(it, called_at=NOW - 0.3 * (20 - it.number)) for it in history(20)]
    ranks = [running(it, ahead, ITEM) for it in range(SIZE)]
    ranks[2] = running(2, behind, ITEM)
    verdict = judge(job(ranks))
    assert (verdict.kind, [it.rank for it in verdict.culprits]) == (Kind.SLOW, [2])


def test_ranks_that_sleep_and_have_called_alike_wait_for_nobody() -> None:
    verdict = judge(job([sleeping(it, history(9)) for it in range(SIZE)]))
    assert (verdict.kind, verdict.culprits) == (Kind.HEALTHY, ())


@pytest.mark.parametrize("frames", [ITEM, SYNCHRONIZE], ids=["item", "synchronize"])
@pytest.mark.parametrize(("gap_s", "kind"), [(0.1, Kind.UNKNOWN), (6.0, Kind.HEALTHY)], ids=["long", "usual"])
def test_when_all_have_called_and_wait_for_their_devices_for_long_nothing_is_certain(
    frames: tuple[Frame, ...], gap_s: float, kind: Kind
) -> None:
    ranks = [running(it, history(9, gap_s=gap_s), frames) for it in range(SIZE)]
    verdict = judge(job(ranks))
    assert (verdict.kind, verdict.culprits) == (kind, ())
    if kind is Kind.UNKNOWN:
        assert verdict.summary.startswith("all members have called all_reduce world#9, alike")


def test_who_has_called_all_and_has_gone_is_not_waited_for() -> None:
    ranks = [sleeping(it, history(9)) for it in range(SIZE)]
    ranks[2] = replace(ranks[2], process=Process(state=GONE, exit_status=0), threads=())
    assert not judge(job(ranks)).culprits


def entry(number: int, at: int, group: str, state: str = "completed") -> dict[str, Any]:
    """As torch writes it."""
    return {
        "record_id": number,
        "process_group": [group, "described"],
        "collective_seq_id": number,
        "profiling_name": "nccl:all_reduce",
        "time_created_ns": at * 10**9,
        "retired": False,
        "state": state,
    }


def test_the_recorder_of_nccl_is_read_and_its_numbers_are_apart_from_those_of_gloo() -> None:
    content = {
        "groups": {
            "0": {"ranks": [0, 1], "backend": "cpu:gloo,cuda:nccl"},
            "1": {"ranks": [0, 1], "backend": "nccl"},
        },
        "trace": {"entries": [entry(1, 1, "0"), entry(2, 3, "0")]},
        "device_trace": {"entries": [entry(1, 2, "0"), entry(1, 4, "1", state="scheduled")]},
    }
    groups, calls = flight_recorder.known(content)
    assert [(it.group, it.number, it.on_device, it.done) for it in calls] == [
        ("0", 1, False, True),
        ("0 on devices", 1, True, True),
        ("0", 2, False, True),
        ("1", 1, True, False),
    ]
    assert {it.name: it.ranks for it in groups} == dict.fromkeys(("0", "1", "0 on devices"), (0, 1))
    assert isinstance(groups[0], Group)
