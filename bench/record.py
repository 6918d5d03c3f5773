"""What an operation in a rank's record costs: `python -m bench.record` prints its CPU time and its memory."""

from __future__ import annotations

import time
from pathlib import Path
from tempfile import TemporaryDirectory

from rankbridge_server.core.errors import Phase, Place
from rankbridge_server.core.limits import Limits
from rankbridge_server.core.record.memory import size_of
from rankbridge_server.core.record.record import Record
from rankbridge_server.core.task import Task

_BLOCKS = 200
_TASKS = 1000


def main() -> None:
    """Prints what the record adds to the life of a task, in the fastest block of tasks; and the size of a record."""
    size = Limits().max_record
    with TemporaryDirectory() as folder:
        for where, record in (("memory", Record(size)), ("a file", Record(size, Path(folder, "record")))):
            bare, recorded = _fastest(None), _fastest(record)
            print(f"{(recorded - bare) * 1e6:.2f} us for each operation, in {where}")
    print(f"{size_of(size) / size:.0f} bytes for each that is kept, {size_of(size) / 1e6:.1f} MB for {size}")


def _fastest(record: Record | None) -> float:
    """Seconds of CPU for a task that is announced, enters the backend, and goes well."""
    best = 1.0
    for _ in range(_BLOCKS):
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


if __name__ == "__main__":
    main()
