"""Message queues of real ranks on Gloo, driven through the raw stubs: in shared memory, and by the backend."""

from __future__ import annotations

import os
import signal
import uuid
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import pytest
from tests.conftest import PATIENT
from tests.support.gangs import RunningGang, up
from tests.support.proc import open_files
from tests.support.waiting import until

from rankbridge.v1 import (
    error_pb2 as error,
    operation_service_pb2 as operation,
    operation_service_pb2_grpc as operation_stub,
    queue_service_pb2 as pb,
    queue_service_pb2_grpc as stub,
    rank_service_pb2 as rank_pb,
    rank_service_pb2_grpc as rank_stub,
)
from rankbridge.v1.call_pb2 import Call
from rankbridge.v1.value_pb2 import MapEntry, MapValue, NoneValue, Value

SIZE = 3
TIMEOUT_MS = 60_000
SHORT_MS = 1000
MAX_BYTES = 256 * 1024 * 1024


class Client:
    """One rank."""

    def __init__(self, target: str, pid: int) -> None:
        self.pid = pid
        options = [
            ("grpc.max_receive_message_length", MAX_BYTES),
            ("grpc.max_send_message_length", MAX_BYTES),
        ]
        self.channel = grpc.insecure_channel(target, options)
        self.queues = stub.QueueServiceStub(self.channel)
        self.operations = operation_stub.OperationServiceStub(self.channel)
        self.ranks = rank_stub.RankServiceStub(self.channel)

    def put(self, value: Value, timeout_ms: int = TIMEOUT_MS, operation_id: str = "") -> pb.EnqueueResponse:
        call = Call(timeout_ms=timeout_ms, operation_id=operation_id)
        return self.queues.Enqueue(pb.EnqueueRequest(call=call, queue="q", value=value))

    def get(self, timeout_ms: int = TIMEOUT_MS, operation_id: str = "") -> pb.DequeueResponse:
        call = Call(timeout_ms=timeout_ms, operation_id=operation_id)
        return self.queues.Dequeue(pb.DequeueRequest(call=call, queue="q"))

    def shut_down(self) -> pb.ShutDownQueueResponse:
        return self.queues.ShutDownQueue(pb.ShutDownQueueRequest(queue="q"))

    def listed(self) -> list[pb.Queue]:
        return list(self.queues.ListQueues(pb.ListQueuesRequest()).queues)

    def status(self) -> rank_pb.DescribeRankResponse:
        return self.ranks.DescribeRank(rank_pb.DescribeRankRequest())

    def shared_memory(self) -> list[str]:
        """What its process has open of it, or mapped."""
        maps = Path(f"/proc/{self.pid}/maps").read_text().splitlines()
        return [it for it in [*open_files(self.pid), *maps] if "memfd:rankbridge-" in it]


@pytest.fixture(scope="module", params=["near", "far"])
def running(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningGang]:
    options = ["--no-shared-memory"] if request.param == "far" else []
    with up(tmp_path_factory.mktemp("queues"), SIZE, options=[*PATIENT, *options]) as it:
        yield it


def clients_of(gang: RunningGang) -> list[Client]:
    return [Client(target, pid) for target, pid in zip(gang.targets, gang.pids, strict=True)]


@pytest.fixture
def gang(running: RunningGang) -> Iterator[list[Client]]:
    clients = clients_of(running)
    yield clients
    for client in clients:
        client.shut_down()
    until(lambda: not any(client.listed() or client.shared_memory() for client in clients))
    assert [client.status().pending_operations for client in clients] == [0] * SIZE
    for client in clients:
        client.channel.close()


def make(clients: Sequence[Client], **args: Any) -> pb.Queue:
    call = Call(operation_id=uuid.uuid4().hex, timeout_ms=TIMEOUT_MS)
    request = pb.NewQueueRequest(call=call, name="q", **args)
    futures = [client.queues.NewQueue.future(request) for client in clients]
    responses = [future.result() for future in futures]
    assert [it.error.message for it in responses] == [""] * len(clients)
    queue: pb.Queue = responses[0].queue
    assert [it.queue for it in responses] == [queue] * len(clients)
    return queue


def text(it: str) -> Value:
    return Value(text=it)


def is_near(running: RunningGang, queue: pb.Queue) -> bool:
    near = list(queue.shared_memory_ranks_in_group)
    assert near in ([], list(queue.reader_ranks_in_group))
    return bool(near)


