"""Requests of a stream that have a number: each is answered as soon as it is done."""

from __future__ import annotations

from tests.support.waiting import until
from tests.unit.service.stages import (
    PATIENCE_S,
    SIZE,
    Held,
    Stage,
    Stream,
    all_begun,
    name_of,
    pending,
    sequences,
)

from rankbridge.v1 import (
    collective_service_pb2 as collectives,
    gang_service_pb2 as pb,
    operation_service_pb2 as operations,
)


def numbers(responses: list[pb.ExecuteResponse]) -> list[int]:
    return [it.number for it in responses]


def test_a_slow_call_delays_no_answer_that_has_a_number(stage: Stage) -> None:
    stream = Stream(stage)
    with Held(stage.gang, 2):
        stream.call(number=1)
        until(lambda: pending(stage, 1) == 1)
        stream.call([], number=7)
        stream.part(operations.Operation(), number=2**64 - 1)
        quick = [stream.answer(), stream.answer()]
        assert numbers(quick) == [7, 2**64 - 1]
        assert name_of(quick[0].error) == "INVALID_ARGUMENT"
        assert name_of(quick[1].result.error) == "INVALID_ARGUMENT"
    slow = stream.answer()
    assert (slow.number, slow.WhichOneof("outcome")) == (1, "outcomes")
    assert sequences(stage) == [1] * SIZE


def test_requests_without_a_number_keep_their_order_among_those_with_one(stage: Stage) -> None:
    stream = Stream(stage)
    with Held(stage.gang, 2):
        stream.call(operation_id="first")
        until(lambda: pending(stage, 1) == 1)
        stream.call([], operation_id="second")
        stream.call([], number=3)
        assert stream.answer().number == 3
    assert stream.result()[0] == "first"
    second = stream.answer()
    assert (second.number, name_of(second.error)) == (0, "INVALID_ARGUMENT")


def test_a_number_is_free_again_when_it_was_answered(stage: Stage) -> None:
    stream = Stream(stage)
    with Held(stage.gang, 2):
        stream.call(number=5)
        until(lambda: pending(stage, 1) == 1)
        stream.call(number=5)
        twice = stream.answer()
        assert (twice.number, name_of(twice.error), twice.error.operation) == (
            5,
            "INVALID_ARGUMENT",
            "execute",
        )
        stream.call(number=5)
        assert name_of(stream.answer().error) == "INVALID_ARGUMENT"
    assert stream.answer().WhichOneof("outcome") == "outcomes"
    stream.call(number=5)
    assert stream.answer().WhichOneof("outcome") == "outcomes"
    assert sequences(stage) == [2] * SIZE


def test_what_has_a_number_is_withdrawn_by_its_operation_id(stage: Stage) -> None:
    stream = Stream(stage)
    with Held(stage.gang, 2):
        stream.call(number=1, operation_id="left")
        until(lambda: pending(stage, 1) == 1)
        stream.withdraw("left")
    assert numbers([stream.answer()]) == [1]
    stream.end()
    assert stream.rest() == []


def test_the_end_of_requests_answers_what_has_a_number(stage: Stage) -> None:
    stream = Stream(stage)
    barrier = operations.Operation(barrier=collectives.BarrierRequest())
    with Held(stage.gang, 2):
        stream.call(number=1)
        until(lambda: pending(stage, 1) == 1)
        stream.call([barrier, barrier], number=9)
        assert stream.answer().number == 9
        stream.end()
    assert numbers(stream.rest()) == [1]


def test_a_rank_that_stops_answers_what_has_a_number_and_ends_the_stream(stage: Stage) -> None:
    stream = Stream(stage)
    with Held(stage.gang, 2):
        stream.call(number=8, operation_id="a")
        stream.call(number=9, operation_id="b")
        until(lambda: all_begun(stage, 2))
        stage.gang.ranks[0].close("the rank stops")
        stage.servers[0].stop(PATIENCE_S)
    responses = stream.rest()
    assert sorted(numbers(responses)) == [8, 9]
    codes = {it.number: name_of(it.outcomes.members[0].result.error) for it in responses}
    assert codes == {8: "ABORTED", 9: "ABORTED"}
    until(lambda: not stage.streams())
