"""What became of a task."""

from __future__ import annotations

import threading

from rankbridge_server.core.errors import BridgeError
from rankbridge_server.core.task import Task


def error_of(task: Task, timeout: float) -> BridgeError | None:
    """How it failed, or None; the test fails if that is not known in `timeout` seconds."""
    done = threading.Event()
    task.then(lambda _: done.set())
    assert done.wait(timeout), f"{task.place} is not done after {timeout} s"
    return task.error
