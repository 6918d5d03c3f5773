"""What an entry in a rank's record costs: `python -m bench.record` prints its time and its memory."""

from __future__ import annotations

import time
import tracemalloc

from rankbridge_server.core.errors import Place
from rankbridge_server.core.limits import Limits
from rankbridge_server.core.record import Record
from rankbridge_server.core.task import Task

_BLOCKS = 200
_TASKS = 1000


def main() -> None:
    """Prints the time of the fastest block of entries, and the memory of a record that is full."""
    tasks = [_task(number) for number in range(_TASKS)]
    record = Record(Limits().max_record)
    seconds = []
    for _ in range(_BLOCKS):
        begin = time.perf_counter()
        for task in tasks:
            record.add(task)
        seconds.append(time.perf_counter() - begin)
    print(f"{min(seconds) / _TASKS * 1e6:.2f} us for each operation")
    tracemalloc.start()
    record = Record(Limits().max_record)
    for number in range(Limits().max_record):
        record.add(_task(number))
    print(f"{tracemalloc.get_traced_memory()[0] / Limits().max_record:.0f} bytes for each that is kept")


def _task(number: int) -> Task:
    place = Place(rank=0, group="world", operation="all_reduce", operation_id=f"{number:032x}", generation=1)
    task = Task(place, 1.0, "session", site="/home/me/train.py:12")
    task.contract = f"all_reduce dtype=float32 shape=[{number}] op=sum"
    return task


if __name__ == "__main__":
    main()
