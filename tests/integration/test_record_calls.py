"""What the user's own code calls of torch.distributed, in the record of its rank."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import numpy as np
import pytest
from tests.support.foreign_jobs import Job, job, torchrun
from tests.support.gangs import RANKBRIDGE, RunningGang, up
from tests.support.pages import served
from tests.support.processes import stop
from tests.support.waiting import until

import rankbridge
from rankbridge import Gang, InvalidArgumentError, RankBridgeError, RecordedOperation
from rankbridge_server.core.record.files import record_path
from rankbridge_server.core.record.memory import RecordMemory

APP = str(Path(__file__).parents[1] / "support" / "apps" / "recorded.py")
SIZE = 2


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder for observers."""
    return tmp_path_factory.mktemp("observed")


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory, folder: Path) -> Iterator[RunningGang]:
    """Ranks with functions, whose calls are recorded."""
    options = ["--load", APP, "--record-calls", "--observe", str(folder), "--heartbeat-misses", "300"]
    with up(tmp_path_factory.mktemp("calls"), SIZE, "gloo", options) as it:
        yield it


@pytest.fixture
def gang(running: RunningGang) -> Iterator[Gang]:
    with rankbridge.connect(running.description, timeout=60.0) as it:
        yield it


@pytest.fixture(scope="module")
def attached(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Job]:
    """A job that torchrun has started and that records what it calls."""
    command = torchrun(SIZE, attached=True)
    at = command.index("rankbridge_server.attach") + 1
    command.insert(at, "--record-calls")
    with job(tmp_path_factory.mktemp("job"), command, ["--pause", "0.01"]) as it:
        it.attached()
        yield it


def of_script(gang: Gang, rank: int) -> list[RecordedOperation]:
    return gang[rank].record(caller="script")


def test_a_functions_collective_is_recorded_beside_the_call_of_the_function(gang: Gang) -> None:
    before = time.time()
    assert gang.call("reduce") == [3.0, 3.0]
    numbers = set()
    for rank in range(SIZE):
        collective, function = gang[rank].record(limit=2)
        assert (function.operation, function.function, function.caller) == (
            "call_function",
            "reduce",
            "controller",
        )
        assert (collective.operation, collective.group, collective.caller) == (
            "all_reduce",
            "world",
            "script",
        )
        assert collective.contract == "all_reduce dtype=float32 shape=[2] op=sum"
        assert re.search(r"recorded\.py:\d+$", collective.site)
        assert (collective.phase, collective.code, collective.generation) == ("data", "", function.generation)
        assert collective.done is not None
        assert function.done is not None
        assert before - 1 < function.called <= collective.called
        assert collective.called + collective.done <= function.called + function.done
        numbers.add((collective.number, collective.operation_id))
    ((number, operation_id),) = numbers
    assert number > 0
    assert operation_id.endswith(f" {number}")


def test_a_call_is_pending_in_the_record_and_in_its_file_while_a_member_has_not_come(
    gang: Gang, folder: Path, tmp_path: Path
) -> None:
    comes = tmp_path / "comes"
    with gang[0].watch_record(interval=0.05, caller="script") as watch:
        next(watch)
        waiting = gang.function("reduce").start(str(comes))
        growth = next(it for it in watch if it.pending)
        (pending,) = growth.pending
        assert (pending.operation, pending.caller, pending.done) == ("all_reduce", "script", None)
        in_file = RecordMemory.open(record_path(folder, 0)).unended()
        assert (pending.operation, pending.number) in {(it.place.operation, it.number) for it in in_file}
        assert of_script(gang, 0)[-1].done is None
        assert [it.operation for it in gang[0].record(caller="controller") if it.done is None] == [
            "call_function"
        ]
        comes.touch()
        waiting.result()
        growth = next(it for it in watch if it.operations)
        assert [it.number for it in growth.operations] == [pending.number]
        assert growth.pending == ()


def test_sends_and_receives_have_their_peer_and_tag_and_no_number(gang: Gang) -> None:
    gang.call("post")
    posts = [of_script(gang, rank)[-1] for rank in range(SIZE)]
    assert [it.contract for it in posts] == [
        "send dtype=float32 shape=[3] peer=1 tag=5",
        "recv dtype=float32 shape=[3] peer=0 tag=5",
    ]
    assert [(it.number, it.operation_id, it.code) for it in posts] == [(0, "", "")] * 2


def test_a_call_for_which_nobody_waits_ends_in_the_record_too(gang: Gang) -> None:
    gang.call("unawaited")
    for rank in range(SIZE):
        last = of_script(gang, rank)[-2:]
        assert {it.operation for it in last} == {"all_reduce", "barrier"}
        assert all(it.done is not None and not it.code for it in last)
    gang.call("refused_unawaited")
    for rank in range(SIZE):
        last = of_script(gang, rank)[-1:]
        assert [(it.code, it.done is not None) for it in last] == [("backend_failed", True)]


def test_a_call_that_raises_is_recorded_with_what_it_raised(gang: Gang) -> None:
    said = gang.call("refused")
    for rank in range(SIZE):
        last = of_script(gang, rank)[-1]
        assert (last.code, last.done is not None) == ("backend_failed", True)
        assert said[rank]
        assert said[rank][:100] in last.message


@pytest.mark.parametrize(("how", "code"), [("skip", "cancelled"), ("fail", "aborted")])
def test_a_call_at_a_breakpoint_is_pending_and_ends_as_it_is_let_go(gang: Gang, how: str, code: str) -> None:
    with gang.hold("caller=script kind=all_reduce") as hold:
        reducing = gang.function("reduce").start()
        hold.wait(timeout=30.0)
        assert [of_script(gang, rank)[-1].done for rank in range(SIZE)] == [None] * SIZE
        getattr(hold, how)()
        with nullcontext() if how == "skip" else pytest.raises(RankBridgeError, match="held at a breakpoint"):
            reducing.result()
    for rank in range(SIZE):
        last = of_script(gang, rank)[-1]
        assert (last.code, last.done is not None) == (code, True)
        assert "breakpoint" in last.message