def test_values_of_all_kinds_and_sizes_reach_all_readers(
    gang: list[Client], running: RunningGang, request: pytest.FixtureRequest
) -> None:
    queue = make(gang, writer_rank_in_group=1, max_chunk_bytes=10_000, max_chunks=3)
    assert is_near(running, queue) is ("near" in request.node.name)
    assert [client.listed() for client in gang] == [[queue]] * SIZE
    entry = MapEntry(key=Value(int=-1), value=Value(bytes=os.urandom(20_000)))
    values = [
        Value(none=NoneValue()),
        text("x" * 10_000),
        Value(map=MapValue(entries=[entry])),
        Value(bytes=os.urandom(5_000_000)),
        *(Value(int=number) for number in range(100)),
    ]
    with ThreadPoolExecutor(SIZE) as pool:
        written = pool.submit(lambda: [gang[1].put(value) for value in values])
        reads = [pool.submit(lambda it: [it.get() for _ in values], gang[reader]) for reader in (0, 2)]
        for read in reads:
            assert [it.value for it in read.result()] == values
        assert {it.WhichOneof("outcome") for it in written.result()} == {"value"}
        assert {it.value.WhichOneof("kind") for it in written.result()} == {"none"}


@pytest.mark.sampled
def test_the_seventh_unread_value_times_out(gang: list[Client]) -> None:
    make(gang)
    for number in range(6):
        assert not gang[0].put(Value(int=number)).HasField("error")
    for _ in range(2):
        it = gang[0].put(text("late"), SHORT_MS).error
        assert (it.code, it.indefinite) == (error.ERROR_CODE_PEER_MISSING, False)
        assert [(detail.rank, detail.state) for detail in it.ranks] == [
            (rank, error.RANK_STATE_MISSING) for rank in (1, 2)
        ]
    for reader in gang[1:]:
        assert [reader.get().value.int for _ in range(6)] == list(range(6))
        it = reader.get(SHORT_MS).error
        assert (it.code, it.indefinite) == (error.ERROR_CODE_PEER_MISSING, False)
        assert [(detail.rank, detail.state) for detail in it.ranks] == [(0, error.RANK_STATE_MISSING)]


def test_shutting_down_wakes_who_waits(gang: list[Client]) -> None:
    make(gang)
    waiting = gang[1].queues.Dequeue.future(pb.DequeueRequest(call=Call(timeout_ms=TIMEOUT_MS), queue="q"))
    until(lambda: gang[1].status().pending_operations == 1)
    assert gang[1].shut_down().queue.name == "q"
    assert waiting.result().error.code == error.ERROR_CODE_ABORTED
    assert gang[1].get().error.code == error.ERROR_CODE_UNKNOWN_QUEUE
    assert gang[1].shut_down().error.code == error.ERROR_CODE_UNKNOWN_QUEUE
    # The seventh waits for rank 2, too, so that the word of rank 1 has time to come.
    refused = [gang[0].put(text("x")).error for _ in range(7)][-1]
    assert (refused.code, [it.rank for it in refused.ranks]) == (error.ERROR_CODE_ABORTED, [1])


def test_readers_read_what_was_written_before_the_end(gang: list[Client]) -> None:
    make(gang)
    gang[0].put(text("last"))
    gang[0].shut_down()
    for reader in gang[1:]:
        assert reader.get().value == text("last")
        assert reader.get().error.code == error.ERROR_CODE_ABORTED


def test_an_operation_id_writes_and_reads_once(gang: list[Client]) -> None:
    make(gang)
    ids = [uuid.uuid4().hex for _ in range(2)]
    for _ in range(2):
        assert gang[0].put(text("once"), operation_id=ids[0]).HasField("value")
    for _ in range(2):
        assert gang[1].get(operation_id=ids[1]).value == text("once")
    awaited = gang[1].operations.Await(operation.AwaitRequest(operation_id=ids[1]))
    assert awaited.value == text("once")
    assert gang[1].get(SHORT_MS).error.code == error.ERROR_CODE_PEER_MISSING
    assert gang[2].get().value == text("once")


