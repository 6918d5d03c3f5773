"""Answers of NCCL's RAS as evidence: who is behind, who is dead, and what one answer alone does not show."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from rankbridge_server.doctor.judge import judge
from rankbridge_server.doctor.verdict import Condition, Kind, Verdict
from rankbridge_server.job.outside import ras
from rankbridge_server.job.outside.processes import NoJob

KINDS = ("Broadcast", "Reduce", "AllGather", "ReduceScatter", "AllReduce")
Counts = Mapping[str, int]


def gpu(number: int) -> dict[str, Any]:
    return {
        "host": f"10.0.0.{1 + number // 8}",
        "pid": 1000 + number,
        "cuda_dev": number % 8,
        "nvml_dev": number % 8,
    }


def rank(number: int, gpu_of: int, counts: Counts, **status: object) -> dict[str, Any]:
    state = {
        "init_state": 0,
        "async_error": 0,
        "finalize_called": False,
        "destroy_flag": False,
        "abort_flag": False,
    }
    all_counts = {kind: counts.get(kind, 0) for kind in KINDS}
    return {"rank": number, **gpu(gpu_of), "status": state | status, "collective_counts": all_counts}


def missing(number: int, gpu_of: int, *, dead: bool = False, unresponsive: bool = True) -> dict[str, Any]:
    return {"rank": number, **gpu(gpu_of), "status": {"unresponsive": unresponsive, "considered_dead": dead}}


def communicator(
    key: str, ranks: Sequence[Mapping[str, Any]], lost: Sequence[Mapping[str, Any]] = ()
) -> dict[str, Any]:
    return {
        "hash": key,
        "secondary_hash": f"{key}:0x1",
        "size": len(ranks) + len(lost),
        "ranks_count": len(ranks),
        "missing_ranks_count": len(lost),
        "ranks": ranks,
        "missing_ranks": lost,
    }


def alike(key: str, each: Sequence[Counts]) -> dict[str, Any]:
    """A communicator of all ranks."""
    return communicator(key, [rank(number, number, counts) for number, counts in enumerate(each)])


def answer(second: int, *communicators: Mapping[str, Any]) -> str:
    return json.dumps(
        {
            "nccl_version": "2.29.1",
            "timestamp": f"2026-11-25 13:06:{second:02}",
            "communicators_count": len(communicators),
            "communicators": communicators,
            "ras": {"collection_time_sec": 0.0, "timeouts_count": 0},
        }
    )


def verdict(folder: Path, *answers: str) -> Verdict:
    paths = []
    for number, text in enumerate(answers):
        paths.append(folder / f"{number}.json")
        paths[-1].write_text(text)
    return judge(ras.collect(paths))


AHEAD, BEHIND = {"AllReduce": 7, "Broadcast": 1}, {"AllReduce": 6, "Broadcast": 1}


def test_a_rank_that_stays_behind_is_named_with_the_call_that_it_lacks(tmp_path: Path) -> None:
    stuck = alike("0xa", [AHEAD, AHEAD, BEHIND, AHEAD])
    found = verdict(tmp_path, answer(0, stuck), answer(10, stuck))
    assert (found.kind, [it.rank for it in found.culprits]) == (Kind.NEVER_CALLED, [2])
    assert found.call == "all_reduce world"
    assert (found.culprits[0].pid, found.culprits[0].host) == (1002, "10.0.0.1")
    assert [(it.rank, it.waits_for) for it in found.waits] == [(0, (2,)), (1, (2,)), (3, (2,))]


def test_the_order_of_the_files_is_not_theirs(tmp_path: Path) -> None:
    stuck = alike("0xa", [AHEAD, BEHIND])
    assert verdict(tmp_path, answer(10, stuck), answer(0, stuck)).kind is Kind.NEVER_CALLED


def test_one_answer_shows_who_is_behind_and_blames_nobody(tmp_path: Path) -> None:
    found = verdict(tmp_path, answer(0, alike("0xa", [AHEAD, AHEAD, BEHIND])))
    assert (found.kind, found.culprits) == (Kind.UNKNOWN, ())
    assert [it.waits_for for it in found.waits] == [(2,), (2,)]
    assert any("a second, seconds later" in it for it in found.notes)


def test_a_job_that_moves_is_healthy_though_one_is_behind_each_time(tmp_path: Path) -> None:
    later = [{"AllReduce": 9}, {"AllReduce": 8}]
    found = verdict(tmp_path, answer(0, alike("0xa", [AHEAD, BEHIND])), answer(10, alike("0xa", later)))
    assert found.kind is Kind.HEALTHY


def test_a_rank_that_moves_elsewhere_is_not_blamed(tmp_path: Path) -> None:
    stuck = alike("0xa", [AHEAD, BEHIND])
    alone = [communicator("0xb", [rank(0, 1, {"AllGather": count})]) for count in (3, 9)]
    found = verdict(tmp_path, answer(0, stuck, alone[0]), answer(10, stuck, alone[1]))
    assert found.culprits == ()


def test_of_ranks_that_stand_at_the_same_number_nothing_is_certain(tmp_path: Path) -> None:
    same = alike("0xa", [AHEAD, AHEAD])
    assert verdict(tmp_path, answer(0, same), answer(10, same)).kind is Kind.UNKNOWN


@pytest.mark.parametrize(("dead", "condition"), [(True, Condition.DEAD), (False, Condition.SILENT)])
def test_a_rank_that_does_not_answer_is_named_where_the_others_stand(
    tmp_path: Path, dead: bool, condition: Condition
) -> None:
    stuck = communicator("0xa", [rank(0, 0, AHEAD), rank(2, 2, AHEAD)], [missing(1, 1, dead=dead)])
    found = verdict(tmp_path, answer(0, stuck), answer(10, stuck))
    assert (found.kind, [(it.rank, it.condition) for it in found.culprits]) == (
        Kind.NEVER_CALLED,
        [(1, condition)],
    )


def test_other_kinds_at_the_same_number_are_two_sides(tmp_path: Path) -> None:
    differ = alike("0xa", [{"AllReduce": 7, "AllGather": 2}, {"AllReduce": 6, "AllGather": 3}])
    found = verdict(tmp_path, answer(0, differ), answer(10, differ))
    assert found.kind is Kind.MISMATCH_KIND
    assert [(it.ranks, it.what) for it in found.sides] == [((0,), "all_reduce"), ((1,), "all_gather")]


def test_two_communicators_in_opposite_order_are_a_circle(tmp_path: Path) -> None:
    stuck = [alike("0xa", [AHEAD, BEHIND]), alike("0xb", [BEHIND, AHEAD])]
    found = verdict(tmp_path, answer(0, *stuck), answer(10, *stuck))
    assert (found.kind, found.cycle) == (Kind.ORDER_INVERSION, (0, 1))


def test_ranks_are_those_of_the_communicator_that_has_all(tmp_path: Path) -> None:
    world = alike("0xa", [AHEAD] * 4)
    pair = communicator("0xb", [rank(0, 3, AHEAD), rank(1, 1, BEHIND)])
    found = verdict(tmp_path, answer(0, pair, world), answer(10, pair, world))
    assert [(it.rank, it.pid) for it in found.culprits] == [(1, 1001)]
    assert [(it.rank, it.waits_for) for it in found.waits if it.waits_for] == [(3, (1,))]


def test_without_such_a_communicator_they_are_numbered_and_that_is_said(tmp_path: Path) -> None:
    pairs = [communicator(f"0x{at}", [rank(0, at, AHEAD), rank(1, at + 1, BEHIND)]) for at in (0, 8)]
    found = verdict(tmp_path, answer(0, *pairs), answer(10, *pairs))
    assert [(it.rank, it.host) for it in found.culprits] == [(1, "10.0.0.1"), (3, "10.0.0.2")]
    assert any("numbered by host and GPU" in it for it in found.notes)


@pytest.mark.parametrize("status", [{"destroy_flag": True}, {"finalize_called": True}, {"init_state": 7}])
def test_a_communicator_that_is_made_or_ended_is_not_judged(
    tmp_path: Path, status: dict[str, object]
) -> None:
    ending = communicator("0xa", [rank(0, 0, AHEAD, **status), rank(1, 1, BEHIND)])
    found = verdict(tmp_path, answer(0, ending), answer(10, ending))
    assert found.culprits == ()
    assert any("is being made or ended" in it for it in found.notes)


def test_a_member_that_answers_and_is_none_is_not_blamed(tmp_path: Path) -> None:
    left = communicator("0xa", [rank(0, 0, AHEAD)], [missing(1, 1, unresponsive=False)])
    assert verdict(tmp_path, answer(0, left), answer(10, left)).culprits == ()


def test_errors_of_nccl_are_notes(tmp_path: Path) -> None:
    found = verdict(
        tmp_path, answer(0, communicator("0xa", [rank(0, 0, AHEAD, async_error=6), rank(1, 1, AHEAD)]))
    )
    assert any("rank 0 has NCCL's error 6 (remote process exited" in it for it in found.notes)


def test_the_comma_that_one_version_forgets_is_not_missed(tmp_path: Path) -> None:
    stuck = communicator("0xa", [rank(0, 0, AHEAD)], [missing(1, 1)])
    forgotten = [
        answer(at, stuck).replace('"nvml_dev": 1, "status"', '"nvml_dev": 1 "status"') for at in (0, 10)
    ]
    with pytest.raises(json.JSONDecodeError):
        json.loads(forgotten[0])
    assert [it.rank for it in verdict(tmp_path, *forgotten).culprits] == [1]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "RAS text output",
        "[]",
        '{"communicators": 3}',
        answer(0),
        answer(0, alike("0xa", [AHEAD]))[:300],
        "[" * 10**5,
    ],
)
def test_what_is_no_answer_is_named(tmp_path: Path, text: str) -> None:
    with pytest.raises(NoJob, match=r"0\.json"):
        verdict(tmp_path, text)


WHOLE = answer(10, communicator("0xa", [rank(0, 0, AHEAD)], [missing(1, 1)]))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, len(WHOLE)), st.text(max_size=5))
def test_an_answer_that_was_damaged_is_judged_or_refused(tmp_path: Path, at: int, other: str) -> None:
    try:
        found = verdict(tmp_path, WHOLE[:at] + other + WHOLE[at + len(other) :])
    except NoJob:
        return
    assert found.kind in Kind
