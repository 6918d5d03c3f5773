"""What an operation in a rank's record costs: CPU time and memory."""

from __future__ import annotations

import time
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.overheads.overhead import Overhead, judged
from rankbridge_server.core.errors import Phase, Place
from rankbridge_server.core.limits import Limits
from rankbridge_server.core.record.memory import size_of
from rankbridge_server.core.record.record import Record
from rankbridge_server.core.task import Task

_TASKS = 1000
_LIMIT_US = 2.0


def record(*, quick: bool) -> Overhead:
    """What the record adds to the life of a task, and the size of what it keeps."""
    size, blocks = Limits().max_record, 20 if quick else 200
    rows = []
    with TemporaryDirectory() as folder:
        for where, kept in (("memory", Record(size)), ("a file", Record(size, Path(folder, "record")))):
            added = (_fastest(kept, blocks) - _fastest(None, blocks)) * 1e6
            rows.append(
                (where, f"{added:.2f}", *judged(added, _LIMIT_US, " us"), f"{size_of(size) / size:.0f}")
            )
    return Overhead(
        "The record",
        f"CPU time of an operation of a controller, in the fastest of {blocks} blocks of {_TASKS}; it keeps {size:,}.",
        ("record in", "us for each", "limit", "", "bytes for each"),
        rows,
    )


def _fastest(record: Record | None, blocks: int) -> float:
    """Seconds of CPU for a task that is announced, enters the backend, and goes well."""
    best = 1.0
    for _ in range(blocks):
        tasks = [_task(number) for number in range(_TASKS)]
        began = time.process_time()
        for task in tasks:
            if record is not None:
                task.note = record.note
                task.then(record.add)
            task.contract = "all_reduce dtype=float32 shape=[4] op=sum"
            task.enter(Phase.ADMISSION)
            task.enter(Phase.DATA)
            task.commit(lambda: None)
        best = min(best, (time.process_time() - began) / _TASKS)
    return best


def _task(number: int) -> Task:
    place = Place(rank=0, group="world", operation="all_reduce", operation_id=f"{number:032x}", generation=1)
    return Task(place, 1.0, "session", site="/home/me/train.py:12")