def test_reads_and_writes_are_submitted_polled_and_cancelled(gang: list[Client]) -> None:
    make(gang, max_chunks=1)
    reads = [uuid.uuid4().hex for _ in range(2)]
    for name in reads:
        request = pb.DequeueRequest(call=Call(operation_id=name, timeout_ms=TIMEOUT_MS), queue="q")
        submitted = gang[1].operations.Submit(
            operation.SubmitRequest(operation=operation.Operation(dequeue=request))
        )
        assert submitted.operation_id == name
    poll = operation.PollRequest(operation_id=reads[0])
    until(lambda: gang[1].operations.Poll(poll).status.state == operation.OPERATION_STATE_ADMISSION)
    assert gang[1].operations.Cancel(operation.CancelRequest(operation_id=reads[0])).cancelled
    gang[0].put(text("0"))
    awaited = gang[1].operations.Await(operation.AwaitRequest(operation_id=reads[1], timeout_ms=TIMEOUT_MS))
    assert awaited.value == text("0")
    writes = [uuid.uuid4().hex for _ in range(2)]
    for number, name in enumerate(writes):
        call = Call(operation_id=name, timeout_ms=TIMEOUT_MS)
        it = pb.EnqueueRequest(call=call, queue="q", value=Value(int=number))
        gang[0].operations.Submit(operation.SubmitRequest(operation=operation.Operation(enqueue=it)))
    assert gang[0].operations.Cancel(operation.CancelRequest(operation_id=writes[0])).cancelled
    assert gang[2].get().value == text("0")
    assert [reader.get().value for reader in gang[1:]] == [Value(int=1)] * 2
    # The readers may have it before the writer has taken note.
    poll = operation.PollRequest(operation_id=writes[1])
    until(lambda: gang[0].operations.Poll(poll).status.state == operation.OPERATION_STATE_DONE)


def test_a_caller_that_hangs_up_takes_nothing(gang: list[Client]) -> None:
    make(gang)
    waiting = gang[1].queues.Dequeue.future(pb.DequeueRequest(call=Call(timeout_ms=TIMEOUT_MS), queue="q"))
    until(lambda: gang[1].status().pending_operations == 1)
    waiting.cancel()
    until(lambda: gang[1].status().pending_operations == 0)
    gang[0].put(text("x"))
    assert [reader.get().value for reader in gang[1:]] == [text("x")] * 2


def test_names_and_ranks_are_checked(gang: list[Client]) -> None:
    make(gang, reader_ranks_in_group=[2])
    assert gang[0].queues.NewQueue(pb.NewQueueRequest(name="q")).error.code == error.ERROR_CODE_NAME_EXISTS
    for it in (gang[0].get().error, gang[1].get().error, gang[2].put(text("x")).error):
        assert it.code == error.ERROR_CODE_INVALID_ARGUMENT
        assert (it.expected, it.got) != ("", "")
    missing = gang[0].put(Value()).error
    assert (missing.code, missing.operation) == (error.ERROR_CODE_INVALID_ARGUMENT, "enqueue")


@pytest.mark.parametrize("lost", [0, 1], ids=["the writer", "a reader"])
@pytest.mark.parametrize("options", [[], ["--no-shared-memory"]], ids=["near", "far"])
def test_a_killed_rank_leaves_nothing_behind(tmp_path: Path, lost: int, options: list[str]) -> None:
    with up(tmp_path, SIZE, options=["--on-rank-exit", "leave", *options]) as running:
        clients = clients_of(running)
        make(clients, max_chunk_bytes=1000, max_chunks=2)
        for number in range(2):
            assert not clients[0].put(Value(bytes=bytes(2000 + number))).HasField("error")
        # Nobody has read: the writer waits, and a reader that has read all.
        write = clients[0].queues.Enqueue.future(
            pb.EnqueueRequest(call=Call(timeout_ms=TIMEOUT_MS), queue="q", value=text("x"))
        )
        for number in range(2):
            assert len(clients[2].get().value.bytes) == 2000 + number
        read = clients[2].queues.Dequeue.future(
            pb.DequeueRequest(call=Call(timeout_ms=TIMEOUT_MS), queue="q")
        )
        for client in (clients[0], clients[2]):
            until(lambda it=client: it.status().pending_operations == 1)  # type: ignore[misc]
        os.kill(clients[lost].pid, signal.SIGKILL)
        for waiting, caller in ((write, 0), (read, 2)):
            if caller != lost:
                it = waiting.result().error
                assert (it.code, [detail.rank for detail in it.ranks]) == (error.ERROR_CODE_PEER_LOST, [lost])
        survivors = [client for rank, client in enumerate(clients) if rank != lost]
        until(lambda: not any(client.shared_memory() or client.listed() for client in survivors))
        assert not [it for it in os.listdir("/dev/shm") if "rankbridge" in it]
        for client in survivors:
            assert client.shut_down().error.code == error.ERROR_CODE_STALE_GENERATION
        for client in clients:
            client.channel.close()
