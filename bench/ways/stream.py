"""A stream of gang calls: so many under way that the next is always on its way."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

from bench.subject import Timed
from bench.ways import Stage
from rankbridge import GangStream, Streamed

DEPTH = 4
"""Calls under way."""


def operations(stage: Stage) -> dict[str, Timed]:
    """In place, as the native calls are."""
    stream, refs = stage.stack.enter_context(stage.gang.stream()), stage.refs
    return {
        "empty_all": _flowing(lambda: stream.submit("ping")),
        "barrier": _flowing(lambda: stream.submit("barrier")),
        **{name: _flowing(_collective(stream, name, refs[name])) for name in refs},
    }


def _collective(stream: GangStream, name: str, refs: object) -> Callable[[], Streamed]:
    operation = name.rpartition("_")[0]
    return lambda: stream.submit(operation, refs, in_place=True)


def _flowing(begin: Callable[[], Streamed]) -> Timed:
    """Times from one answer to the next."""

    def run(count: int) -> list[float]:
        under_way = deque(begin() for _ in range(DEPTH))
        times = []
        since = time.perf_counter()
        for _ in range(count):
            under_way.popleft().result()
            now = time.perf_counter()
            times.append(now - since)
            since = now
            under_way.append(begin())
        for left in under_way:
            left.result()
        return times

    return run
