"""Sockets for observers, while the ranks behind them do not run: a process beside the ranks answers there."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import grpc
import pytest
from tests.support.foreign_jobs import job, torchrun
from tests.support.gangs import RunningGang, up
from tests.support.waiting import until

import rankbridge
from rankbridge import Gang, UnsupportedOperationError
from rankbridge.v1 import debug_service_pb2 as pb, debug_service_pb2_grpc as stub, error_pb2
from rankbridge_server.job.outside import stacks

SIZE = 2
# Bounds hangs and nothing else.
ANSWER_S = 20.0
HELD = "        ctypes.PyDLL(None).read(pipe.fileno(), ctypes.create_string_buffer(1), 1)"
APP = f"""
import ctypes
import rankbridge_server

@rankbridge_server.function
def hold(path: str) -> None:
    with open(path, "rb", buffering=0) as pipe:
{HELD}
"""
LINE = APP.splitlines().index(HELD) + 1


@dataclass
class Observed:
    """A gang, the folder in which it is observed, and its controller."""

    folder: Path
    running: RunningGang
    gang: Gang

    @contextmanager
    def debug(self, rank: int) -> Iterator[stub.DebugServiceStub]:
        """The observer's way to a rank."""
        with grpc.insecure_channel(f"unix:{self.folder}/rank-{rank}") as channel:
            yield stub.DebugServiceStub(channel)


def has_witness(folder: Path, rank: int) -> bool:
    """Whether the witness is in the place of a rank's socket."""
    public, own = folder / f"rank-{rank}", folder / f".r{rank}"
    return own.exists() and public.exists() and public.stat().st_ino != own.stat().st_ino


@contextmanager
def observed(directory: Path) -> Iterator[Observed]:
    folder, app = directory / "folder", directory / "app.py"
    app.write_text(APP)
    # Nobody is lost here for being held or stopped; who is killed is seen by the end of its links.
    patient = ["--heartbeat-misses", "300"]
    options = ["--observe", str(folder), "--load", str(app), "--on-rank-exit", "leave", *patient]
    with (
        up(directory, SIZE, "gloo", options) as running,
        rankbridge.connect(running.endpoints_file, timeout=30.0, session=False) as gang,
    ):
        until(lambda: all(has_witness(folder, it) for it in range(SIZE)))
        yield Observed(folder, running, gang)


@pytest.fixture
def it(tmp_path: Path) -> Iterator[Observed]:
    with observed(tmp_path) as found:
        yield found


def witnesses(folder: Path) -> list[int]:
    """The witness of a folder, by its process."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            arguments = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if b"rankbridge_server.job.outside.witness" in arguments and str(folder).encode() in arguments:
            found.append(int(path.parent.name))
    return found


def look(
    debug: stub.DebugServiceStub,
) -> tuple[pb.GetRecordResponse, pb.GetStacksResponse, pb.GetProcessResponse]:
    """What a rank's record, stacks and process are; each must be there soon."""
    return (
        debug.GetRecord(pb.GetRecordRequest(), timeout=ANSWER_S),
        debug.GetStacks(pb.GetStacksRequest(), timeout=ANSWER_S),
        debug.GetProcess(pb.GetProcessRequest(), timeout=ANSWER_S),
    )


