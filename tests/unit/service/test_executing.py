"""Streams of gang calls on the fake backend, over a real server for each rank, by gRPC and without."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from tests.support.waiting import until
from tests.unit.service.stages import (
    PATIENCE_S,
    SIZE,
    Held,
    Stage,
    Stream,
    all_begun,
    is_healthy,
    name_of,
    pending,
    sequences,
)

from rankbridge.v1 import collective_service_pb2 as collectives, operation_service_pb2 as operations
from rankbridge_server.core.rank import State
from rankbridge_server.service.streams import executing, stream as service_stream

VALUES = ["value"] * SIZE


@pytest.mark.parametrize("at", range(SIZE))
def test_calls_are_done_and_answered_in_the_order_in_which_they_were_sent(stage: Stage, at: int) -> None:
    # Each is the sum of what the one before has given: another order gives other sums.
    refs = stage.gang.full(1.0)
    parts = [
        operations.Operation(all_reduce=collectives.AllReduceRequest(ref_id=it.id, in_place=True))
        for it in refs
    ]
    spoiling = [
        operations.Operation(
            broadcast=collectives.BroadcastRequest(ref_id=it.id, in_place=True, src_rank_in_group=0)
        )
        for it in refs
    ]
    stream = Stream(stage, at)
    ids = [f"{number}" for number in range(12)]
    for number, operation_id in enumerate(ids):
        stream.call(spoiling if number % 4 == 3 else parts, operation_id=operation_id)
    assert [stream.result() for _ in ids] == [(it, VALUES) for it in ids]
    assert [stage.gang.floats(it) for it in refs] == [[3.0**9] * 2] * SIZE
    assert sequences(stage) == [12] * SIZE


@pytest.mark.parametrize("at", [0, 1])
def test_the_next_is_begun_while_one_is_under_way(stage: Stage, at: int) -> None:
    stream = Stream(stage, at)
    with Held(stage.gang, 2):
        for operation_id in "abc":
            stream.call(operation_id=operation_id)
        # The leader's lane waits for the first; the others' have come to rank 1 only when they are its turn.
        until(lambda: pending(stage, 1) == 1)
    assert [stream.result() for _ in "abc"] == [(it, VALUES) for it in "abc"]


def test_what_ends_first_is_answered_in_its_turn(stage: Stage) -> None:
    stream = Stream(stage)
    with Held(stage.gang, 2):
        stream.call(operation_id="first")
        until(lambda: pending(stage, 1) == 1)
        stream.call([], operation_id="wrong")
        stream.call(operation_id="late", timeout_ms=1)
        stream.call(operation_id="last")
        # What the last is waiting behind has failed already, and is not told.
        until(lambda: [it.operation_id for it in led(stage)] == ["first", "last"])
    assert stream.result() == ("first", VALUES)
    assert name_of(stream.answer().error) == "INVALID_ARGUMENT"
    assert stream.result() == ("late", ["DEADLINE_EXCEEDED"] * SIZE)
    assert stream.result() == ("last", VALUES)


@pytest.mark.parametrize("at", [0, 1])
def test_a_call_in_admission_is_withdrawn_and_the_next_goes_on(stage: Stage, at: int) -> None:
    stream = Stream(stage, at)
    with Held(stage.gang, 2):
        stream.call(operation_id="left")
        stream.call(operation_id="kept")
        until(lambda: pending(stage, 1) == 1)
        stream.withdraw("left")
        # The leader's lane is free for the next, though rank 2 has not told of the first.
        until(lambda: [it.operation_id for it in led(stage) if it.own] == ["left", "kept"])
    assert stream.result() == ("left", ["CANCELLED"] * SIZE)
    assert stream.result() == ("kept", VALUES)


def led(stage: Stage) -> list[Any]:
    return list(stage.gang.ranks[0].gang_calls._led.values())


@pytest.mark.parametrize("at", [0, 1])
def test_a_call_behind_another_is_withdrawn_and_nobody_was_asked(stage: Stage, at: int) -> None:
    stream = Stream(stage, at)
    with Held(stage.gang, 0):
        stream.call(operation_id="kept")
        stream.call(operation_id="left")
        until(lambda: [it.operation_id for it in led(stage)] == ["kept", "left"])
        stream.withdraw("left")
        until(lambda: [it.operation_id for it in led(stage)] == ["kept"])
    assert stream.result() == ("kept", VALUES)
    assert stream.result() == ("left", ["CANCELLED"] * SIZE)
    assert sequences(stage) == [1] * SIZE


def test_withdrawing_what_is_not_under_way_changes_nothing(stage: Stage) -> None:
    stream = Stream(stage)
    stream.withdraw("unheard-of")
    stream.call(operation_id="done")
    assert stream.result() == ("done", VALUES)
    stream.withdraw("done")
    stream.call(operation_id="next")
    assert stream.result() == ("next", VALUES)
    stream.end()
    assert stream.rest() == []


@pytest.mark.parametrize("at", [0, 1])
def test_hanging_up_withdraws_all_that_was_begun(stage: Stage, at: int) -> None:
    stream = Stream(stage, at)
    with Held(stage.gang, 2):
        for operation_id in "abc":
            stream.call(operation_id=operation_id)
        until(lambda: len(led(stage)) == 3 and pending(stage, 1) == 1)
        stream.hang_up()
        until(lambda: not pending(stage, 0) and not pending(stage, 1))
    until(lambda: not led(stage) and not stage.streams(at))
    assert is_healthy(stage)
    # None of them has run.
    assert sequences(stage) == [1] * SIZE


def test_the_end_of_requests_is_no_hanging_up(stage: Stage) -> None:
    stream = Stream(stage)
    with Held(stage.gang, 2):
        for operation_id in "abc":
            stream.call(operation_id=operation_id)
        stream.end()
        until(lambda: len(led(stage)) == 3)
    assert [it.outcomes.operation_id for it in stream.rest()] == ["a", "b", "c"]
    assert sequences(stage) == [3] * SIZE
    until(lambda: not stage.streams())


def test_more_than_may_be_under_way_are_read_as_others_are_answered(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service_stream, "MAX_UNDER_WAY", 4)
    stream = Stream(stage)
    ids = [str(number) for number in range(20)]
    with Held(stage.gang, 0):
        for operation_id in ids:
            stream.call(operation_id=operation_id)
        until(lambda: len(led(stage)) == 4)
    assert [stream.result() for _ in ids] == [(it, VALUES) for it in ids]


def test_hanging_up_with_more_sent_than_may_be_under_way(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service_stream, "MAX_UNDER_WAY", 2)
    stream = Stream(stage)
    with Held(stage.gang, 0):
        for number in range(6):
            stream.call(operation_id=str(number))
        until(lambda: len(led(stage)) == 2)
        stream.hang_up()
        until(lambda: not stage.streams())
    until(lambda: not any(it.name == "execute" for it in threading.enumerate()))
    assert is_healthy(stage)
    assert sequences(stage) == [1] * SIZE


def test_a_stream_too_many_is_refused_and_there_is_room_when_one_has_ended(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executing, "MAX_STREAMS", 2)
    first, second = Stream(stage), Stream(stage)
    for it in (first, second):
        it.call()
        assert it.result()[1] == VALUES
    third = Stream(stage)
    third.call()
    (refusal,) = third.rest()
    assert name_of(refusal.error) == "RESOURCE_EXHAUSTED"
    assert (refusal.error.operation, refusal.error.indefinite) == ("execute", False)
    first.end()
    assert first.rest() == []
    until(lambda: stage.streams() == 1)
    fourth = Stream(stage)
    fourth.call(operation_id="room")
    assert fourth.result() == ("room", VALUES)
    second.call(operation_id="on")
    assert second.result() == ("on", VALUES)


def test_a_request_that_says_nothing_is_refused_in_its_turn(stage: Stage) -> None:
    stream = Stream(stage)
    stream.call(operation_id="before")
    stream.say_nothing()
    stream.call(operation_id="after")
    assert stream.result() == ("before", VALUES)
    assert name_of(stream.answer().error) == "INVALID_ARGUMENT"
    assert stream.result() == ("after", VALUES)


@pytest.mark.parametrize("at", [0, 2])
def test_a_repeated_id_has_the_first_ones_outcome(stage: Stage, at: int) -> None:
    parts = [
        operations.Operation(all_reduce=collectives.AllReduceRequest(ref_id=it.id))
        for it in stage.gang.full(1.0)
    ]
    stream = Stream(stage, at)
    for _ in range(3):
        stream.call(parts, operation_id="once")
    first, *others = [stream.answer() for _ in range(3)]
    assert first.WhichOneof("outcome") == "outcomes"
    assert others == [first, first]
    assert sequences(stage) == [1] * SIZE


def test_a_failure_in_the_middle_leaves_the_others(stage: Stage) -> None:
    unknown = operations.Operation(all_reduce=collectives.AllReduceRequest(ref_id="unheard-of"))
    stream = Stream(stage)
    stream.call(operation_id="before")
    stream.call([unknown], operation_id="wrong")
    stream.call(operation_id="after")
    assert [stream.result() for _ in range(3)] == [
        ("before", VALUES),
        ("wrong", ["UNKNOWN_REF"] * SIZE),
        ("after", VALUES),
    ]


def test_streams_at_once_are_in_one_sequence(stage: Stage) -> None:
    streams = [Stream(stage, at) for at in (0, 0, 1, 2)]
    for number in range(25):
        for it in streams:
            it.call(operation_id=f"{id(it)} {number}")
    for it in streams:
        assert [it.result() for _ in range(25)] == [(f"{id(it)} {number}", VALUES) for number in range(25)]
    assert sequences(stage) == [100] * SIZE


@pytest.mark.parametrize("at", [0, 1])
def test_the_end_of_the_generation_answers_all_and_the_stream_goes_on(stage: Stage, at: int) -> None:
    stream = Stream(stage, at)
    with Held(stage.gang, 2):
        for operation_id in "ab":
            stream.call(operation_id=operation_id)
        until(lambda: all_begun(stage, 2))
        stage.gang.ranks[2].abort(1, "a test")
        assert [stream.result()[1][:2] for _ in "ab"] == [["ABORTED"] * 2] * 2
    # The leader answers as soon as it hears of the end, which may be before the others do.
    until(lambda: all(rank.describe().state is State.OVER for rank in stage.gang.ranks))
    stream.call()
    assert name_of(stream.answer().error) == "STALE_GENERATION"
    stage.gang.form()
    stream.call(operation_id="again")
    assert stream.result() == ("again", VALUES)


@pytest.mark.parametrize("at", [0, 1])
def test_a_server_that_stops_answers_what_was_begun_and_ends_the_stream(stage: Stage, at: int) -> None:
    idle, busy = Stream(stage, at), Stream(stage, at)
    idle.call()
    assert idle.result()[1] == VALUES
    with Held(stage.gang, 2):
        for operation_id in "ab":
            busy.call(operation_id=operation_id)
        until(lambda: all_begun(stage, 2))
        stage.gang.ranks[at].close("the rank stops")
        # Had a stream kept it, it would wait for its whole grace, and cancel the stream then.
        stage.servers[at].stop(PATIENCE_S)
    assert idle.rest() == []
    responses = busy.rest()
    assert [it.outcomes.operation_id for it in responses] == ["a", "b"]
    assert [name_of(it.outcomes.members[at].result.error) for it in responses] == ["ABORTED"] * 2
    until(lambda: not stage.streams(at))


def test_a_stream_that_comes_when_the_rank_stops_ends_and_begins_nothing(stage: Stage) -> None:
    stage.servers[0]._gang.streams.end()
    stream = Stream(stage)
    stream.call(operation_id="late")
    assert stream.rest() == []
    assert sequences(stage) == [0] * SIZE


def test_no_thread_is_left_of_streams_that_have_ended(stage: Stage) -> None:
    for end in (Stream.end, Stream.hang_up):
        stream = Stream(stage)
        stream.call()
        assert stream.result()[1] == VALUES
        end(stream)
    until(lambda: not stage.streams())
    until(lambda: not any(it.name == "execute" for it in threading.enumerate()))