def test_the_record_can_be_asked_for_one_caller_alone(gang: Gang) -> None:
    gang.call("reduce")
    assert {it.caller for it in gang[0].record()} == {"controller", "script"}
    assert {it.caller for it in gang[0].record(caller="controller")} == {"controller"}
    assert [[it.caller for it in entries] for entries in gang.record(caller="script", limit=1)] == [
        ["script"]
    ] * SIZE
    with pytest.raises(InvalidArgumentError, match="unknown caller"):
        gang[0].record(caller="nobody")


def test_commands_show_calls_apart_from_operations(running: RunningGang, gang: Gang, tmp_path: Path) -> None:
    gang.call("reduce")
    endpoints = ["--endpoints", str(running.endpoints_file)]
    shown = _said("record", *endpoints, "--limit", "2").splitlines()
    assert {tuple(line.split()[1:3]) for line in shown[1:]} == {
        ("script", "all_reduce"),
        ("controller", "reduce"),
    }
    one = _said("record", *endpoints, "--limit", "3", "--caller", "controller").splitlines()
    assert {line.split()[1] for line in one[1:]} == {"controller"}
    _said("trace", *endpoints, "-o", str(tmp_path / "run.json"))
    events = json.loads((tmp_path / "run.json").read_text())["traceEvents"]
    tracks = {it["args"]["name"] for it in events if it["name"] == "thread_name" and it["pid"] == 0}
    assert {"world", "world: script"} <= tracks
    _said("record", *endpoints, "--flight-recorder", str(tmp_path / "dumps"))
    refs = gang.put([np.ones(2, np.float32)] * SIZE)
    gang.all_reduce(refs)
    dumps = rankbridge.flight_recorder(dict(enumerate(gang.record())), gang.groups())
    assert {it["profiling_name"] for it in dumps[0]["entries"]} == {"gloo:all_reduce"}
    assert len(dumps[0]["entries"]) == 1


def test_a_verdict_takes_calls_from_torch_and_not_from_the_record(gang: Gang, tmp_path: Path) -> None:
    comes = tmp_path / "comes"
    waiting = gang.function("reduce").start(str(comes))
    try:
        until(lambda: any(it.done is None and time.time() - it.called > 0.5 for it in of_script(gang, 0)))
        evidence, verdict = json.loads(gang.evidence()), gang.diagnose(patience=0.3)
    finally:
        comes.touch()
        waiting.result()
    recorded = [one for it in evidence["evidence"] for one in it["record"]["operations"]]
    assert recorded
    assert not any(it.get("byScript") for it in recorded)
    assert [it.rank for it in verdict.culprits] == [1]
    assert verdict.call.startswith("all_reduce world")


def test_the_page_has_lanes_of_calls_beside_those_of_operations(
    running: RunningGang, gang: Gang, tmp_path: Path
) -> None:
    comes = tmp_path / "comes"
    waiting = gang.function("reduce").start(str(comes))
    try:
        with served("--endpoints", str(running.endpoints_file)) as at, urlopen(f"{at}events") as stream:
            for state in states(stream):
                rows = {it["group"]: it for it in state.get("pending", {}).get("rows", ())}
                if rows.get("world: script", {}).get("waits_for"):
                    break
            calls, operation = rows["world: script"], rows["world"]
            assert (calls["what"], calls["waits_for"]) == ("all_reduce", "rank 1")
            assert (operation["what"], operation["waits_for"]) == ("reduce", "")
    finally:
        comes.touch()
        waiting.result()


def states(stream: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    """What a page sends to a browser."""
    return (json.loads(line.removeprefix(b"data: ")) for line in stream if line.startswith(b"data: "))


@pytest.mark.parametrize("options", [[], ["--load", APP, "--backend", "fake"]])
def test_ranks_without_calls_to_record_do_not_begin(options: list[str]) -> None:
    command = [RANKBRIDGE, "up", "--size", "1", "--record-calls", *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "--record-calls needs functions" in done.stderr


def _said(*command: str) -> str:
    done = subprocess.run([RANKBRIDGE, *command], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_what_an_attached_job_itself_calls_is_recorded(attached: Job) -> None:
    attached.goes_on()
    with rankbridge.connect(attached.endpoints_file) as gang:
        before = len(of_script(gang, 0))
        attached.goes_on()
        calls = [of_script(gang, rank) for rank in range(SIZE)]
        assert len(calls[0]) > before
        by_number = [{(it.group, it.number): it.contract for it in its if it.number} for its in calls]
        both = by_number[0].keys() & by_number[1].keys()
        assert len(both) > 5
        assert all(by_number[0][it] == by_number[1][it] for it in both)
        assert {it.operation for it in calls[0]} >= {"all_reduce"}
        gang.barrier()
        assert [it.operation for it in gang[0].record(caller="controller")][-1:] == ["barrier"]


@pytest.mark.sampled
def test_a_stopped_job_shows_what_its_others_wait_in(attached: Job) -> None:
    with rankbridge.connect(attached.endpoints_file) as gang:
        stop(attached.pids()[1])
        try:
            until(lambda: any(it.done is None and time.time() - it.called > 0.3 for it in of_script(gang, 0)))
            with gang[0].watch_record(caller="script") as watch:
                assert [it.done for it in next(watch).pending][:1] == [None]
            assert [it.rank for it in gang.diagnose(patience=0.3).culprits] == [1]
        finally:
            os.kill(attached.pids()[1], signal.SIGCONT)
    attached.goes_on()
