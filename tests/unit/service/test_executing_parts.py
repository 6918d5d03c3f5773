"""Parts of single ranks by streams, on the fake backend, over a real gRPC server for each rank."""

from __future__ import annotations

from typing import Any

from tests.support.waiting import until
from tests.unit.service.stages import SIZE, Held, Stage, Stream, is_healthy, name_of, pending, sequences

from rankbridge.v1 import (
    call_pb2,
    collective_service_pb2 as collectives,
    dtype_pb2,
    error_pb2,
    operation_service_pb2 as operations,
    point_to_point_service_pb2 as point_to_point,
    tensor_pb2,
)


def barrier(operation_id: str, timeout_ms: int = 60_000, **call: Any) -> operations.Operation:
    message = call_pb2.Call(operation_id=operation_id, timeout_ms=timeout_ms, **call)
    return operations.Operation(barrier=collectives.BarrierRequest(call=message))


def opened(stage: Stage) -> list[Stream]:
    return [Stream(stage, at) for at in range(SIZE)]


def next_result(stream: Stream) -> str:
    """The next answer: "value", or the error's code."""
    response = stream.answer()
    assert response.WhichOneof("outcome") == "result", response
    result = response.result
    return name_of(result.error) if result.HasField("error") else "value"


def test_parts_of_all_ranks_are_an_operation(stage: Stage) -> None:
    refs = stage.gang.full(1.0)
    streams = opened(stage)
    for stream, ref in zip(streams, refs, strict=True):
        call = call_pb2.Call(operation_id="sum", timeout_ms=60_000)
        request = collectives.AllReduceRequest(call=call, ref_id=ref.id, in_place=True)
        stream.part(operations.Operation(all_reduce=request))
    answers = [stream.answer().result.value.ref for stream in streams]
    assert [it.id for it in answers] == [it.id for it in refs]
    assert [stage.gang.floats(it) for it in refs] == [[3.0] * 2] * SIZE


def test_parts_are_answered_in_their_turn_and_beside_gang_calls(stage: Stage) -> None:
    streams = opened(stage)
    for stream in streams:
        for operation_id in "ab":
            stream.part(barrier(operation_id))
    streams[0].call(operation_id="gang")
    assert [next_result(stream) for stream in streams] == ["value"] * SIZE
    assert [next_result(stream) for stream in streams] == ["value"] * SIZE
    assert streams[0].answer().outcomes.operation_id == "gang"
    assert sequences(stage) == [3] * SIZE


def test_a_part_that_is_wrong_is_refused_and_changes_nothing(stage: Stage) -> None:
    stream = Stream(stage, 1)
    stream.part(operations.Operation())
    stream.part(barrier("nowhere", group="no such group"))
    answers = [stream.answer().result.error for _ in range(2)]
    assert [name_of(it) for it in answers] == ["INVALID_ARGUMENT", "UNKNOWN_GROUP"]
    assert [(it.rank, it.operation, it.operation_id) for it in answers] == [
        (1, "execute", ""),
        (1, "barrier", "nowhere"),
    ]
    assert sequences(stage) == [0] * SIZE
    assert is_healthy(stage)


def test_a_part_that_the_others_do_not_come_to_fails_when_its_time_is_over(stage: Stage) -> None:
    streams = opened(stage)
    # Enough for rank 1 to begin with it: it would be withdrawn as one that waited in a queue otherwise.
    streams[1].part(barrier("alone", timeout_ms=600))
    answer = streams[1].answer().result.error
    assert name_of(answer) == "PEER_MISSING"
    missing = [it.rank for it in answer.ranks if it.state == error_pb2.RANK_STATE_MISSING]
    assert missing == [0, 2]
    assert is_healthy(stage)


def test_a_part_that_is_queued_when_its_time_is_over_was_not_begun(stage: Stage) -> None:
    stream = Stream(stage, 1)
    with Held(stage.gang, 1):
        stream.part(barrier("late", timeout_ms=20))
        error = stream.answer().result.error
    assert (name_of(error), error.indefinite) == ("DEADLINE_EXCEEDED", False)
    assert is_healthy(stage)


def test_who_repeats_a_part_may_be_less_patient_and_ends_only_himself(stage: Stage) -> None:
    streams = opened(stage)
    other = Stream(stage, 1)
    streams[1].part(barrier("it"))
    until(lambda: pending(stage, 1) == 1)
    other.part(barrier("it", timeout_ms=20))
    error = other.answer().result.error
    assert (name_of(error), error.indefinite) == ("DEADLINE_EXCEEDED", True)
    for at in (0, 2):
        streams[at].part(barrier("it"))
    assert [next_result(stream) for stream in streams] == ["value"] * SIZE
    other.part(barrier("it"))
    assert next_result(other) == "value"
    assert sequences(stage) == [1] * SIZE


def test_a_part_is_withdrawn_by_its_id_and_by_hanging_up(stage: Stage) -> None:
    stream = Stream(stage, 1)
    stream.part(barrier("said"))
    until(lambda: pending(stage, 1) == 1)
    stream.withdraw("said")
    assert next_result(stream) == "CANCELLED"
    stream.part(barrier("left"))
    until(lambda: pending(stage, 1) == 1)
    stream.hang_up()
    until(lambda: not pending(stage, 1) and not stage.streams(1))
    assert is_healthy(stage)


def test_a_part_without_an_id_is_withdrawn_by_no_id(stage: Stage) -> None:
    streams = opened(stage)
    streams[1].part(barrier(""))
    streams[1].withdraw("")
    streams[1].part(operations.Operation())
    # Who has read this has read what withdraws nothing.
    until(lambda: stage.streams(1) == 1)
    (open_stream,) = stage.servers[1]._gang.streams._open
    until(lambda: len(open_stream._under_way) == 2)
    for at in (0, 2):
        streams[at].part(barrier(""))
    assert [next_result(stream) for stream in streams] == ["value"] * SIZE
    assert next_result(streams[1]) == "INVALID_ARGUMENT"


def test_the_end_of_the_generation_answers_a_part(stage: Stage) -> None:
    stream = Stream(stage, 1)
    stream.part(barrier("ended"))
    until(lambda: pending(stage, 1) == 1)
    stage.gang.ranks[1].abort(1, "a test")
    assert next_result(stream) == "ABORTED"


def test_messages_find_each_other(stage: Stage) -> None:
    ref = stage.gang.full(5.0)[0]
    streams = opened(stage)
    send = point_to_point.SendRequest(
        call=call_pb2.Call(operation_id="send", timeout_ms=60_000), ref_id=ref.id, dst_rank_in_group=2
    )
    recv = point_to_point.RecvRequest(
        call=call_pb2.Call(operation_id="recv", timeout_ms=60_000),
        src_rank_in_group=0,
        tensor=tensor_pb2.TensorSpec(dtype=dtype_pb2.DTYPE_FLOAT32, shape=[2]),
    )
    streams[2].part(operations.Operation(recv=recv))
    streams[0].part(operations.Operation(send=send))
    assert next_result(streams[0]) == "value"
    answer = streams[2].answer().result
    assert not answer.HasField("error"), answer
    received = answer.value.tuple.items[0].ref
    assert received.rank == 2
    assert stage.gang.floats(stage.gang.ranks[2].refs.find("", received.id).ref) == [5.0, 5.0]
