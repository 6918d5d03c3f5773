"""Queues between ranks of one process, on the fake backend: in shared memory, by the backend, and both."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from tests.support.local_gang import LocalGang, a_call
from tests.support.proc import open_files
from tests.support.tasks import error_of
from tests.support.waiting import until

from rankbridge_server.core.errors import BridgeError, ErrorCode, Failure, Phase, RankState
from rankbridge_server.core.groups.operations import DestroyGroup, NewGroup, destroy_group, new_group
from rankbridge_server.core.operations.agreements import Barrier, barrier
from rankbridge_server.core.operations.operation import Operation
from rankbridge_server.core.operations.outcome import Packed
from rankbridge_server.core.programs.plan import coalesce
from rankbridge_server.core.programs.program import Coalesce
from rankbridge_server.core.queues import connection, operations, reading, sharing, writing
from rankbridge_server.core.queues.connection import Connection
from rankbridge_server.core.queues.operations import Dequeue, Enqueue, NewQueue, dequeue, enqueue, new_queue
from rankbridge_server.core.queues.view import QueueView
from rankbridge_server.core.task import Task
from rankbridge_server.core.waker import Waker

PATIENCE_S = 30.0
SHORT_S = 0.15
HOSTS = {"near": ["a", "a", "a"], "far": ["a", "b", "c"], "mixed": ["a", "a", "b"]}
SHARED = {"near": (1, 2), "far": (), "mixed": (1,)}
EMPTY = Packed(b"")


@pytest.fixture(params=HOSTS)
def where(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def gang(where: str) -> Iterator[LocalGang]:
    it = LocalGang(3, hosts=HOSTS[where])
    yield it
    for rank in it.ranks:
        rank.close("the test is over")
    until(lambda: not queue_threads())


def queue_threads() -> list[str]:
    return [it.name for it in threading.enumerate() if it.name.startswith("queue:")]


def begin(gang: LocalGang, rank: int, operation: Operation[Any], args: Any, **call: Any) -> Task:
    call.setdefault("timeout", PATIENCE_S)
    return gang.ranks[rank].submit(operation, args, a_call(**call))


def failure(task: Task) -> Failure:
    with pytest.raises(BridgeError) as raised:
        task.wait()
    return raised.value.failure


def refused(gang: LocalGang, rank: int, operation: Operation[Any], args: Any, **call: Any) -> Failure:
    with pytest.raises(BridgeError) as raised:
        begin(gang, rank, operation, args, **call)
    return raised.value.failure


def make(gang: LocalGang, name: str = "q", writer: int = 0, **args: Any) -> QueueView:
    views = gang.run(new_queue, [NewQueue(name, writer, **args)] * len(gang.ranks), timeout=PATIENCE_S)
    assert isinstance(views[0], QueueView)
    assert views == [views[0]] * len(gang.ranks)
    return views[0]


def put(gang: LocalGang, data: bytes, rank: int = 0, **call: Any) -> Task:
    return begin(gang, rank, enqueue, Enqueue("q", Packed(data)), **call)


def get(gang: LocalGang, rank: int, **call: Any) -> Task:
    return begin(gang, rank, dequeue, Dequeue("q"), **call)


def got(gang: LocalGang, rank: int) -> bytes:
    outcome = get(gang, rank).wait()
    assert isinstance(outcome, Packed)
    return outcome.data


def unread(gang: LocalGang) -> dict[int, int]:
    """How many values each reader has not read, as far as the writer knows."""
    membership = gang.ranks[0]._current(0).get("world").membership  # type: ignore[union-attr]
    assert membership is not None
    end = membership.queues.find("q")
    assert isinstance(end, writing.WritingEnd)
    return {it.reader: it.unread for it in end._outlets}


def waits(task: Task) -> None:
    """Return when the task has come as far as it can by itself."""
    until(lambda: task.phase is Phase.ADMISSION)
    assert not task.done


def assert_true(it: bool) -> None:
    assert it


def test_a_queue_tells_what_it_is(gang: LocalGang, where: str) -> None:
    usual = make(gang, "usual", 0)
    assert usual == QueueView("usual", "world", 0, (1, 2), SHARED[where], 4_194_304, 6)
    small = make(gang, "some", 2, reader_ranks_in_group=(0,), max_chunk_bytes=10, max_chunks=2)
    assert (small.writer, small.readers, small.max_chunk_bytes, small.max_chunks) == (2, (0,), 10, 2)
    for rank in gang.ranks:
        assert rank.queues() == [small, usual]


def test_every_reader_reads_every_value_in_order(gang: LocalGang) -> None:
    make(gang, max_chunk_bytes=1000, max_chunks=4)
    values = [os.urandom(size) for size in (5, 0, 999, 1000, 1001, 0, 100_000, 1, 1000, 1001, 2, 3)] * 3
    tasks = [put(gang, value) for value in values]
    with ThreadPoolExecutor(2) as pool:
        readers = [pool.submit(lambda at: [got(gang, at) for _ in values], at) for at in (1, 2)]
        assert [reader.result() for reader in readers] == [values, values]
    assert [task.wait() for task in tasks] == [None] * len(values)


def test_calls_that_wait_are_served_in_the_order_in_which_they_came(gang: LocalGang) -> None:
    make(gang)
    tasks = [get(gang, 1) for _ in range(20)]
    for number in range(20):
        put(gang, b"%d" % number).wait()
        assert got(gang, 2) == b"%d" % number
    assert [task.wait() for task in tasks] == [Packed(b"%d" % number) for number in range(20)]


def test_a_full_queue_says_who_did_not_read(gang: LocalGang) -> None:
    make(gang)
    for number in range(6):
        put(gang, b"%d" % number).wait()
    for number in range(3):
        assert got(gang, 1) == b"%d" % number
    # The writer hears of what was read after the reader has it.
    until(lambda: unread(gang) == {1: 3, 2: 6})
    it = failure(put(gang, b"late", timeout=SHORT_S))
    assert (it.code, it.indefinite, it.phase) == (ErrorCode.PEER_MISSING, False, Phase.ADMISSION)
    assert (it.expected, it.got) == ("fewer than 6 unread", "6 unread")
    assert [(detail.rank, detail.rank_in_group, detail.state) for detail in it.ranks] == [
        (2, 2, RankState.MISSING)
    ]
    assert [got(gang, 2) for _ in range(6)] == [b"%d" % number for number in range(6)]
    assert [got(gang, 1) for _ in range(3)] == [b"3", b"4", b"5"]
    for reader in (1, 2):
        assert failure(get(gang, reader, timeout=SHORT_S)).code is ErrorCode.PEER_MISSING


def test_a_full_queue_takes_more_when_all_have_read(gang: LocalGang) -> None:
    make(gang, max_chunks=1)
    put(gang, b"0").wait()
    more = put(gang, b"1")
    waits(more)
    assert got(gang, 1) == b"0"
    assert not more.done
    assert got(gang, 2) == b"0"
    assert more.wait() is None
    assert [got(gang, reader) for reader in (1, 2)] == [b"1", b"1"]


def test_an_empty_queue_says_who_did_not_write(gang: LocalGang) -> None:
    make(gang)
    put(gang, b"0").wait()
    assert got(gang, 1) == b"0"
    it = failure(get(gang, 1, timeout=SHORT_S))
    assert (it.code, it.indefinite) == (ErrorCode.PEER_MISSING, False)
    assert [(detail.rank, detail.state) for detail in it.ranks] == [(0, RankState.MISSING)]
    put(gang, b"1").wait()
    assert [got(gang, reader) for reader in (1, 2, 2)] == [b"1", b"0", b"1"]


def test_each_call_gives_up_when_its_own_time_is_over(gang: LocalGang) -> None:
    make(gang, max_chunks=1)
    put(gang, b"0").wait()
    patient, hasty = put(gang, b"1"), put(gang, b"2", timeout=SHORT_S)
    assert failure(hasty).code is ErrorCode.PEER_MISSING
    assert [got(gang, reader) for reader in (1, 2)] == [b"0"] * 2
    assert patient.wait() is None
    assert [got(gang, reader) for reader in (1, 2)] == [b"1"] * 2
    patient, hasty = get(gang, 1), get(gang, 1, timeout=SHORT_S)
    assert failure(hasty).code is ErrorCode.PEER_MISSING
    put(gang, b"3").wait()
    assert patient.wait() == Packed(b"3")


def test_a_repeated_id_writes_and_reads_once(gang: LocalGang) -> None:
    make(gang)
    assert put(gang, b"0", operation_id="a") is put(gang, b"0", operation_id="a")
    put(gang, b"1").wait()
    first = get(gang, 1, operation_id="b")
    assert first is get(gang, 1, operation_id="b")
    assert first.wait() == Packed(b"0")
    assert get(gang, 1, operation_id="b").wait() == Packed(b"0")
    assert got(gang, 1) == b"1"
    assert gang.ranks[1].find("b") is first


def test_what_was_withdrawn_is_neither_written_nor_read(gang: LocalGang) -> None:
    make(gang, max_chunks=1)
    put(gang, b"0").wait()
    write = put(gang, b"never")
    waits(write)
    write.cancel("the test says so")
    assert write.cancelled()
    assert failure(write).code is ErrorCode.CANCELLED
    assert [got(gang, reader) for reader in (1, 2)] == [b"0"] * 2
    read = get(gang, 1)
    waits(read)
    read.cancel("the test says so")
    assert read.cancelled()
    put(gang, b"1").wait()
    assert [got(gang, reader) for reader in (1, 2)] == [b"1"] * 2


def test_a_closed_session_withdraws_its_calls(gang: LocalGang) -> None:
    make(gang)
    gang.ranks[1].open_session("s", 0)
    read = get(gang, 1, session_id="s")
    waits(read)
    gang.ranks[1].close_session("s")
    assert failure(read).code is ErrorCode.CANCELLED
    put(gang, b"0").wait()
    assert got(gang, 1) == b"0"


def test_calls_are_counted_and_queues_are_not(gang: LocalGang) -> None:
    make(gang)
    put(gang, b"0").wait()
    assert [rank.describe().pending for rank in gang.ranks] == [0, 0, 0]
    assert got(gang, 1) == b"0"
    read = get(gang, 1)
    assert [rank.describe().pending for rank in gang.ranks] == [0, 1, 0]
    put(gang, b"1").wait()
    read.wait()
    assert [rank.describe().pending for rank in gang.ranks] == [0, 0, 0]


def test_a_reader_that_ends_the_queue_wakes_its_own_and_stops_the_writer(gang: LocalGang) -> None:
    view = make(gang, max_chunks=1)
    reads = [get(gang, 1) for _ in range(2)]
    for read in reads:
        waits(read)
    assert gang.ranks[1].shut_down_queue("", "q") == view
    for read in reads:
        it = failure(read)
        assert (it.code, it.indefinite) == (ErrorCode.ABORTED, False)
    assert refused(gang, 1, dequeue, Dequeue("q")).code is ErrorCode.UNKNOWN_QUEUE
    assert gang.ranks[1].queues() == []
    # It waits for rank 2 too, so that it is still there when the word comes.
    stopped = [put(gang, b"%d" % number) for number in range(3)][-1]
    it = failure(stopped)
    assert (it.code, it.indefinite) == (ErrorCode.ABORTED, False)
    assert [(detail.rank, detail.state) for detail in it.ranks] == [(1, RankState.FAILED)]
    assert failure(put(gang, b"x")).code is ErrorCode.ABORTED
    assert gang.ranks[0].queues() == [view]


def test_a_writer_that_waits_learns_at_once_that_its_reader_ended_the_queue(gang: LocalGang) -> None:
    make(gang, max_chunks=1)
    put(gang, b"0").wait()
    write = put(gang, b"1")
    waits(write)
    gang.ranks[2].shut_down_queue("", "q")
    it = failure(write)
    assert (it.code, [detail.rank for detail in it.ranks]) == (ErrorCode.ABORTED, [2])
    assert got(gang, 1) == b"0"
    assert failure(get(gang, 1, timeout=SHORT_S)).code is ErrorCode.PEER_MISSING


def test_what_was_written_is_read_after_the_writer_ended_the_queue(gang: LocalGang) -> None:
    make(gang, max_chunk_bytes=10, max_chunks=3)
    values = [b"short", b"long" * 10, b""]
    for value in values:
        put(gang, value).wait()
    write = put(gang, b"never")
    waits(write)
    gang.ranks[0].shut_down_queue("world", "q")
    assert failure(write).code is ErrorCode.ABORTED
    assert refused(gang, 0, enqueue, Enqueue("q", EMPTY)).code is ErrorCode.UNKNOWN_QUEUE
    for reader in (1, 2):
        assert [got(gang, reader) for _ in values] == values
        for _ in range(2):
            it = failure(get(gang, reader))
            assert (it.code, it.indefinite) == (ErrorCode.ABORTED, False)
            assert "rank 0" in it.message
        assert [view.name for view in gang.ranks[reader].queues()] == ["q"]
    for reader in (1, 2):
        gang.ranks[reader].shut_down_queue("", "q")
    until(lambda: not queue_threads())


def test_readers_that_wait_learn_at_once_that_the_writer_ended_the_queue(gang: LocalGang) -> None:
    make(gang)
    reads = [get(gang, reader) for reader in (1, 1, 2)]
    for read in reads:
        waits(read)
    gang.ranks[0].shut_down_queue("", "q")
    assert [failure(read).code for read in reads] == [ErrorCode.ABORTED] * 3


def test_a_name_is_free_again_when_all_ended_the_queue(gang: LocalGang) -> None:
    make(gang)
    put(gang, b"old").wait()
    assert got(gang, 1) == b"old"
    for rank in (0, 1, 2):
        gang.ranks[rank].shut_down_queue("", "q")
    make(gang, writer=2)
    put(gang, b"new", rank=2).wait()
    assert [got(gang, reader) for reader in (0, 1)] == [b"new"] * 2


def test_a_name_that_is_taken_anywhere_is_refused_everywhere(gang: LocalGang) -> None:
    make(gang)
    args = NewQueue("q", 0)
    assert refused(gang, 0, new_queue, args).code is ErrorCode.NAME_EXISTS
    for rank in (0, 2):
        gang.ranks[rank].shut_down_queue("", "q")
    # It passes the check of ranks 0 and 2; that of rank 1 is circumvented.
    held = gang.ranks[1].queues()
    membership = gang.ranks[1]._current(0).get("world").membership  # type: ignore[union-attr]
    assert membership is not None
    table, checked = membership.queues, threading.Event()
    end = table._ends.pop("q")
    # Its lane looks again before it arrives.
    membership.lane.add(lambda: until(checked.is_set))
    tasks = [begin(gang, rank, new_queue, args) for rank in range(2)]
    table.add(end)
    checked.set()
    tasks.append(begin(gang, 2, new_queue, args))
    for task in tasks:
        it = failure(task)
        assert (it.code, [detail.rank for detail in it.ranks]) == (ErrorCode.NAME_EXISTS, [1])
    assert gang.ranks[1].queues() == held
    assert gang.ranks[0].queues() == []


def test_members_must_mean_the_same_queue(gang: LocalGang) -> None:
    tasks = [begin(gang, rank, new_queue, NewQueue("q", 0, max_chunks=1 + rank)) for rank in range(3)]
    assert [failure(task).code for task in tasks] == [ErrorCode.MISMATCH] * 3
    # Nobody waits for it, so that it is not withdrawn if its lane begins late.
    error = error_of(begin(gang, 0, new_queue, NewQueue("q", 0), timeout=SHORT_S), PATIENCE_S)
    assert error is not None
    it = error.failure
    assert (it.code, [detail.rank for detail in it.ranks if detail.state is RankState.MISSING]) == (
        ErrorCode.PEER_MISSING,
        [1, 2],
    )
    make(gang)


@pytest.mark.parametrize(
    ("operation", "args", "code"),
    [
        (new_queue, NewQueue("", 0), ErrorCode.INVALID_ARGUMENT),
        (new_queue, NewQueue("x" * 129, 0), ErrorCode.INVALID_ARGUMENT),
        (new_queue, NewQueue("new", 3), ErrorCode.RANK_OUT_OF_RANGE),
        (new_queue, NewQueue("new", 0, (1, 3)), ErrorCode.RANK_OUT_OF_RANGE),
        (new_queue, NewQueue("new", 0, (0, 1)), ErrorCode.INVALID_ARGUMENT),
        (new_queue, NewQueue("new", 0, (1, 1)), ErrorCode.INVALID_ARGUMENT),
        (new_queue, NewQueue("new", 0, max_chunks=1025), ErrorCode.INVALID_ARGUMENT),
        (new_queue, NewQueue("new", 0, max_chunk_bytes=2**27 + 1), ErrorCode.INVALID_ARGUMENT),
        (new_queue, NewQueue("new", 0, max_chunk_bytes=2**27, max_chunks=33), ErrorCode.INVALID_ARGUMENT),
        (enqueue, Enqueue("none", EMPTY), ErrorCode.UNKNOWN_QUEUE),
        (dequeue, Dequeue("none"), ErrorCode.UNKNOWN_QUEUE),
        (dequeue, Dequeue("q"), ErrorCode.INVALID_ARGUMENT),
        (enqueue, Enqueue("q", Packed(bytes(2**27 + 1))), ErrorCode.RESOURCE_EXHAUSTED),
        (coalesce, Coalesce(((dequeue, Dequeue("q")),)), ErrorCode.INVALID_ARGUMENT),
    ],
)
def test_what_cannot_be_is_refused_at_once(
    gang: LocalGang, operation: Operation[Any], args: Any, code: ErrorCode
) -> None:
    make(gang, reader_ranks_in_group=(1,))
    assert refused(gang, 0, operation, args).code is code


def test_only_the_writer_writes_and_only_readers_read(gang: LocalGang) -> None:
    make(gang, reader_ranks_in_group=(1,))
    for rank, operation, args, expected in (
        (1, enqueue, Enqueue("q", EMPTY), "rank_in_group 0"),
        (2, enqueue, Enqueue("q", EMPTY), "rank_in_group 0"),
        (0, dequeue, Dequeue("q"), "rank_in_group 1"),
        (2, dequeue, Dequeue("q"), "rank_in_group 1"),
    ):
        it = refused(gang, rank, operation, args)
        assert (it.code, it.expected, it.got) == (
            ErrorCode.INVALID_ARGUMENT,
            expected,
            f"rank_in_group {rank}",
        )
    for each in gang.ranks:
        each.shut_down_queue("", "q")
        with pytest.raises(BridgeError) as raised:
            each.shut_down_queue("", "q")
        assert raised.value.failure.code is ErrorCode.UNKNOWN_QUEUE


def test_a_queue_does_not_wait_for_collectives(gang: LocalGang) -> None:
    make(gang)
    waiting = begin(gang, 0, barrier, Barrier())
    put(gang, b"0").wait()
    assert [got(gang, reader) for reader in (1, 2)] == [b"0"] * 2
    assert not waiting.done
    others = [begin(gang, rank, barrier, Barrier()) for rank in (1, 2)]
    assert [task.wait() for task in (waiting, *others)] == [None] * 3


def test_who_waits_fails_with_the_generation(gang: LocalGang) -> None:
    make(gang, max_chunks=1)
    put(gang, b"0").wait()
    tasks = [put(gang, b"1"), get(gang, 2), get(gang, 2)]
    assert tasks[1].wait() == Packed(b"0")
    waits(tasks[0])
    waits(tasks[2])
    gang.ranks[1].abort(1, "the test says so")
    assert [failure(task).code for task in (tasks[0], tasks[2])] == [ErrorCode.ABORTED] * 2
    until(lambda: not queue_threads())
    assert refused(gang, 0, enqueue, Enqueue("q", EMPTY)).code is ErrorCode.STALE_GENERATION
    gang.form()
    assert gang.ranks[0].queues() == []
    assert refused(gang, 0, enqueue, Enqueue("q", EMPTY)).code is ErrorCode.UNKNOWN_QUEUE
    make(gang)
    put(gang, b"new").wait()
    assert got(gang, 1) == b"new"


def test_who_waits_fails_with_the_group(gang: LocalGang) -> None:
    gang.run(new_group, [NewGroup("pair", (1, 2))] * 3)
    gang.run(new_queue, [None, *[NewQueue("q", 0, max_chunks=1)] * 2], group="pair")
    put(gang, b"0", rank=1, group="pair").wait()
    write = put(gang, b"1", rank=1, group="pair")
    assert get(gang, 2, group="pair").wait() == Packed(b"0")
    write.wait()
    assert get(gang, 2, group="pair").wait() == Packed(b"1")
    read = get(gang, 2, group="pair")
    waits(read)
    gang.run(destroy_group, [None, DestroyGroup(), DestroyGroup()], group="pair")
    it = failure(read)
    assert (it.code, it.indefinite, it.place and it.place.group) == (ErrorCode.ABORTED, False, "pair")
    until(lambda: not queue_threads())


def test_ranks_are_named_by_their_place_in_the_gang(gang: LocalGang) -> None:
    gang.run(new_group, [NewGroup("pair", (2, 1))] * 3)
    view, _ = gang.run(new_queue, [None, *[NewQueue("q", 0, max_chunks=1)] * 2], group="pair")
    assert isinstance(view, QueueView)
    assert (view.group, view.writer, view.readers) == ("pair", 0, (1,))
    put(gang, b"0", rank=2, group="pair").wait()
    it = failure(put(gang, b"1", rank=2, group="pair", timeout=SHORT_S))
    assert [(detail.rank, detail.rank_in_group) for detail in it.ranks] == [(1, 1)]
    assert get(gang, 1, group="pair").wait() == Packed(b"0")
    it = failure(get(gang, 1, group="pair", timeout=SHORT_S))
    assert [(detail.rank, detail.rank_in_group) for detail in it.ranks] == [(2, 0)]


def test_very_many_values_may_be_unread(gang: LocalGang) -> None:
    make(gang, max_chunk_bytes=8, max_chunks=1024)
    values = [b"%d" % number * (1 + number % 5) for number in range(1024)]
    for task in [put(gang, value) for value in values]:
        task.wait()
    assert failure(put(gang, b"", timeout=SHORT_S)).code is ErrorCode.PEER_MISSING
    for reader in (1, 2):
        assert [got(gang, reader) for _ in values] == values


def test_nothing_is_left_of_queues_that_have_ended(gang: LocalGang) -> None:
    make(gang, "first")
    for rank in gang.ranks:
        rank.shut_down_queue("", "first")
    until(lambda: not queue_threads())
    before = set(open_files())
    for _ in range(5):
        make(gang, max_chunk_bytes=10)
        put(gang, b"x" * 100).wait()
        assert got(gang, 1) == b"x" * 100
        for rank in gang.ranks:
            rank.shut_down_queue("", "q")
    until(lambda: not queue_threads())
    # A lane lets go of what it has made a queue with after it has answered.
    until(lambda: not set(open_files()) - before)
    until(lambda: not [it for it in open_files() if "rankbridge" in it])


@pytest.mark.parametrize("where", ["near"], indirect=True)
class TestSharedMemory:
    """What can go wrong with it."""

    def test_who_cannot_get_in_is_given_values_by_the_backend(
        self, gang: LocalGang, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fails_for_one(address: str, secret: bytes, place: int, timeout: float) -> Connection:
            if place == 1:
                raise PermissionError("not in this container")
            return connection.connect(address, secret, place, timeout)

        monkeypatch.setattr(sharing, "connect", fails_for_one)
        assert make(gang).shared_memory == (2,)
        put(gang, b"0").wait()
        assert [got(gang, reader) for reader in (1, 2)] == [b"0"] * 2

    @pytest.mark.parametrize("step", ["Listener", "make_ring", "Ring"])
    def test_without_it_values_are_given_by_the_backend(
        self, gang: LocalGang, monkeypatch: pytest.MonkeyPatch, step: str
    ) -> None:
        def fails(*_: object, **__: object) -> object:
            raise OSError("no memory")

        monkeypatch.setattr(sharing, step, fails)
        assert make(gang).shared_memory == ()
        put(gang, b"0").wait()
        assert [got(gang, reader) for reader in (1, 2)] == [b"0"] * 2

    def test_a_call_may_be_withdrawn_before_anybody_has_looked_at_it(self, gang: LocalGang) -> None:
        make(gang)
        membership = gang.ranks[0]._current(0).get("world").membership  # type: ignore[union-attr]
        assert membership is not None
        end = membership.queues.find("q")
        assert isinstance(end, writing.WritingEnd)
        go_on = threading.Event()
        end.call_soon(lambda: assert_true(go_on.wait(PATIENCE_S)))
        write = put(gang, b"never")
        write.cancel("the test says so")
        go_on.set()
        assert failure(write).code is ErrorCode.CANCELLED
        put(gang, b"0").wait()
        assert [got(gang, reader) for reader in (1, 2)] == [b"0"] * 2

    def test_a_value_that_there_is_no_memory_for_is_given_to_nobody(
        self, gang: LocalGang, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        make(gang, max_chunk_bytes=10)

        def fails(*_: object) -> object:
            raise OSError("no memory")

        with monkeypatch.context() as patch:
            patch.setattr(writing, "ValueFile", fails)
            it = failure(put(gang, bytes(11)))
        assert (it.code, it.indefinite) == (ErrorCode.RESOURCE_EXHAUSTED, False)
        put(gang, b"next").wait()
        assert [got(gang, reader) for reader in (1, 2)] == [b"next"] * 2

    def test_a_value_that_was_lost_is_not_passed_over(
        self, gang: LocalGang, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        make(gang, max_chunk_bytes=10, max_chunks=2)
        put(gang, bytes(11)).wait()
        put(gang, b"next").wait()

        def fails(*_: object) -> object:
            raise OSError("no file descriptors")

        with monkeypatch.context() as patch:
            patch.setattr(reading, "read_value_file", fails)
            it = failure(get(gang, 1))
        assert (it.code, "no file descriptors" in it.message) == (ErrorCode.ABORTED, True)
        assert failure(get(gang, 1)).code is ErrorCode.ABORTED
        it = failure(put(gang, b"x"))
        assert (it.code, [detail.rank for detail in it.ranks]) == (ErrorCode.ABORTED, [1])

    def test_a_rank_that_has_no_room_for_a_queue_fails_all(
        self, gang: LocalGang, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        bells = iter(range(3))

        def fails_once() -> Waker:
            if next(bells) == 1:
                raise OSError("too many open files")
            return Waker()

        with monkeypatch.context() as patch:
            patch.setattr(operations, "Waker", fails_once)
            outcomes: Sequence[Any] = gang.run(new_queue, [NewQueue("q", 0)] * 3)
        for outcome in outcomes:
            assert isinstance(outcome, BridgeError)
            assert outcome.failure.code is ErrorCode.RESOURCE_EXHAUSTED
            assert [detail.detail for detail in outcome.failure.ranks] == ["too many open files"]
        make(gang)
