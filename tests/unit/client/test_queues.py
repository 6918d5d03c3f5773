"""How queues are asked for, and how their answers are read."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.client.declared import SCOPE, answer, asked, calls_of, gang

from rankbridge import (
    InvalidArgumentError,
    NameExistsError,
    QueueDescription,
    RankOutOfRangeError,
    UnavailableError,
    from_value,
)
from rankbridge._plan import operations as ops
from rankbridge._plan.queue import MadeQueue
from rankbridge._plan.queue_procedures import dequeuing, making, shutting_down
from rankbridge.errors import Outcome
from rankbridge.v1 import queue_service_pb2 as pb

TOLD = QueueDescription(
    name="q",
    group="tp",
    writer_rank_in_group=1,
    reader_ranks_in_group=(0, 2),
    shared_memory_ranks_in_group=(0,),
    max_chunk_bytes=10,
    max_chunks=3,
)
MADE = MadeQueue(TOLD, (3, 0, 2))


def test_a_queue_is_asked_for_with_what_is_said_of_it() -> None:
    call = ops.new_queue(
        SCOPE,
        "q",
        writer_rank_in_group=1,
        reader_ranks_in_group=iter((0, 2)),
        max_chunk_bytes=10,
        max_chunks=3,
        group="tp",
    )
    request = asked(call, pb.NewQueueRequest)
    assert (request.name, request.call.group, request.call.session_id) == ("q", "tp", "mine")
    assert (request.writer_rank_in_group, list(request.reader_ranks_in_group)) == (1, [0, 2])
    assert (request.max_chunk_bytes, request.max_chunks) == (10, 3)
    assert call.path == "/rankbridge.v1.QueueService/NewQueue"
    usual = asked(ops.new_queue(SCOPE, "q"), pb.NewQueueRequest)
    assert (usual.max_chunk_bytes, usual.max_chunks, list(usual.reader_ranks_in_group)) == (0, 0, [])
    proto = pb.Queue(
        name="q",
        group="tp",
        writer_rank_in_group=1,
        reader_ranks_in_group=[0, 2],
        shared_memory_ranks_in_group=[0],
        max_chunk_bytes=10,
        max_chunks=3,
    )
    assert call.result(pb.NewQueueResponse(queue=proto).SerializeToString()) == TOLD
    assert (
        ops.queues(SCOPE).result(pb.ListQueuesResponse(queues=[proto] * 2).SerializeToString()) == [TOLD] * 2
    )


@pytest.mark.parametrize(
    "wrong",
    [
        {"reader_ranks_in_group": []},
        {"max_chunks": 0},
        {"max_chunks": 2**32},
        {"max_chunk_bytes": 0},
        {"max_chunk_bytes": 2**64},
        {"writer_rank_in_group": -1},
        {"reader_ranks_in_group": [-1]},
    ],
)
def test_what_would_mean_something_else_on_the_wire_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgumentError):
        ops.new_queue(SCOPE, "q", **wrong)


def test_values_are_written_and_read_in_the_queues_own_group() -> None:
    call = ops.enqueue(SCOPE, TOLD, {"a": None}, timeout=0.5)
    request = asked(call, pb.EnqueueRequest)
    assert (request.queue, request.call.group, request.call.timeout_ms) == ("q", "tp", 500)
    assert from_value(request.value) == {"a": None}
    assert answer(call, pb.EnqueueResponse, None) is None
    by_name = ops.dequeue(SCOPE, "q", operation_id="once")
    read = asked(by_name, pb.DequeueRequest)
    assert (read.queue, read.call.group, read.call.operation_id) == ("q", "world", "once")
    assert answer(by_name, pb.DequeueResponse, [1, (2,)]) == [1, (2,)]
    ended = asked(ops.shut_down_queue(SCOPE, "q", group="dp"), pb.ShutDownQueueRequest)
    assert (ended.queue, ended.call.group) == ("q", "dp")


def test_a_gang_does_not_write_or_read_as_one() -> None:
    for operation in ("enqueue", "dequeue"):
        with pytest.raises(InvalidArgumentError, match="operation of one rank"):
            calls_of(operation, "q")


def test_the_only_reader_need_not_be_named() -> None:
    one = MadeQueue(
        QueueDescription(
            name="q",
            group="tp",
            writer_rank_in_group=1,
            reader_ranks_in_group=(2,),
            shared_memory_ranks_in_group=(),
            max_chunk_bytes=1,
            max_chunks=1,
        ),
        (3, 0, 2),
    )
    assert dequeuing(gang(), one, None, {}).rank == 2
    assert dequeuing(gang(), MADE, 0, {}).rank == 3
    with pytest.raises(InvalidArgumentError, match="which reader"):
        dequeuing(gang(), MADE, None, {})
    with pytest.raises(RankOutOfRangeError):
        dequeuing(gang(), MADE, 3, {})
    assert (MADE.writer, MADE.readers) == (0, (3, 2))


def test_what_may_have_been_made_is_ended_if_not_all_have_made_it() -> None:
    procedure = making(gang(), "q", {"max_chunks": 2})
    calls = next(procedure)
    assert len({call.operation_id for call in calls}) == 1
    ends = procedure.send(
        [
            Outcome(rank=0, value=TOLD),
            Outcome(rank=1, error=NameExistsError("there is one")),
            Outcome(rank=2, error=UnavailableError("gone", indefinite=True)),
            Outcome(rank=3, error=UnavailableError("not there")),
        ]
    )
    assert [(call.kind, call.rank) for call in ends] == [("shut_down_queue", 0), ("shut_down_queue", 2)]
    with pytest.raises(NameExistsError):
        procedure.send([Outcome(rank=0, value=TOLD), Outcome(rank=2, error=UnavailableError("gone"))])


def test_a_member_that_cannot_be_reached_is_told_when_a_queue_ends() -> None:
    procedure = shutting_down(gang(), MADE, None, None)
    assert [call.rank for call in next(procedure)] == [3, 0, 2]
    with pytest.raises(UnavailableError):
        procedure.send([Outcome(rank=3, error=UnavailableError("gone")), *[Outcome(rank=0, value=TOLD)] * 2])
