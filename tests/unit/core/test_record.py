"""What a rank keeps of the operations that have ended."""

from __future__ import annotations

from contextlib import ExitStack

import pytest
from tests.support.local_gang import LocalGang

from rankbridge_server.core.coordinator import ReduceOp
from rankbridge_server.core.errors import BridgeError, ErrorCode, Place
from rankbridge_server.core.operations.agreements import Barrier, barrier
from rankbridge_server.core.operations.reductions import AllReduce, all_reduce
from rankbridge_server.core.record.record import MAX_WATCHES, Record
from rankbridge_server.core.task import Task


def ended(name: str, error: BridgeError | None = None) -> Task:
    task = Task(Place(rank=0, group="world", operation=name), 1.0, "")
    if error is None:
        task.commit(lambda: None)
    else:
        task.fail(error)
    return task


@pytest.mark.parametrize(("size", "kept"), [(0, []), (2, ["b", "c"]), (9, ["a", "b", "c"])])
def test_the_last_ones_are_kept_in_their_order(size: int, kept: list[str]) -> None:
    record = Record(size)
    for name in "abc":
        record.add(ended(name))
    assert [it.place.operation for it in record.entries()] == kept
    assert record.ended == 3


def test_of_an_error_its_code_and_the_beginning_of_its_text_are_kept() -> None:
    record = Record(1)
    record.add(ended("a", BridgeError.of(ErrorCode.ABORTED, "x" * 2000, indefinite=True)))
    (it,) = record.entries()
    assert (it.code, it.message, it.indefinite) == (ErrorCode.ABORTED, "x" * 500, True)


def test_what_has_ended_after_a_number_comes_in_its_order_and_in_parts() -> None:
    record = Record(9)
    for name in "abc":
        record.add(ended(name))
    with record.watch(0, record.id) as watch:
        parts = [watch.next(2) for _ in range(3)]
    assert [([it.place.operation for it in part.operations], part.ended, part.lost) for part in parts] == [
        (["a", "b"], 2, 0),
        (["c"], 3, 0),
        ([], 3, 0),
    ]


def test_who_reads_too_slowly_is_told_how_many_are_lost() -> None:
    record = Record(2)
    record.add(ended("a"))
    with record.watch(None, 0) as watch:
        for name in "bcdef":
            record.add(ended(name))
        growth = watch.next(1)
        assert ([it.place.operation for it in growth.operations], growth.ended, growth.lost) == (["e"], 5, 3)
        record.add(ended("g"))
        growth = watch.next(9)
        assert ([it.place.operation for it in growth.operations], growth.lost) == (["f", "g"], 0)


def test_a_record_that_keeps_nothing_loses_all() -> None:
    record = Record(0)
    with record.watch(0, 0) as watch:
        record.add(ended("a"))
        assert watch.next(9) == ([], 1, 1)


@pytest.mark.parametrize(("after", "of"), [(9, "this"), (1, "another")])
def test_a_place_of_another_record_is_the_beginning(after: int, of: str) -> None:
    record = Record(9)
    record.add(ended("a"))
    record.add(ended("b"))
    with record.watch(after, record.id + (of == "another")) as watch:
        assert len(watch.next(9).operations) == 2


def test_watches_are_counted_and_end_with_the_record() -> None:
    record = Record(1)
    with ExitStack() as stack:
        watches = [stack.enter_context(record.watch(None, 0)) for _ in range(MAX_WATCHES)]
        with pytest.raises(BridgeError, match="too many watchers of this rank's record"):
            stack.enter_context(record.watch(None, 0))
        assert watches[0].wait(0.0)
        record.close()
        assert not any(it.wait(30.0) for it in watches)
    with record.watch(None, 0) as late:
        assert not late.wait(30.0)


def test_an_operation_has_the_same_number_on_all_members_and_what_failed_does_not_count() -> None:
    gang = LocalGang(3)
    shapes = [gang.full_on(rank, 1.0, (2 + (rank == 2),)) for rank in range(3)]
    gang.run(barrier, [Barrier()] * 3)
    gang.run(all_reduce, [AllReduce(it.id, ReduceOp.SUM, True) for it in shapes])
    gang.run(barrier, [Barrier()] * 3)
    gang.run(barrier, [Barrier()] * 3)
    for rank in gang.ranks:
        numbers = [(it.place.operation, it.sequence, it.code is None) for it in rank.recorded()]
        assert numbers == [
            ("barrier", 0, True),
            ("all_reduce", 1, False),
            ("barrier", 1, True),
            ("barrier", 2, True),
        ]
