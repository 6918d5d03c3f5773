"""The record of a gang's ranks, and the stacks of their threads."""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.support.gangs import RANKBRIDGE, RunningGang
from tests.support.waiting import until

import rankbridge
from rankbridge import Gang, GangError, InvalidArgumentError

SIZE = 4


@pytest.fixture(params=["gloo4", "fake4"])
def gang(request: pytest.FixtureRequest) -> Iterator[Gang]:
    running: RunningGang = request.getfixturevalue(request.param)
    with rankbridge.connect(running.description, timeout=30.0) as it:
        yield it


def test_an_operation_is_recorded_with_its_contract_its_line_and_its_times(gang: Gang) -> None:
    before = time.time()
    refs = gang.put([np.ones(3, np.float32)] * SIZE)
    gang.all_reduce(refs, operation_id="the-sum-of-" + gang.session_id)
    for entries in gang.record(limit=1):
        (it,) = entries
        assert (it.operation, it.group, it.contract) == (
            "all_reduce",
            "world",
            "all_reduce dtype=float32 shape=[3] op=sum",
        )
        assert it.operation_id == "the-sum-of-" + gang.session_id
        assert it.session_id == gang.session_id
        assert re.search(r"test_record\.py:\d+$", it.site)
        assert (it.phase, it.code, it.message) == ("data", "", "")
        assert before - 1 < it.called < time.time() + 1
        assert it.announced is not None
        assert it.entered is not None
        assert it.done is not None
        assert 0 <= it.announced <= it.entered <= it.done


def test_a_failed_operation_is_recorded_with_its_error(gang: Gang) -> None:
    refs = gang.put([np.ones(2 + (rank == 1), np.float32) for rank in range(SIZE)])
    with pytest.raises(GangError):
        gang.all_reduce(refs)
    entries = [it[-1] for it in gang.record(limit=1)]
    assert {it.code for it in entries} == {"mismatch"}
    assert [it.contract for it in entries] == [
        f"all_reduce dtype=float32 shape=[{2 + (rank == 1)}] op=sum" for rank in range(SIZE)
    ]
    assert [it.entered for it in entries] == [None] * SIZE
    assert "MISMATCH" in entries[0].message


def test_what_waits_is_in_the_record_without_an_end(gang: Gang) -> None:
    waiting = gang[0].start("barrier", timeout=20.0)
    until(lambda: [it.phase for it in gang[0].record(limit=1) if it.done is None] == ["admission"])
    (it,) = gang[0].record(limit=1)
    assert it.announced is not None
    assert (it.operation, it.phase, it.entered, it.done) == ("barrier", "admission", None, None)
    others = [gang[rank].start("barrier", timeout=20.0) for rank in range(1, SIZE)]
    for each in (waiting, *others):
        each.result()


def test_a_records_operations_can_be_those_of_one_group(gang: Gang) -> None:
    pair = gang.new_group("pair", [0, 1])
    try:
        gang.barrier(group=pair)
        gang.barrier()
        records = gang.record(group=pair)
        assert [[it.operation for it in entries][-1:] for entries in records] == [["barrier"]] * 2 + [[]] * 2
        assert {it.group for entries in records for it in entries} == {"pair"}
    finally:
        gang.destroy_group(pair)
    with pytest.raises(InvalidArgumentError):
        gang.record(limit=-1)


def test_stacks_are_of_all_threads_the_main_one_first(gang: Gang) -> None:
    for threads in gang.stacks():
        assert threads[0].name == "MainThread"
        assert all(it.frames for it in threads)
        functions = {frame.function for it in threads for frame in it.frames}
        assert any("Lane" in it for it in functions)


def test_the_command_shows_operations_side_by_side(gloo2: RunningGang) -> None:
    with rankbridge.connect(gloo2.description, timeout=30.0) as gang:
        refs = gang.put([np.ones(2 + rank, np.float32) for rank in range(2)])
        with pytest.raises(GangError):
            gang.all_reduce(refs)
    command = [RANKBRIDGE, "record", "--endpoints", str(gloo2.endpoints_file), "--limit", "1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    head, row = done.stdout.splitlines()
    assert head.split() == [
        "called",
        "by",
        "operation",
        "group",
        "ranks",
        "apart",
        "took",
        "outcome",
        "contract",
        "line",
    ]
    told = r"\d\d:\d\d:\d\d\.\d{3} +controller +all_reduce +world +0-1 +[\d.]+ ms +[\d.]+ ms +mismatch +"
    sides = r"all_reduce dtype=float32 shape=\[2\] op=sum: rank 0; .* shape=\[3\] op=sum: rank 1 +\S+\.py:\d+"
    assert re.fullmatch(told + sides, row)
    (of_0,) = json.loads(subprocess.run([*command, "--json"], capture_output=True, timeout=60).stdout)[
        "ranks"
    ]["0"]
    assert (of_0["operation"], of_0["code"], of_0["indefinite"]) == ("all_reduce", "mismatch", False)


def test_the_command_writes_a_trace_and_stacks_of_a_gang_that_waits(
    fake4: RunningGang, tmp_path: Path
) -> None:
    with rankbridge.connect(fake4.description, timeout=30.0) as gang:
        group = gang.new_group("traced", [0, 1, 2])
        waiting = [gang[rank].start("barrier", group=group, operation_id="late") for rank in (0, 2)]
        until(lambda: all(_announced(gang, rank, "late") for rank in (0, 2)))
        gang[1].barrier(group=group, operation_id="late")
        for it in waiting:
            it.result()
        stuck = gang[0].start("barrier", group=group, operation_id="stuck")
        until(lambda: _announced(gang, 0, "stuck"))
        files = ["-o", str(tmp_path / "run.json"), "--stacks", str(tmp_path / "stacks.json")]
        done = subprocess.run(
            [RANKBRIDGE, "trace", "--endpoints", str(fake4.endpoints_file), "--group", "traced", *files],
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert (done.returncode, done.stderr) == (0, "")
        for rank in (1, 2):
            gang[rank].start("barrier", group=group, operation_id="stuck")
        stuck.result()
        gang.destroy_group(group)
    events = json.loads((tmp_path / "run.json").read_text())["traceEvents"]
    named = {
        it["args"]["operation_id"]: it
        for it in events
        if it["pid"] == 0 and "args" in it and it["ph"] in "XB"
    }
    assert (named["late"]["ph"], named["stuck"]["ph"]) == ("X", "B")
    assert named["stuck"]["args"]["outcome"] == "pending: admission"
    # Rank 1 came last, and released the others, of which either may have been called first.
    ends = {phase: {it["id"]: it["pid"] for it in events if it["ph"] == phase} for phase in "sf"}
    assert sorted((source, ends["f"][arrow]) for arrow, source in ends["s"].items()) == [(1, 0), (1, 2)]
    stacks = json.loads((tmp_path / "stacks.json").read_text())
    assert [it["name"] for it in stacks["profiles"]] == [f"rank {rank}" for rank in range(4)]


def _announced(gang: Gang, rank: int, operation_id: str) -> bool:
    return any(it.operation_id == operation_id and it.announced is not None for it in gang[rank].record())
