"""A source of the live page that makes up operations, as many as one wants, at the pace of a real gang."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

from rankbridge import RecordedOperation
from rankbridge_server.cli.page.model import Model, Row
from rankbridge_server.cli.page.source import Tensors

INTERVAL_S = 0.25
_KINDS = ("all_reduce", "all_gather", "reduce_scatter", "barrier")


class MadeRecords:
    """Operations of `size` ranks, in the group of all and in groups of eight, `per_second` of all ranks together."""

    def __init__(self, model: Model, size: int, per_second: float) -> None:
        self.starts = 0
        self.asked = 0
        self._model = model
        self._size = size
        self._period = size / per_second
        self._made = 0
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begins."""
        self.starts += 1
        self._ended.clear()
        self._model.reset()
        self._model.described({rank: row(rank) for rank in range(self._size)}, self._groups())
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def stop(self) -> None:
        """Ends."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join()

    def ask(self) -> None:
        """Counts."""
        self.asked += 1

    def tensors(self, rank: int) -> Tensors:
        """One."""
        return {"tensors": [{"ref": f"of rank {rank}"}], "why": ""}

    def _groups(self) -> dict[str, tuple[int, ...]]:
        eights = range(0, self._size, 8)
        tp = {f"tp_{at // 8}": tuple(range(at, min(at + 8, self._size))) for at in eights}
        return {"world": tuple(range(self._size)), **tp}

    def _run(self) -> None:
        reported = time.time()
        while not self._ended.wait(INTERVAL_S):
            now = time.time()
            calls = list(self._calls(reported, now))
            for rank in range(self._size):
                ended = [self._operation(number, at, rank) for number, at in calls]
                self._model.grew(rank, ended, [])
            reported = now

    def _calls(self, since: float, until: float) -> Iterator[tuple[int, float]]:
        count = max(1, round((until - since) / self._period))
        for at in range(count):
            self._made += 1
            yield self._made, since + (until - since) * at / count

    def _operation(self, number: int, at: float, rank: int) -> RecordedOperation:
        late = ((rank * 7919 + number * 104729) % 97) / 97 * self._period / 3
        group = "world" if number % 3 else f"tp_{rank // 8}"
        kind = _KINDS[number % len(_KINDS)]
        return RecordedOperation(
            operation=kind,
            group=group,
            operation_id=f"{group} {number}",
            session_id="",
            generation=1,
            contract=f"{kind} dtype=float32 shape=[{1024 << number % 4}] op=sum",
            site=f"train.py:{40 + number % 20}",
            function="",
            called=at + late,
            announced=self._period / 20,
            entered=self._period / 3 - late,
            done=self._period * 0.6 - late,
            phase="data",
            code="mismatch" if number % 500 == 0 and rank == 3 else "",
            message="",
            indefinite=False,
        )


def row(rank: int, **more: object) -> Row:
    """What describes a rank."""
    return {
        "host": f"host-{rank // 8}",
        "pid": 4000 + rank,
        "backend": "gloo",
        "state": "formed",
        "why": "",
        "since": 0.0,
        "generation": 1,
        "refs": rank,
        "bytes": rank << 20,
        "sessions": [],
        "reached": True,
        "well": True,
        **more,
    }
