"""What a rank keeps of the operations that have ended."""

from __future__ import annotations

import pytest
from tests.support.local_gang import LocalGang

from rankbridge_server.core.coordinator import ReduceOp
from rankbridge_server.core.errors import BridgeError, ErrorCode, Place
from rankbridge_server.core.operations.agreements import Barrier, barrier
from rankbridge_server.core.operations.reductions import AllReduce, all_reduce
from rankbridge_server.core.record import Record
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
