"""Streams of gang calls on the fake backend, over a real gRPC server for each rank."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import grpc
import pytest
from tests.support.local_gang import LocalGang
from tests.support.waiting import until

from rankbridge.v1 import call_pb2, error_pb2, gang_service_pb2_grpc
from rankbridge.v1 import collective_service_pb2 as collectives
from rankbridge.v1 import gang_service_pb2 as pb
from rankbridge.v1 import operation_service_pb2 as operations
from rankbridge_server.core.operations import BARRIER, Barrier
from rankbridge_server.service import executing
from rankbridge_server.service.server import Server

SIZE = 3
PATIENCE_S = 60.0
BARRIER_PART = operations.Operation(barrier=collectives.BarrierRequest())


class Stage:
    """A gang, and a server and a channel for each rank."""

    def __init__(self, directory: Path) -> None:
        self.gang = LocalGang(SIZE)
        self.servers = [
            Server(rank, [f"unix:{directory}/{place}"], 64) for place, rank in enumerate(self.gang.ranks)
        ]
        for server in self.servers:
            server.start()
        self.channels = [grpc.insecure_channel(server.endpoints[0]) for server in self.servers]

    def streams(self, at: int = 0) -> int:
        return len(self.servers[at]._gang.streams)

    def close(self) -> None:
        for channel in self.channels:
            channel.close()
        for rank, server in zip(self.gang.ranks, self.servers, strict=True):
            rank.close("the test is over")
            server.stop(0.5)


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    it = Stage(tmp_path)
    yield it
    it.close()


class Stream:
    """A stream of gang calls to one rank."""

    def __init__(self, stage: Stage, at: int = 0) -> None:
        self._requests: SimpleQueue[pb.ExecuteRequest | None] = SimpleQueue()
        stub = gang_service_pb2_grpc.GangServiceStub(stage.channels[at])
        self.rpc: Any = stub.Execute(iter(self._requests.get, None), timeout=PATIENCE_S)

    def call(self, parts: Sequence[operations.Operation] = (BARRIER_PART,), **call: Any) -> None:
        message = call_pb2.Call(**{"timeout_ms": 60_000, **call})
        self._requests.put(pb.ExecuteRequest(call=pb.CallRequest(call=message, operations=parts)))

    def withdraw(self, operation_id: str) -> None:
        self._requests.put(pb.ExecuteRequest(withdraw=operation_id))

    def say_nothing(self) -> None:
        self._requests.put(pb.ExecuteRequest())

    def end(self) -> None:
        self._requests.put(None)

    def answer(self) -> pb.ExecuteResponse:
        response: pb.ExecuteResponse = next(self.rpc)
        return response

    def told(self) -> tuple[str, list[str]]:
        """Id and every member's outcome of the next answer: "value", or the error's code."""
        response = self.answer()
        assert response.WhichOneof("outcome") == "outcomes", response.error
        each = [it.result for it in response.outcomes.members]
        assert len(each) == SIZE
        return response.outcomes.operation_id, [
            name_of(it.error) if it.WhichOneof("outcome") == "error" else "value" for it in each
        ]

    def rest(self) -> list[pb.ExecuteResponse]:
        """Every answer until the stream has ended, well."""
        answers = list(self.rpc)
        assert self.rpc.code() is grpc.StatusCode.OK
        return answers


def name_of(error: error_pb2.Error) -> str:
    return error_pb2.ErrorCode.Name(error.code).removeprefix("ERROR_CODE_")


VALUES = ["value"] * SIZE


class Held:
    """A rank whose lane does nothing else while the block runs."""

    def __init__(self, stage: Stage, rank: int) -> None:
        generation = stage.gang.ranks[rank]._generation
        group = generation.get("world") if generation else None
        assert group is not None
        assert group.membership is not None
        self._go = threading.Event()
        group.membership.lane.add(self._hold)

    def _hold(self) -> None:
        self._go.wait(PATIENCE_S)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        self._go.set()


def sequences(stage: Stage) -> list[int]:
    return [rank.group("world").sequence for rank in stage.gang.ranks]


def is_healthy(stage: Stage) -> bool:
    return stage.gang.run(BARRIER, [Barrier()] * SIZE) == [None] * SIZE


def pending(stage: Stage, rank: int) -> int:
    return stage.gang.ranks[rank].describe().pending


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
    assert [stream.told() for _ in ids] == [(it, VALUES) for it in ids]
    assert [stage.gang.floats(it) for it in refs] == [[3.0**9] * 2] * SIZE
    assert sequences(stage) == [12] * SIZE


@pytest.mark.parametrize("at", [0, 1])
def test_the_next_is_begun_while_one_is_under_way(stage: Stage, at: int) -> None:
    stream = Stream(stage, at)
    with Held(stage, 2):
        for operation_id in "abc":
            stream.call(operation_id=operation_id)
        # The leader's lane waits for the first; the others' have come to rank 1 only when they are its turn.
        until(lambda: pending(stage, 1) == 1)
    assert [stream.told() for _ in "abc"] == [(it, VALUES) for it in "abc"]


def test_what_ends_first_is_answered_in_its_turn(stage: Stage) -> None:
    stream = Stream(stage)
    with Held(stage, 2):
        stream.call(operation_id="first")
        until(lambda: pending(stage, 1) == 1)
        stream.call([], operation_id="wrong")
        stream.call(operation_id="late", timeout_ms=1)
        stream.call(operation_id="last")
        # What the last is waiting behind has failed already, and is not told.
        until(lambda: [it.operation_id for it in led(stage)] == ["first", "last"])
    assert stream.told() == ("first", VALUES)
    assert name_of(stream.answer().error) == "INVALID_ARGUMENT"
    assert stream.told() == ("late", ["DEADLINE_EXCEEDED"] * SIZE)
    assert stream.told() == ("last", VALUES)


@pytest.mark.parametrize("at", [0, 1])
def test_a_call_in_admission_is_withdrawn_and_the_next_goes_on(stage: Stage, at: int) -> None:
    stream = Stream(stage, at)
    with Held(stage, 2):
        stream.call(operation_id="left")
        stream.call(operation_id="kept")
        until(lambda: pending(stage, 1) == 1)
        stream.withdraw("left")
        # The leader's lane is free for the next, though rank 2 has not told of the first.
        until(lambda: [it.operation_id for it in led(stage) if it.own] == ["left", "kept"])
    assert stream.told() == ("left", ["CANCELLED"] * SIZE)
    assert stream.told() == ("kept", VALUES)


def led(stage: Stage) -> list[Any]:
    return list(stage.gang.ranks[0].gang_calls._led.values())


@pytest.mark.parametrize("at", [0, 1])
def test_a_call_behind_another_is_withdrawn_and_nobody_was_asked(stage: Stage, at: int) -> None:
    stream = Stream(stage, at)
    with Held(stage, 0):
        stream.call(operation_id="kept")
        stream.call(operation_id="left")
        until(lambda: [it.operation_id for it in led(stage)] == ["kept", "left"])
        stream.withdraw("left")
        until(lambda: [it.operation_id for it in led(stage)] == ["kept"])
    assert stream.told() == ("kept", VALUES)
    assert stream.told() == ("left", ["CANCELLED"] * SIZE)
    assert sequences(stage) == [1] * SIZE


def test_withdrawing_what_is_not_under_way_changes_nothing(stage: Stage) -> None:
    stream = Stream(stage)
    stream.withdraw("unheard-of")
    stream.call(operation_id="done")
    assert stream.told() == ("done", VALUES)
    stream.withdraw("done")
    stream.call(operation_id="next")
    assert stream.told() == ("next", VALUES)
    stream.end()
    assert stream.rest() == []


@pytest.mark.parametrize("at", [0, 1])
def test_hanging_up_withdraws_all_that_was_begun(stage: Stage, at: int) -> None:
    stream = Stream(stage, at)
    with Held(stage, 2):
        for operation_id in "abc":
            stream.call(operation_id=operation_id)
        until(lambda: len(led(stage)) == 3 and pending(stage, 1) == 1)
        stream.rpc.cancel()
        until(lambda: not pending(stage, 0) and not pending(stage, 1))
    until(lambda: not led(stage) and not stage.streams(at))
    assert is_healthy(stage)
    # None of them has run.
    assert sequences(stage) == [1] * SIZE


def test_the_end_of_requests_is_no_hanging_up(stage: Stage) -> None:
    stream = Stream(stage)
    with Held(stage, 2):
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
    monkeypatch.setattr(executing, "MAX_UNDER_WAY", 4)
    stream = Stream(stage)
    ids = [str(number) for number in range(20)]
    with Held(stage, 0):
        for operation_id in ids:
            stream.call(operation_id=operation_id)
        until(lambda: len(led(stage)) == 4)
    assert [stream.told() for _ in ids] == [(it, VALUES) for it in ids]


def test_hanging_up_with_more_sent_than_may_be_under_way(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executing, "MAX_UNDER_WAY", 2)
    stream = Stream(stage)
    with Held(stage, 0):
        for number in range(6):
            stream.call(operation_id=str(number))
        until(lambda: len(led(stage)) == 2)
        stream.rpc.cancel()
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
        assert it.told()[1] == VALUES
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
    assert fourth.told() == ("room", VALUES)
    second.call(operation_id="on")
    assert second.told() == ("on", VALUES)


def test_a_request_that_says_nothing_is_refused_in_its_turn(stage: Stage) -> None:
    stream = Stream(stage)
    stream.call(operation_id="before")
    stream.say_nothing()
    stream.call(operation_id="after")
    assert stream.told() == ("before", VALUES)
    assert name_of(stream.answer().error) == "INVALID_ARGUMENT"
    assert stream.told() == ("after", VALUES)


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
    assert [stream.told() for _ in range(3)] == [
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
        assert [it.told() for _ in range(25)] == [(f"{id(it)} {number}", VALUES) for number in range(25)]
    assert sequences(stage) == [100] * SIZE


@pytest.mark.parametrize("at", [0, 1])
def test_the_end_of_the_generation_answers_all_and_the_stream_goes_on(stage: Stage, at: int) -> None:
    stream = Stream(stage, at)
    with Held(stage, 2):
        for operation_id in "ab":
            stream.call(operation_id=operation_id)
        until(lambda: len(led(stage)) == 2 and pending(stage, 1) == 1)
        stage.gang.ranks[2].abort(1, "a test")
        assert [stream.told()[1][:2] for _ in "ab"] == [["ABORTED"] * 2] * 2
    stream.call()
    assert name_of(stream.answer().error) == "STALE_GENERATION"
    stage.gang.form()
    stream.call(operation_id="again")
    assert stream.told() == ("again", VALUES)


@pytest.mark.parametrize("at", [0, 1])
def test_a_server_that_stops_answers_what_was_begun_and_ends_the_stream(stage: Stage, at: int) -> None:
    idle, busy = Stream(stage, at), Stream(stage, at)
    idle.call()
    assert idle.told()[1] == VALUES
    with Held(stage, 2):
        for operation_id in "ab":
            busy.call(operation_id=operation_id)
        until(lambda: len(led(stage)) == 2 and pending(stage, 1) == 1)
        stage.gang.ranks[at].close("the rank stops")
        # Had a stream kept it, it would wait for its whole grace, and cancel the stream then.
        stage.servers[at].stop(PATIENCE_S)
    assert idle.rest() == []
    told = busy.rest()
    assert [it.outcomes.operation_id for it in told] == ["a", "b"]
    assert [name_of(it.outcomes.members[at].result.error) for it in told] == ["ABORTED"] * 2
    assert not stage.streams(at)


def test_a_stream_that_comes_when_the_rank_stops_ends_and_begins_nothing(stage: Stage) -> None:
    stage.servers[0]._gang.streams.end()
    stream = Stream(stage)
    stream.call(operation_id="late")
    assert stream.rest() == []
    assert sequences(stage) == [0] * SIZE


def test_no_thread_is_left_of_streams_that_have_ended(stage: Stage) -> None:
    for end in (Stream.end, lambda it: it.rpc.cancel()):
        stream = Stream(stage)
        stream.call()
        assert stream.told()[1] == VALUES
        end(stream)
    until(lambda: not stage.streams())
    until(lambda: not any(it.name == "execute" for it in threading.enumerate()))
