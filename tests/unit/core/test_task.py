"""A task that ends runs its callbacks, then wakes all who wait for it."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor, TimeoutError as NotYetError

import pytest

from rankbridge_server.core.errors import Place
from rankbridge_server.core.operations.outcome import Outcome
from rankbridge_server.core.task import Task


def test_whoever_asks_while_callbacks_run_waits_for_their_end() -> None:
    task = Task(Place(rank=0), 60.0, "")
    begun, may_end = threading.Event(), threading.Event()

    def callback(_: Task) -> None:
        begun.set()
        assert may_end.wait(60)

    task.then(callback)
    with ThreadPoolExecutor(3) as pool:
        pool.submit(task.commit, lambda: 7)
        assert begun.wait(60)
        asked = [pool.submit(task.wait), pool.submit(task.outcome)]
        for it in asked:
            with pytest.raises(NotYetError):
                it.result(0.05)
        may_end.set()
        assert [it.result(60) for it in asked] == [7, 7]


def test_a_callback_has_the_outcome() -> None:
    task = Task(Place(rank=0), 60.0, "")
    found: list[Outcome] = []
    task.then(lambda it: found.extend((it.outcome(), it.wait())))
    task.commit(lambda: 7)
    assert found == [7, 7]
