"""A subject: a process that makes the calls which are measured, and answers one JSON line for each block of them.

The module of a subject has `started(size)`, a context manager that gives `Ways`, and ends with `serve(started)`.
Adding one is adding that module to `bench/subjects`.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from typing import Any

from bench import usage
from bench.operation import LOOP

Timed = Callable[[int], list[float]]
"""Makes so many calls; gives the seconds that each took."""


class NotThere(Exception):
    """What was asked for cannot be had here; the message says why."""


@dataclass(frozen=True, slots=True)
class Ways:
    """What a subject can do.

    Attributes:
        versions: Of what it is made of.
        timed: Its operations by way and name.
        missing: Why a way, or one operation of it ("gang/barrier"), is not there.
        restless: Processes that use the CPU also while they wait. They are stopped while others are measured. If the
            subject itself is among them, all must have called `end_with_parent`; else it lets them go on when it ends.
    """

    versions: Mapping[str, str]
    timed: Mapping[str, Mapping[str, Timed]]
    missing: Mapping[str, str]
    restless: Sequence[int] = ()


Started = Callable[[int], AbstractContextManager[Ways]]
"""Starts so many ranks."""


def timed(call: Callable[[], Any], after: Callable[[Any], object] = lambda result: None) -> Timed:
    """Times a call; what `after` does with its result is not counted, nor is forgetting it."""

    def run(count: int) -> list[float]:
        times = []
        for _ in range(count):
            begin = time.perf_counter()
            result = call()
            times.append(time.perf_counter() - begin)
            after(result)
            del result
        return times

    return run


def looped(one: Callable[[], object]) -> Timed:
    """Times `LOOP` calls as one: seconds of each on average."""

    def loop() -> None:
        for _ in range(LOOP):
            one()

    return averaged(timed(loop))


def averaged(whole: Timed) -> Timed:
    """Times what makes `LOOP` operations: seconds of each on average."""
    return lambda count: [seconds / LOOP for seconds in whole(count)]


def serve(started: Started) -> None:
    """Be the process: `python -m bench.subjects.NAME SIZE`. Ends with standard input."""
    # Engines print to standard output.
    lines = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def say(**told: Any) -> None:
        print(json.dumps(told), file=lines, flush=True)

    try:
        with started(int(sys.argv[1])) as ways:
            names = {way: sorted(operations) for way, operations in ways.timed.items()}
            say(
                versions=dict(ways.versions),
                ways=names,
                missing=dict(ways.missing),
                restless=list(ways.restless),
            )
            for line in sys.stdin:
                asked = json.loads(line)
                try:
                    say(**_block(ways.timed[asked["way"]][asked["operation"]], asked["calls"]))
                except Exception as error:
                    say(failed=f"{type(error).__name__}: {error}")
            # Who has stopped them may have ended without a word.
            for pid in ways.restless:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)
    except (ImportError, NotThere) as error:
        say(absent=str(error))


def _block(run: Timed, calls: int) -> dict[str, Any]:
    pids = usage.tree(os.getpid())
    before = usage.cpu_seconds(pids)
    seconds = run(calls)
    used = usage.cpu_seconds(pids) - before
    return {"seconds": seconds, "cpu": used, "peak_bytes": usage.peak_bytes(pids)}
