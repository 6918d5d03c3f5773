"""Calls of all ranks of a group, each on its own rank, which go by a stream to each."""

from __future__ import annotations

import functools
import signal
import threading
from collections.abc import Iterator
from dataclasses import replace
from queue import SimpleQueue
from typing import Any

import pytest
from tests.unit.client.fronts import connected
from tests.unit.client.sidecars import WAIT, SidecarGang

import rankbridge
from rankbridge._plan import operations as ops
from rankbridge._transport import framing
from rankbridge.v1 import (
    collective_service_pb2 as collective_pb,
    gang_service_pb2 as gang_pb,
    operation_service_pb2 as operation_pb,
)

SIZE = 4


@pytest.fixture
def gang(front: str, sidecars: SidecarGang) -> Iterator[Any]:
    with connected(front, sidecars.endpoints(), timeout=20, calls="ranks") as it:
        yield it


@pytest.fixture
def blocking(sidecars: SidecarGang) -> Iterator[rankbridge.Gang]:
    with rankbridge.connect(sidecars.endpoints(), timeout=20, calls="ranks") as it:
        yield it


def test_calls_of_ranks_go_by_one_stream_to_each(gang: Any, sidecars: SidecarGang) -> None:
    refs = gang.create("float32", 1)
    for held, ref in zip(sidecars.sidecars, refs, strict=True):
        held.held[ref.id].data = bytes(4)
    for _ in range(3):
        gang.barrier()
        assert [it.rank for it in gang.all_reduce(refs)] == list(range(SIZE))
    for sidecar in sidecars.sidecars:
        assert len(sidecar.requests["Execute"]) == 1
        assert len(sidecar.requests["Barrier"]) == 3
        ids = {it.call.operation_id for it in sidecar.requests["AllReduce"]}
        assert len(ids) == 3
        assert "" not in ids


def test_an_error_of_a_rank_is_its_outcomes_and_the_stream_goes_on(gang: Any, sidecars: SidecarGang) -> None:
    with pytest.raises(rankbridge.UnknownGroupError) as raised:
        gang.barrier(group=rankbridge.Group(name="none", ranks=(0, 1, 2, 3), backend="fake", generation=1))
    assert raised.value.group == "none"
    gang.barrier()
    assert [len(it.requests["Execute"]) for it in sidecars.sidecars] == [1] * SIZE


def test_a_rank_that_refuses_streams_is_called_without(gang: Any, sidecars: SidecarGang) -> None:
    def refuse(requests: Any, context: Any) -> Iterator[Any]:
        refusal = sidecars[1].error("RESOURCE_EXHAUSTED", "too many streams", operation="execute")
        yield gang_pb.ExecuteResponse(error=refusal)

    sidecars[1].answers["Execute"] = refuse
    for _ in range(2):
        gang.barrier()
    assert [len(it.requests["Execute"]) for it in sidecars.sidecars] == [1] * SIZE
    assert [len(it.requests["Barrier"]) for it in sidecars.sidecars] == [2] * SIZE
    assert [len(it.requests.get("Run", [])) for it in sidecars.sidecars] == [0, 2, *[0] * (SIZE - 2)]


def test_an_interruption_withdraws_what_every_rank_was_asked(
    blocking: rankbridge.Gang, sidecars: SidecarGang
) -> None:
    main = threading.main_thread().ident
    assert main is not None
    arrived = threading.Semaphore(0)
    withdrawn: SimpleQueue[tuple[int, str]] = SimpleQueue()

    def execute(rank: int, requests: Iterator[Any], context: Any) -> Iterator[Any]:
        number = next(requests).number
        arrived.release()
        withdrawn.put((rank, next(requests).withdraw))
        error = sidecars[rank].error("CANCELLED", "withdrawn")
        yield gang_pb.ExecuteResponse(result=operation_pb.OperationResult(error=error), number=number)

    for sidecar in sidecars.sidecars:
        sidecar.answers["Execute"] = functools.partial(execute, sidecar.rank)

    def interrupt() -> None:
        for _ in range(SIZE):
            assert arrived.acquire(timeout=WAIT)
        signal.pthread_kill(main, signal.SIGINT)

    interrupting = threading.Thread(target=interrupt)
    interrupting.start()
    with pytest.raises(KeyboardInterrupt):
        blocking.barrier(operation_id="interrupted")
    interrupting.join()
    reasons = {withdrawn.get(timeout=WAIT) for _ in range(SIZE)}
    assert reasons == {(rank, "interrupted") for rank in range(SIZE)}


def test_a_large_part_goes_by_the_stream_too(gang: Any, sidecars: SidecarGang) -> None:
    asked: SimpleQueue[Any] = SimpleQueue()

    def answer(request: Any, context: Any) -> Any:
        asked.put(request)
        return collective_pb.BarrierResponse(error=sidecars[0].error("INVALID_ARGUMENT", "a test"))

    for sidecar in sidecars.sidecars:
        sidecar.answers["Barrier"] = answer
    with pytest.raises(rankbridge.InvalidArgumentError):
        gang.barrier(operation_id="x" * 3_000_000)
    assert asked.qsize() == SIZE
    assert all(len(it.requests["Execute"]) == 1 for it in sidecars.sidecars)


def test_what_no_message_holds_goes_by_itself(gang: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(framing, "MAX_MESSAGE_BYTES", 1_000)
    part = ops.find_operation("barrier")(ops.Scope(rank=0, session_id="", timeout=1), operation_id="x" * 700)
    assert framing.requesting(part) is not None
    part = ops.find_operation("barrier")(
        ops.Scope(rank=0, session_id="", timeout=1), operation_id="x" * 1_000
    )
    assert framing.requesting(part) is None
    gang.barrier(operation_id="x" * 1_000)


def test_an_answer_of_another_kind_is_not_understood(gang: Any, sidecars: SidecarGang) -> None:
    def answer(requests: Iterator[Any], context: Any) -> Iterator[Any]:
        for it in requests:
            yield gang_pb.ExecuteResponse(outcomes=gang_pb.MemberOutcomes(), number=it.number)

    for sidecar in sidecars.sidecars:
        sidecar.answers["Execute"] = answer
    with pytest.raises(rankbridge.ProtocolError) as raised:
        gang.barrier(operation_id="odd")
    assert raised.value.indefinite
    assert (raised.value.rank, raised.value.operation, raised.value.operation_id) == (0, "barrier", "odd")


def test_a_fault_in_reading_an_answer_is_raised_where_it_is_waited_for(blocking: rankbridge.Gang) -> None:
    def fault(_: bytes) -> None:
        raise KeyError("a fault")

    calls = blocking._on_members(range(SIZE), ops.OPERATIONS["barrier"], operation_id="faulty")
    with pytest.raises(KeyError, match="a fault"):
        blocking._channels.outcomes([replace(call, read=fault) for call in calls])
    # The streams go on.
    blocking.barrier()


OPERATIONS = [field for field in operation_pb.Operation.DESCRIPTOR.fields if field.name != "ping"]


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda it: str(it.name))
def test_the_answer_of_an_operations_own_rpc_is_written_as_that_of_a_part(operation: Any) -> None:
    request = operation.message_type
    response = request.file.message_types_by_name[request.name.replace("Request", "Response")]

    def written(message: Any) -> list[tuple[int, str, str]]:
        return [(it.number, it.name, it.message_type.full_name) for it in message.fields]

    assert written(response) == written(operation_pb.OperationResult.DESCRIPTOR)
