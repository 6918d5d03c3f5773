"""A function that runs on one rank, and what becomes of the others when it ends."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import NoReturn

import pytest
from tests.support.tasks import error_of
from tests.support.waiting import until

from rankbridge_server.core.errors import BridgeError, ErrorCode, Place
from rankbridge_server.core.functions.functions import NoFunctions
from rankbridge_server.core.functions.reports import ReportBook
from rankbridge_server.core.functions.run import Run
from rankbridge_server.core.gang_calls.messages import Release
from rankbridge_server.core.task import Task

LATE = ErrorCode.DEADLINE_EXCEEDED


class Waiting(NoFunctions):
    """Those of a rank that waits in torch.distributed for the one that has ended."""

    def waits(self, run: Run, begun: Mapping[str, int]) -> bool:
        return True


def a_task(rank: int, timeout: float = 60.0) -> Task:
    return Task(Place(rank=rank, group="world", operation="call_function", operation_id="x"), timeout, "")


def ended(asked: ErrorCode | None, code: ErrorCode) -> tuple[Task, Release]:
    """A function that has raised an error of the bridge on rank 0, and what is said to other ranks."""
    said: list[Release] = []

    def body(run: Run) -> NoReturn:
        if asked is ErrorCode.CANCELLED:
            run.cancel()
        elif asked is not None:
            until(lambda: run.cancelled)
        raise BridgeError.of(code, "it has ended")

    task = a_task(0, 0.05 if asked is ErrorCode.DEADLINE_EXCEEDED else 60.0)
    Run("train", body, task, NoFunctions(), ReportBook(), fail=said.append).begin()
    [release] = said
    return task, release


@pytest.mark.parametrize(
    ("asked", "raised", "code", "others"),
    [
        (ErrorCode.CANCELLED, ErrorCode.CANCELLED, ErrorCode.CANCELLED, ErrorCode.CANCELLED),
        (LATE, ErrorCode.CANCELLED, LATE, LATE),
        (
            ErrorCode.CANCELLED,
            ErrorCode.RESOURCE_EXHAUSTED,
            ErrorCode.RESOURCE_EXHAUSTED,
            ErrorCode.FUNCTION_FAILED,
        ),
        (LATE, ErrorCode.RESOURCE_EXHAUSTED, ErrorCode.RESOURCE_EXHAUSTED, ErrorCode.FUNCTION_FAILED),
        (None, ErrorCode.CANCELLED, ErrorCode.CANCELLED, ErrorCode.FUNCTION_FAILED),
    ],
)
def test_ranks_that_have_not_begun_say_why_it_has_ended_on_the_one_that_has(
    asked: ErrorCode | None, raised: ErrorCode, code: ErrorCode, others: ErrorCode
) -> None:
    task, release = ended(asked, raised)
    own = error_of(task, 60)
    assert own is not None
    assert own.failure.code is code
    other = a_task(1)
    Run("train", lambda run: pytest.fail("it is called"), other, NoFunctions(), ReportBook()).release(release)
    error = error_of(other, 60)
    assert error is not None
    assert (error.failure.code, error.failure.indefinite) == (others, False)
    assert "on rank 0" in error.failure.message


def test_a_rank_that_waits_for_one_that_was_asked_to_end_is_cancelled_and_not_failed() -> None:
    _, release = ended(ErrorCode.CANCELLED, ErrorCode.CANCELLED)
    let_go = threading.Event()
    stuck: list[Release] = []

    def body(run: Run) -> NoReturn:
        run.release(release)
        assert let_go.wait(60)
        raise RuntimeError("its wait was ended")

    task = a_task(1)
    run = Run("train", body, task, Waiting(), ReportBook(), stuck=stuck.append)
    thread = threading.Thread(target=run.begin)
    thread.start()
    error = error_of(task, 60)
    let_go.set()
    thread.join()
    assert error is not None
    assert (error.failure.code, error.failure.indefinite) == (ErrorCode.CANCELLED, True)
    assert stuck == [release]