@pytest.mark.skipif(stacks.program() is None, reason="needs py-spy")
def test_while_pythons_lock_is_held_in_c_the_line_is_named(it: Observed, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    # With an end of its own for reading, so that neither side waits for the other.
    go_on = os.open(pipe, os.O_RDWR)
    it.gang.barrier()
    with it.debug(1) as debug:
        before, here, _ = look(debug)
        assert not before.from_outside
        assert not here.from_outside
        call = it.gang[1].function("hold").start(str(pipe))
        found = debug.GetStacks(pb.GetStacksRequest(), timeout=ANSWER_S)
        while not found.from_outside:
            found = debug.GetStacks(pb.GetStacksRequest(), timeout=ANSWER_S)
        (holder,) = (one for one in found.threads if one.holds_lock)
        assert (holder.frames[0].function, holder.frames[0].line) == ("hold", LINE)
        assert holder.frames[0].file.endswith("app.py")
        record = debug.GetRecord(pb.GetRecordRequest(), timeout=ANSWER_S)
        assert record.from_outside
        assert [(one.operation, one.function, one.HasField("done_us")) for one in record.operations] == [
            ("barrier", "", True),
            ("call_function", "hold", False),
        ]
        assert "test_witness.py:" in record.operations[1].site
        evidence = debug.GetEvidence(pb.GetEvidenceRequest(), timeout=ANSWER_S)
        assert (evidence.from_outside, evidence.still, evidence.rank.rank) == (True, True, 1)
        assert evidence.user_thread == holder.native_id
        waiting = it.gang[0].start("barrier", timeout=30.0)
        with rankbridge.connect(it.folder / "gang.json", session=False) as observer:
            verdict = observer.diagnose(patience=0.001)
        (culprit,) = verdict.culprits
        assert (culprit.rank, culprit.condition, culprit.stack[0].line) == (1, "gil_held", LINE)
        # It has been held until now.
        os.write(go_on, b"\n")
        os.close(go_on)
        call.result()
        waiting.cancel()
        until(lambda: not debug.GetRecord(pb.GetRecordRequest(), timeout=ANSWER_S).from_outside)
        assert not debug.GetStacks(pb.GetStacksRequest(), timeout=ANSWER_S).from_outside


def test_while_a_rank_is_stopped_and_when_it_goes_on(it: Observed) -> None:
    it.gang.barrier()
    pid = it.running.pids[1]
    with it.debug(1) as debug:
        watch = debug.WatchRecord(pb.WatchRecordRequest(last=9, interval_ms=50))
        growth = next(watch).growth
        assert [one.operation for one in growth.operations] == ["barrier"]
        assert not growth.from_outside
        os.kill(pid, signal.SIGSTOP)
        try:
            until(lambda: debug.GetProcess(pb.GetProcessRequest(), timeout=ANSWER_S).process.state == "T")
            record, found, process = look(debug)
            assert (record.from_outside, found.from_outside, process.process.pid) == (True, True, pid)
            assert [one.operation for one in record.operations] == ["barrier"]
            assert bool(found.threads) != bool(found.trouble)
            assert next(one.growth for one in watch if one.growth.from_outside).record == growth.record
            evidence = debug.GetEvidence(pb.GetEvidenceRequest(), timeout=ANSWER_S)
            assert (evidence.process.state, evidence.from_outside) == ("T", True)
            verdict = debug.Diagnose(pb.DiagnoseRequest(evidence=[evidence]), timeout=ANSWER_S).verdict
            assert verdict.world_size == SIZE
        finally:
            os.kill(pid, signal.SIGCONT)
        until(lambda: not look(debug)[0].from_outside)
        assert not next(one.growth for one in watch if not one.growth.from_outside).from_outside
        watch.cancel()


def test_a_dead_rank_is_answered_for_as_long_as_another_lives(it: Observed) -> None:
    it.gang.barrier()
    (witness,) = witnesses(it.folder)
    assert all(witness not in children(it) for it in it.running.pids)
    with it.debug(1) as debug:
        watch = debug.WatchRecord(pb.WatchRecordRequest(interval_ms=50))
        next(watch)
        waiting = it.gang[0].start("barrier", timeout=30.0)
        os.kill(it.running.pids[1], signal.SIGKILL)
        with pytest.raises(grpc.RpcError) as ended:
            for _ in watch:
                pass
        assert ended.value.code() is grpc.StatusCode.UNAVAILABLE
        assert f"process {it.running.pids[1]} of rank 1 has ended" in str(ended.value.details())
        waiting.exception()
        # Until its parent has taken note of its end, it is a zombie.
        until(lambda: look(debug)[2].process.state == "gone")
        record, found, _ = look(debug)
        assert [one.operation for one in record.operations] == ["barrier"]
        assert "has ended" in found.trouble
    with rankbridge.connect(it.folder / "gang.json", session=False) as observer:
        with pytest.raises(UnsupportedOperationError, match="of rank 1 has ended"):
            observer[1].stacks()
        assert [one.operation for one in observer[1].record()] == ["barrier"]
        verdict = observer.diagnose()
    assert [(one.rank, one.condition) for one in verdict.culprits] == [(1, "dead")]
    assert [(one.rank, one.call, one.waits_for) for one in verdict.waits] == [(0, "barrier world", (1,))]
    os.kill(it.running.pids[0], signal.SIGKILL)
    until(lambda: witnesses(it.folder) == [])
    assert {one.name for one in it.folder.iterdir()} == {"gang.json", "rank-0.record", "rank-1.record"}


def children(pid: int) -> list[int]:
    return [int(it) for it in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def test_a_witness_that_is_killed_has_a_successor(it: Observed) -> None:
    (witness,) = witnesses(it.folder)
    os.kill(witness, signal.SIGKILL)
    until(lambda: witnesses(it.folder) not in ([], [witness]))
    it.gang.barrier()

    def answers() -> bool:
        with it.debug(0) as debug:
            try:
                return bool(debug.GetRecord(pb.GetRecordRequest(), timeout=ANSWER_S).operations)
            except grpc.RpcError:
                return False

    until(answers)
    assert len(witnesses(it.folder)) == 1


def test_what_is_refused_is_refused_through_the_witness_and_wrong_arguments_are_told(it: Observed) -> None:
    with it.debug(0) as debug:
        (wrong,) = debug.WatchRecord(pb.WatchRecordRequest(interval_ms=1))
        assert wrong.error.code == error_pb2.ERROR_CODE_INVALID_ARGUMENT
        assert (wrong.error.expected, wrong.error.got) == ("50 to 10000", "1")
        answer = debug.Diagnose(pb.DiagnoseRequest(), timeout=ANSWER_S)
        assert answer.error.code == error_pb2.ERROR_CODE_INVALID_ARGUMENT


@pytest.mark.sampled
def test_a_job_with_a_sidecar_ends_and_its_witness_with_it(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    *launcher, script = torchrun(SIZE)
    command = [*launcher, "-m", "rankbridge_server.attach", "--observe", str(folder), script]
    with job(tmp_path, command, ["--pause", "0.01"]) as running:
        running.attached()
        until(lambda: has_witness(folder, 0))
        (witness,) = witnesses(folder)
        environment = Path(f"/proc/{witness}/environ").read_bytes()
        assert b"MASTER_PORT" not in environment
        assert b"WORLD_SIZE" not in environment
    until(lambda: witnesses(folder) == [])
