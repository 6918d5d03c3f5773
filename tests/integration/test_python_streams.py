"""Streams of gang calls through the Python client, on real ranks."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from tests.support.gangs import RunningGang, up
from tests.support.interrupter import Interrupter
from tests.support.proc import open_files
from tests.support.processes import stop
from tests.support.waiting import until

import rankbridge
from rankbridge import Gang, GangError, Ref
from rankbridge.v1 import gang_service_pb2 as gang_pb, operation_service_pb2 as operation_pb

SIZE = 4
PATIENCE_S = 60.0
INTERRUPTIONS = 60


@pytest.fixture(scope="module", params=["local", "grpc"])
def way(request: pytest.FixtureRequest) -> str:
    """How streams go."""
    way: str = request.param
    return way


def target(running: RunningGang, way: str) -> Any:
    return running.description if way == "local" else running.tcp


def connected(running: RunningGang, way: str) -> Gang:
    return rankbridge.connect(target(running, way), calls="gang")


@pytest.fixture(scope="module")
def gang(gloo4: RunningGang, way: str) -> Iterator[Gang]:
    with connected(gloo4, way) as it:
        yield it


@pytest.fixture
def mortal(tmp_path: Path, way: str) -> Iterator[Gang]:
    """Ranks that a test may kill."""
    with up(tmp_path, 3) as running, connected(running, way) as it:
        yield it


@pytest.fixture(scope="module")
def patient(tmp_path_factory: pytest.TempPathFactory, way: str) -> Iterator[Gang]:
    """Ranks that do not give each other up."""
    directory = tmp_path_factory.mktemp("patient")
    with (
        up(directory, 3, options=["--heartbeat-misses", "600"]) as running,
        connected(running, way) as it,
    ):
        yield it


def ones(gang: Gang) -> list[Ref]:
    return gang.put([np.ones(2, np.float32) for _ in range(len(gang))])


def totals(gang: Gang, refs: list[Ref]) -> list[list[float]]:
    return [list(map(float, it)) for it in gang.get(refs) if isinstance(it, np.ndarray)]


def codes(error: GangError) -> set[str]:
    return {it.error.code.name for it in error.outcomes if it.error is not None}


def test_operations_are_done_in_the_order_in_which_they_were_sent(gang: Gang) -> None:
    refs = ones(gang)
    with gang.stream() as stream:
        for _ in range(5):
            stream.submit("all_reduce", refs, in_place=True)
            # Where it is done in another place of the order, the sums are others.
            stream.submit("broadcast", refs, src_rank_in_group=1, in_place=True)
        gathered = stream.submit("all_gather", refs)
        objects = stream.submit("all_gather_object", list(range(SIZE)))
    assert totals(gang, gathered.result())[2] == [1024.0] * 2 * SIZE
    assert objects.result() == [list(range(SIZE))] * SIZE
    assert totals(gang, refs) == [[1024.0] * 2] * SIZE


def test_a_group_whose_leader_is_another_rank(gang: Gang) -> None:
    group = gang.new_group("streams", [3, 1])
    refs = [gang[rank].put(np.full(1, rank, np.float32)) for rank in group.ranks]
    with gang.stream(group) as stream, gang.stream("streams") as named:
        sums = [it.submit("all_reduce", refs) for _ in range(10) for it in (stream, named)]
        assert [totals(gang, it.result()) for it in sums] == [[[4.0], [4.0]]] * 20
        assert sums[0].ranks == (3, 1)
    gang.destroy_group(group)
    with pytest.raises(rankbridge.UnknownGroupError), gang.stream(group) as stream:
        stream.submit("barrier")


def test_large_results_are_fetched_from_their_ranks(gang: Gang) -> None:
    value = bytes(range(256)) * 100
    with gang.stream() as stream:
        many = [stream.submit("broadcast_object", value) for _ in range(3)]
    assert [it.result() for it in many] == [[value] * SIZE] * 3


def test_a_failure_in_the_middle_is_raised_at_the_end_and_the_others_are_done(gang: Gang) -> None:
    refs = ones(gang)
    released = ones(gang)
    gang[2].release(released[2])
    results = []

    def work() -> None:
        with gang.stream() as stream:
            results.append(stream.submit("all_reduce", refs))
            results.append(stream.submit("all_reduce", released))
            results.append(stream.submit("all_reduce", refs))

    with pytest.raises(rankbridge.RefError) as raised:
        work()
    assert isinstance(raised.value, GangError)
    assert codes(raised.value) == {"RELEASED_REF"}
    assert not raised.value.indefinite
    for place in (0, 2):
        assert totals(gang, results[place].result()) == [[4.0, 4.0]] * SIZE
    with pytest.raises(rankbridge.RefError):
        results[1].result()


def test_two_threads_of_one_stream_and_two_streams_of_one_gang(gang: Gang) -> None:
    refs = ones(gang)
    with gang.stream() as shared, gang.stream() as other, ThreadPoolExecutor(4) as threads:

        def work(stream: rankbridge.GangStream) -> list[list[float]]:
            begun = [stream.submit("all_reduce", refs) for _ in range(25)]
            gang.barrier()
            return [total for it in begun for total in totals(gang, it.result())]

        done = [threads.submit(work, it) for it in (shared, shared, other, other)]
        assert [it.result(PATIENCE_S) for it in done] == [[[4.0, 4.0]] * SIZE * 25] * 4


def pending(gang: Gang, rank: int) -> int:
    return gang[rank].status().pending_operations


def test_asyncio_has_streams_too(gloo4: RunningGang, way: str) -> None:
    async def work() -> Any:
        async with rankbridge.aconnect(target(gloo4, way), calls="gang") as it:
            refs = await it.put([np.ones(1, np.float32) for _ in range(SIZE)])
            async with it.stream() as stream:
                several = [await stream.submit("all_reduce", refs) for _ in range(300)]
                await it.barrier()
            with pytest.raises(rankbridge.MismatchError):
                async with it.stream() as stream:
                    await stream.submit("all_reduce", [*refs[:3], await it[3].put(np.ones(2, np.float32))])
            last = await several[-1].result()
            return [np.asarray(value).tolist() for value in await it.get(last)]

    assert asyncio.run(work()) == [[4.0]] * SIZE


@pytest.mark.sampled
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
@pytest.mark.parametrize("lost", [0, 1])
def test_a_rank_that_is_lost_fails_all_under_way_and_the_same_gang_works_again(
    mortal: Gang, lost: int, how: signal.Signals
) -> None:
    refs = ones(mortal)
    pid = mortal[lost].status().pid
    survivor = 1 - lost
    with mortal.stream() as stream:
        assert stream.submit("ping").result() is None
        # Stopped first, so that its part never comes.
        stop(pid)
        begun = [stream.submit("all_reduce", refs, timeout=PATIENCE_S) for _ in range(5)]
        if how is signal.SIGKILL:
            os.kill(pid, signal.SIGKILL)
        for it in begun:
            with pytest.raises(GangError) as raised:
                it.result()
            assert codes(raised.value) <= (
                {"PEER_LOST", "STALE_GENERATION"} if lost else {"UNAVAILABLE", "PEER_LOST"}
            )
        assert mortal.form(via_rank=survivor).generation == 2
        again = ones(mortal)
        total = stream.submit("all_reduce", again).result()
        assert totals(mortal, total) == [[3.0, 3.0]] * 3
    mortal.ping()


@contextlib.contextmanager
def stopped(gang: Gang, rank: int) -> Iterator[Callable[[], None]]:
    """A rank that does nothing; gives what lets it go on."""
    pid = gang[rank].status().pid

    def go_on() -> None:
        os.kill(pid, signal.SIGCONT)

    stop(pid)
    try:
        yield go_on
    finally:
        go_on()


def test_a_deadline_that_passes_while_a_rank_is_stopped(patient: Gang) -> None:
    refs = ones(patient)
    with patient.stream() as stream, stopped(patient, 2):
        begun = [stream.submit("all_reduce", refs, timeout=1.0) for _ in range(3)]
        kinds_of_each = [{type(each.error) for each in it.outcomes()} for it in begun]
    late = {rankbridge.PeerMissingError, rankbridge.DeadlineExceededError}
    assert kinds_of_each[0] == late
    # Those behind it have come to their turn when their time was almost over, or not at all.
    assert all(kinds <= late for kinds in kinds_of_each)
    assert totals(patient, patient.all_reduce(refs)) == [[3.0, 3.0]] * 3


def test_a_block_that_fails_withdraws_what_was_not_admitted(patient: Gang) -> None:
    refs, begun, waiting = ones(patient), list[rankbridge.Streamed](), threading.Event()

    def work() -> None:
        with patient.stream() as stream:
            begun.extend(stream.submit("all_reduce", refs, timeout=PATIENCE_S) for _ in range(3))
            until(lambda: pending(patient, 0) == 1 and pending(patient, 1) == 1)
            waiting.set()
            raise ZeroDivisionError

    with stopped(patient, 2) as go_on, ThreadPoolExecutor(1) as threads:
        working = threads.submit(work)
        assert waiting.wait(PATIENCE_S)
        until(lambda: not pending(patient, 0) and not pending(patient, 1))
        # It tells what became of its part, which is withdrawn, too.
        go_on()
        assert isinstance(working.exception(PATIENCE_S), ZeroDivisionError)
    for it in begun:
        with pytest.raises(rankbridge.CallCancelledError) as raised:
            it.result()
        assert not raised.value.indefinite
    patient.barrier()


@pytest.mark.parametrize("by_stream", [True, False])
def test_an_interruption_withdraws(patient: Gang, by_stream: bool) -> None:
    refs, main = ones(patient), threading.main_thread().ident
    assert main is not None

    def interrupt(go_on: Callable[[], None]) -> None:
        until(lambda: pending(patient, 0) == 1 and pending(patient, 1) == 1)
        signal.pthread_kill(main, signal.SIGINT)
        until(lambda: not pending(patient, 0) and not pending(patient, 1))
        go_on()

    def work() -> None:
        if by_stream:
            with patient.stream() as stream:
                stream.submit("all_reduce", refs, timeout=PATIENCE_S).result()
        else:
            patient.all_reduce(refs, timeout=PATIENCE_S)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with stopped(patient, 2) as go_on, ThreadPoolExecutor(1) as threads:
            interrupting = threads.submit(interrupt, go_on)
            with pytest.raises(KeyboardInterrupt):
                work()
            interrupting.result(PATIENCE_S)
    finally:
        signal.signal(signal.SIGINT, before)
    patient.barrier()


def seconds_to_end(directory: Path) -> float:
    """What it takes to end a gang whose ranks have idle streams of two clients."""
    with up(directory, 3) as running:
        gangs = [rankbridge.connect(running.description, calls="gang", session=False) for _ in range(2)]
        for it in gangs:
            it.ping()
        stream = gangs[0].stream()
        stream.submit("barrier").result()
        since = time.monotonic()
    took = time.monotonic() - since
    with pytest.raises(rankbridge.UnavailableError):
        stream.submit("barrier").result()
    for it in gangs:
        it.close()
    return took


def test_a_gang_ends_at_once_while_clients_have_streams(tmp_path: Path) -> None:
    # A stream that does not end keeps each rank for half a second, every time; a busy machine only sometimes.
    assert any(seconds_to_end(tmp_path) < 0.45 for _ in range(10))


# --- without gRPC ----------------------------------------------------------------------------------------------


def streams_of(pids: Sequence[int]) -> int:
    """How many connections ranks have that are streams without gRPC."""
    held = {file for pid in pids for file in open_files(pid)}
    with open("/proc/net/unix") as sockets:
        lines = [line.split() for line in sockets if line.rstrip().endswith(".stream")]
    # "03" is connected.
    return sum(1 for line in lines if line[5] == "03" and f"socket:[{line[6]}]" in held)


@pytest.mark.parametrize(("calls", "ranks"), [("gang", 1), ("ranks", 2)])
def test_a_client_on_the_ranks_host_has_streams_without_grpc(
    tmp_path: Path, calls: Literal["gang", "ranks"], ranks: int
) -> None:
    with up(tmp_path, 2, "fake") as running:
        for targets, streams in ((running.description, ranks), (running.tcp, 0)):
            with rankbridge.connect(targets, calls=calls) as gang:
                gang.barrier()
                assert streams_of(running.pids) == streams
            until(lambda: not streams_of(running.pids))


def opened(target: str) -> socket.socket:
    """A stream without gRPC, which has done a ping."""
    ping = operation_pb.Operation(ping=operation_pb.PingRequest())
    request = gang_pb.ExecuteRequest(call=gang_pb.CallRequest(operations=[ping])).SerializeToString()
    stream = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    stream.settimeout(PATIENCE_S)
    stream.connect(target.removeprefix("unix:") + ".stream")
    stream.sendall(len(request).to_bytes(4, "big") + request)
    with stream.makefile("rb") as incoming:
        answer = gang_pb.ExecuteResponse.FromString(incoming.read(int.from_bytes(incoming.read(4), "big")))
    assert answer.WhichOneof("outcome") == "outcomes"
    return stream


def test_a_rank_that_has_as_many_as_it_takes_is_called_without(tmp_path: Path) -> None:
    with up(tmp_path, 2, "fake") as running, contextlib.ExitStack() as held:
        for _ in range(64):
            held.enter_context(opened(running.targets[0]))
        with rankbridge.connect(running.description, calls="gang") as gang:
            for _ in range(3):
                gang.barrier()
            with pytest.raises(rankbridge.ResourceExhaustedError), gang.stream() as stream:
                stream.submit("barrier")
            until(lambda: streams_of(running.pids) == 64)
            held.close()
            until(lambda: not streams_of(running.pids))
            with gang.stream() as stream:
                stream.submit("barrier")


def test_it_goes_by_grpc_where_they_cannot_be_had(tmp_path: Path) -> None:
    with up(tmp_path, 2, "fake") as running:
        for it in running.targets:
            Path(it.removeprefix("unix:") + ".stream").unlink()
        with rankbridge.connect(running.description) as gang:
            gang.barrier(calls="gang")
            gang.barrier(calls="ranks")
            with gang.stream() as stream:
                assert stream.submit("all_gather_object", [1, 2]).result() == [[1, 2]] * 2
        assert not streams_of(running.pids)


# An interruption while an object is collected is told so, and no more.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_gang_can_be_used_whenever_it_was_interrupted(gloo4: RunningGang, interrupter: Interrupter) -> None:
    with rankbridge.connect(gloo4.description, calls="gang", timeout=20) as gang:
        refs = ones(gang)
        for _ in range(INTERRUPTIONS):
            interrupter.interrupt(lambda: gang.all_reduce(refs))
        assert totals(gang, gang.all_reduce(refs)) == [[4.0, 4.0]] * SIZE


def test_the_example_of_the_documentation(tmp_path: Path) -> None:
    text = (Path(__file__).resolve().parents[2] / "docs" / "streams.md").read_text()
    (example,) = re.findall(r"<!-- local stream example: begin -->\n```python\n(.*?)```", text, re.DOTALL)
    with up(tmp_path, 2, "fake") as running:
        path = running.targets[0].removeprefix("unix:") + ".stream"
        done = subprocess.run(
            [sys.executable, "-c", example.replace("/run/gang/rank-0.stream", path)],
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=True,
        )
    assert done.stdout.count("rank: 1") == 1
    assert "error" not in done.stdout
