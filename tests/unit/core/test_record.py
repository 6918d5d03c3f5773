"""What a rank keeps of the operations that have ended."""

from __future__ import annotations

import pytest

from rankbridge_server.core.errors import BridgeError, ErrorCode, Place
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
