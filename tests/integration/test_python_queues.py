"""Message queues through the Python client, on real ranks."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from tests.support.gangs import RunningGang
from tests.unit.client.fronts import connected, coordinator

import rankbridge
from rankbridge._plan import vllm


@pytest.fixture(params=["sync", "async"])
def front(request: pytest.FixtureRequest) -> str:
    """Name of each front in turn."""
    name: str = request.param
    return name


@pytest.fixture(params=["fake4", "gloo4"])
def running(request: pytest.FixtureRequest) -> RunningGang:
    """A gang of four real ranks, on each backend in turn."""
    gang: RunningGang = request.getfixturevalue(request.param)
    return gang


@pytest.fixture
def gang(front: str, running: RunningGang) -> Iterator[Any]:
    """The gang, connected to by each front in turn. Its queues are ended."""
    with connected(front, running.description, timeout=60) as gang:
        yield gang
        for rank in gang:
            for queue in rank.queues():
                rank.shut_down_queue(queue)


@pytest.fixture
def name() -> str:
    """A name that nothing else has."""
    return uuid.uuid4().hex


VALUES = [None, {"k": [1, 2**90, (b"x", 0.5)]}, "x" * 100_000]


def test_every_reader_gets_every_value_in_order(gang: Any, name: str) -> None:
    queue = gang.new_queue(name, writer_rank_in_group=1, max_chunks=8)
    assert (queue.name, queue.group, queue.ranks) == (name, "world", (0, 1, 2, 3))
    assert (queue.writer_rank_in_group, queue.reader_ranks_in_group) == (1, (0, 2, 3))
    assert (queue.description.max_chunk_bytes, queue.description.max_chunks) == (4 * 1024**2, 8)
    assert [rank.queues() for rank in gang] == [[queue.description]] * 4
    for value in VALUES:
        assert queue.enqueue(value) is None
    for reader in (3, 0, 2):
        assert [queue.dequeue(reader) for _ in VALUES] == VALUES
    assert queue.broadcast_object(VALUES) == [VALUES] * 3
    queue.enqueue("first")
    assert queue.broadcast_object("second") == ["first"] * 3
    assert [queue.dequeue(reader) for reader in (0, 2, 3)] == ["second"] * 3


def test_ranks_are_counted_in_the_group_and_readers_are_named(gang: Any, name: str) -> None:
    group = gang.new_group(f"three-{name}", [3, 0, 2])
    try:
        queue = gang.new_queue(
            name, writer_rank_in_group=2, reader_ranks_in_group=[0], max_chunk_bytes=100, group=group
        )
        assert (queue.group, queue.reader_ranks_in_group) == (group.name, (0,))
        queue.enqueue([2])
        assert queue.dequeue() == [2]
        gang[2].enqueue(name, "by name", group=group)
        assert gang[3].dequeue(queue) == "by name"
        gang[2].enqueue(queue.description, "y" * 1000)
        assert gang[3].dequeue(name, group=group.name) == "y" * 1000
        assert gang[1].queues() == []
        assert gang[0].queues() == [queue.description], "who neither writes nor reads knows it all the same"
        with pytest.raises(rankbridge.InvalidArgumentError, match="rank_in_group 2"):
            gang[0].enqueue(queue, 1)
        with pytest.raises(rankbridge.InvalidArgumentError):
            queue.dequeue(1)
    finally:
        gang.destroy_group(group)
    with pytest.raises(rankbridge.UnknownGroupError):
        queue.enqueue(3)


def test_a_queue_is_found_by_its_name(gang: Any, name: str, front: str, running: RunningGang) -> None:
    made = gang.new_queue(name, reader_ranks_in_group=[2])
    with connected(front, running.description, session=False) as other:
        found = other.queue(name)
        assert found.description == made.description
        found.enqueue("from another controller")
    assert made.dequeue() == "from another controller"
    with pytest.raises(rankbridge.UnknownQueueError, match="no member of group 'world'"):
        gang.queue(name + "2")


@pytest.mark.sampled
def test_who_does_not_come_is_named_after_the_timeout_and_nothing_is_lost(gang: Any, name: str) -> None:
    queue = gang.new_queue(name, max_chunks=2)
    with pytest.raises(rankbridge.PeerMissingError) as caught:
        queue.dequeue(2, timeout=1.0)
    assert [(it.rank, it.state) for it in caught.value.ranks] == [(0, "missing")]
    queue.enqueue(0)
    queue.enqueue(1)
    assert [queue.dequeue(reader) for reader in (1, 3)] == [0, 0]
    with pytest.raises(rankbridge.PeerMissingError) as caught:
        queue.enqueue(2, timeout=1.0)
    assert [(it.rank, it.state) for it in caught.value.ranks] == [(2, "missing")]
    assert not caught.value.indefinite
    assert [queue.dequeue(2) for _ in range(2)] == [0, 1]
    assert [queue.dequeue(reader) for reader in (1, 3)] == [1, 1]
    assert queue.broadcast_object("next") == ["next"] * 3


def test_operation_ids_write_and_take_once(gang: Any, name: str) -> None:
    queue = gang.new_queue(name, reader_ranks_in_group=[1])
    wrote, read = uuid.uuid4().hex, uuid.uuid4().hex
    for _ in range(2):
        queue.enqueue("once", operation_id=wrote)
    queue.enqueue("twice")
    assert [queue.dequeue(operation_id=read) for _ in range(2)] == ["once"] * 2
    assert queue.dequeue() == "twice"
    waiting = uuid.uuid4().hex
    gang[1].submit("dequeue", queue, operation_id=waiting)
    gang[0].submit("enqueue", queue, {"a": 1}, operation_id=waiting)
    assert gang[1].await_operation(waiting) == {"a": 1}
    assert gang[0].await_operation(waiting) is None


def test_a_queue_that_is_shut_down_wakes_who_waits(gang: Any, name: str) -> None:
    queue = gang.new_queue(name, reader_ranks_in_group=[1, 2])
    waiting = gang[1].start("dequeue", queue)
    queue.shut_down(0)
    assert isinstance(waiting.exception(), rankbridge.AbortedError)
    with pytest.raises(rankbridge.UnknownQueueError):
        queue.shut_down(0)
    with pytest.raises(rankbridge.UnknownQueueError):
        queue.enqueue(1)
    assert queue.shut_down() is None
    assert queue.shut_down() is None
    assert [rank.queues() for rank in gang] == [[]] * 4
    again = gang.new_queue(name)
    assert again.broadcast_object(1) == [1] * 3
    assert gang[3].shut_down_queue(again) == again.description


def test_what_cannot_be_made_is_made_nowhere(gang: Any, name: str) -> None:
    gang.new_queue(name)
    with pytest.raises(rankbridge.NameExistsError):
        gang.new_queue(name)
    assert [len(rank.queues()) for rank in gang] == [1] * 4
    for options, error in (
        ({"writer_rank_in_group": 4}, rankbridge.RankOutOfRangeError),
        ({"reader_ranks_in_group": [0]}, rankbridge.InvalidArgumentError),
        ({"reader_ranks_in_group": [1, 1]}, rankbridge.InvalidArgumentError),
        ({"max_chunks": 1025}, rankbridge.InvalidArgumentError),
    ):
        with pytest.raises(error):
            gang.new_queue(f"{name}-2", **options)
    one_alone = gang[3].start("new_queue", f"{name}-2", timeout=1.0, operation_id=uuid.uuid4().hex)
    assert isinstance(one_alone.exception(), rankbridge.PeerMissingError)
    assert [len(rank.queues()) for rank in gang] == [1] * 4


def test_each_rank_makes_a_queue_by_itself(gang: Any, name: str) -> None:
    begun = [rank.start("new_queue", name, reader_ranks_in_group=[3]) for rank in gang]
    queues = [it.result() for it in begun]
    assert [rank.queues() for rank in gang] == [[queue] for queue in queues]
    gang[0].enqueue(queues[0], "hello")
    assert gang[3].dequeue(queues[3]) == "hello"


def test_queues_have_vllms_names(gang: Any) -> None:
    world = coordinator(gang, [range(4)])
    (queue,) = {
        it.name: it for it in world.create_mq_broadcaster(2, max_chunk_bytes=1 << 10, max_chunks=3)
    }.values()
    assert (queue.writer_rank_in_group, queue.reader_ranks_in_group) == (2, (0, 1, 3))
    assert (queue.description.max_chunk_bytes, queue.description.max_chunks) == (1024, 3)
    queues = world.create_single_reader_mq_broadcasters(1, operation_id=uuid.uuid4().hex)
    ends = [it if it is None else (it.writer_rank_in_group, it.reader_ranks_in_group) for it in queues]
    assert ends == [
        (0, (1,)),
        None,
        (2, (1,)),
        (3, (1,)),
    ]
    for place in (0, 2, 3):
        queues[place].enqueue(place)
    assert [queues[place].dequeue() for place in (3, 2, 0)] == [3, 2, 0]
    with pytest.raises(rankbridge.RankOutOfRangeError):
        world.create_single_reader_mq_broadcasters(4)
    world.destroy()


def test_queues_to_one_reader_are_all_made_or_none(gang: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    world = coordinator(gang, [range(4)])
    monkeypatch.setattr(vllm, "new_id", lambda: "taken")
    gang.new_queue("mq-taken/2", group=world.groups[0])
    with pytest.raises(rankbridge.NameExistsError):
        world.create_single_reader_mq_broadcasters()
    assert [[queue.name for queue in rank.queues()] for rank in gang] == [["mq-taken/2"]] * 4
    world.destroy()
