"""Records and stacks as files for viewers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from tests.support.recorded import recorded

from rankbridge import RecordedOperation, StackFrame, ThreadStack, clock_offsets, speedscope, trace


def barriers(ahead: float, late: Sequence[float], way: float = 0.001) -> list[RecordedOperation]:
    """Barriers, one a second: this rank comes so late, and hears `way` after the last one; its clock is ahead."""
    return [
        recorded(
            100.0 + number + ahead + mine,
            operation_id=str(number),
            announced=0.0,
            entered=0.5 + way - mine,
            done=0.6,
        )
        for number, mine in enumerate(late)
    ]


def slices(traced: dict[str, Any], rank: int) -> list[dict[str, Any]]:
    return [it for it in traced["traceEvents"] if it["pid"] == rank and it["ph"] in "XB"]


def test_clocks_that_admissions_prove_wrong_are_put_right() -> None:
    records = {
        0: barriers(0.0, [0.0, 0.5]),
        1: barriers(3600.0, [0.5, 0.0]),
        2: barriers(-0.25, [0.5, 0.5], 0.002),
    }
    offsets = clock_offsets(records)
    assert offsets[0] == 0.0
    # The least that the records allow: true but for the way of the verdict.
    assert offsets[1] == pytest.approx(3599.999)
    assert offsets[2] == pytest.approx(-0.249)
    traced = trace(records)
    assert traced["otherData"]["clock_offsets_s"]["1"] == 3599.999
    assert max(it["ts"] + it.get("dur", 0) for rank in range(3) for it in slices(traced, rank)) < 2.2e6
    (label,) = [it for it in traced["traceEvents"] if it["name"] == "process_labels" and it["pid"] == 1]
    assert label["args"]["labels"] == "clock +3599999.000 ms, put right"


def test_clocks_that_may_be_equal_are_taken_for_equal() -> None:
    assert clock_offsets({0: barriers(0.0, [0.0]), 1: barriers(0.0005, [0.5])}) == {0: 0.0, 1: 0.0}
    # One that has met nobody, and functions, which begin on each member by itself.
    apart = [recorded(50.0, operation_id="0", announced=0.0, entered=0.0, function="step")]
    assert clock_offsets({0: barriers(0.0, [0.0]), 1: apart, 2: []}) == {0: 0.0, 1: 0.0, 2: 0.0}


def test_an_operation_is_a_slice_with_its_phases_and_the_last_comer_releases_the_others() -> None:
    records = {
        0: [recorded(10.0, operation_id="a", announced=0.001, entered=0.251, done=0.252)],
        1: [recorded(10.2, operation_id="a", announced=0.05, entered=0.0505, done=0.0515)],
    }
    traced = trace(records, read_at=12.0)
    operation, queued, waiting, inside = slices(traced, 0)
    assert (operation["ph"], operation["ts"], operation["dur"]) == ("X", 0, 252_000)
    assert operation["args"]["outcome"] == "done"
    assert (operation["args"]["contract"], operation["args"]["site"]) == ("barrier", "a.py:1")
    assert [(it["name"], it["ts"], it["dur"]) for it in (queued, waiting, inside)] == [
        ("queued", 0, 1_000),
        ("waiting for the others", 1_000, 250_000),
        ("in the backend", 251_000, 1_000),
    ]
    start, end = [it for it in traced["traceEvents"] if it["ph"] in "sf"]
    assert (start["pid"], start["ts"], end["pid"], end["ts"]) == (1, 250_000, 0, 251_000)
    (read,) = [it for it in traced["traceEvents"] if it["ph"] == "i"]
    assert read["ts"] == 2_000_000


def test_what_overlaps_in_a_group_has_a_track_of_its_own_and_what_is_pending_no_end() -> None:
    records = {
        3: [
            recorded(1.0, operation="all_reduce", announced=0.0, phase="admission", done=None),
            recorded(1.5, phase="check", done=None),
            recorded(1.25, group="pair", code="mismatch", announced=0.1, done=0.25, message="MISMATCH"),
            recorded(2.0, group="pair", function="step", announced=0.0, entered=0.0),
        ]
    }
    traced = trace(records)
    tracks = {it["tid"]: it["args"]["name"] for it in traced["traceEvents"] if it["name"] == "thread_name"}
    assert [
        (tracks[it["tid"]], it["name"], it["ph"]) for it in slices(traced, 3) if it["cat"] != "phase"
    ] == [
        ("world", "all_reduce", "B"),
        ("pair", "barrier", "X"),
        ("world (2)", "barrier", "B"),
        ("pair", "step", "X"),
    ]
    outcomes = [it["args"]["outcome"] for it in slices(traced, 3) if "args" in it]
    assert outcomes == ["pending: admission", "mismatch", "pending: check", "done"]
    assert not [it for it in traced["traceEvents"] if it["ph"] in "sfe"]
    json.dumps(traced)


def test_records_without_an_operation_are_a_trace() -> None:
    assert slices(trace({0: [], 1: []}), 0) == []
    assert slices(trace({}), 0) == []


def test_stacks_are_profiles_of_ranks_with_a_sample_for_each_thread() -> None:
    step, main = (
        StackFrame(function=it, file="train.py", line=line) for it, line in (("step", 7), ("main", 3))
    )
    threads = [
        ThreadStack(name="MainThread", native_id=11, frames=(step, main)),
        ThreadStack(name="loader", native_id=12, frames=(main,)),
    ]
    written = speedscope({1: threads, 0: threads[:1]})
    frames = written["shared"]["frames"]
    assert [it["name"] for it in written["profiles"]] == ["rank 0", "rank 1"]
    profile = written["profiles"][1]
    assert [[frames[at]["name"] for at in sample] for sample in profile["samples"]] == [
        ["thread MainThread (11)", "main", "step"],
        ["thread loader (12)", "main"],
    ]
    assert (profile["endValue"], profile["weights"]) == (2, [1, 1])
    assert {"name": "step", "file": "train.py", "line": 7} in frames
