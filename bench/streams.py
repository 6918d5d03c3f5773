"""Whether several streams bring one large tensor sooner than one: `python -m bench.streams`.

A tensor is cut into as many parts as there are streams, each a tensor of its own, and all of them travel at once: over
one connection, or each over its own. Nothing is put together afterwards, so that this is the most that ranges of bytes
of one tensor could give. All ways take turns, every other round backward.

Memory for every part is fresh, as it is for a whole tensor: left to itself, an allocator would keep that of parts below
32 MiB, and smaller parts would seem faster for that.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy
import numpy.typing

import rankbridge
from bench import usage
from bench.gang import gang

MIB = 1 << 20
_TIMEOUT_S = 120.0
# Of glibc: memory from so many bytes on is fresh, which is above a chunk and below every part.
_FRESH = "MALLOC_MMAP_THRESHOLD_"
_COUNTS = ((1, False), (2, False), (2, True), (4, False), (4, True))


@dataclass(frozen=True, slots=True)
class Way:
    """How a tensor travels. `over`: "unix" or "tcp". `own`: each stream has a connection of its own."""

    over: str
    end: str
    streams: int
    own: bool

    @property
    def alone(self) -> Way:
        """The same with one stream."""
        return Way(self.over, self.end, 1, False)

    def __str__(self) -> str:
        connections = ", own connections" if self.own else ""
        return f"{self.over:5s} {self.end:5s} {self.streams} streams{connections}"


@dataclass(slots=True)
class Taken:
    """Of each transfer: seconds, and CPU seconds of client and rank together."""

    seconds: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)


def by(endpoints: Path, over: str) -> dict[str, Any]:
    """The gang as it is reached by "unix" or "tcp" alone."""
    gang: dict[str, Any] = json.loads(endpoints.read_text())
    for rank in gang["ranks"]:
        rank["endpoints"] = [it for it in rank["endpoints"] if it.startswith("unix:") == (over == "unix")]
    return gang


def fetching(ranks: list[rankbridge.Rank], part: rankbridge.Ref) -> Callable[[], object]:
    """Fetches a part by each."""

    def fetch() -> None:
        for pending in [rank.start("get", part) for rank in ranks]:
            if pending.result().nbytes != part.nbytes:
                raise RuntimeError("bytes are missing")

    return fetch


def putting(
    ranks: list[rankbridge.Rank], source: numpy.typing.NDArray[numpy.uint8]
) -> Callable[[], list[rankbridge.Ref]]:
    """Puts a part by each."""
    parts = numpy.split(source, len(ranks))

    def put() -> list[rankbridge.Ref]:
        begun = [rank.start("put", part) for rank, part in zip(ranks, parts, strict=True)]
        return [pending.result() for pending in begun]

    return put


def measure(endpoints: Path, nbytes: int, rounds: int) -> dict[Way, Taken]:
    """All ways in turn."""
    source = numpy.random.default_rng(0).integers(0, 255, nbytes, numpy.uint8)
    ways: dict[Way, Callable[[], object]] = {}
    with ExitStack() as stack:
        for over in ("unix", "tcp"):
            where = by(endpoints, over)
            ranks = [
                stack.enter_context(rankbridge.connect(where, shared_memory=False, timeout=_TIMEOUT_S))[0]
                for _ in range(max(streams for streams, _ in _COUNTS))
            ]
            parts = {it: ranks[0].create("uint8", nbytes // it) for it, _ in _COUNTS}
            for streams, own in _COUNTS:
                used = ranks[:streams] if own else ranks[:1] * streams
                ways[Way(over, "fetch", streams, own)] = fetching(used, parts[streams])
                ways[Way(over, "put", streams, own)] = putting(used, source)
        pids = [os.getpid(), ranks[0].status().pid]
        taken = {way: Taken() for way in ways}
        for turn in range(rounds + 1):
            for way, run in list(ways.items())[:: 1 if turn % 2 else -1]:
                before, begun = usage.cpu_seconds(pids), time.perf_counter()
                made = run()
                seconds, cpu = time.perf_counter() - begun, usage.cpu_seconds(pids) - before
                for ref in made if isinstance(made, list) else ():
                    ranks[0].release(ref)
                if turn:
                    taken[way].seconds.append(seconds)
                    taken[way].cpu.append(cpu)
        return taken


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mib", type=int, default=64, help="size of the tensor (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=20)
    options = parser.parse_args()
    if _FRESH not in os.environ:
        # Read when a process starts; the rank inherits it.
        environment = {**os.environ, _FRESH: str(4 * MIB)}
        os.execve(sys.executable, [sys.executable, "-m", "bench.streams", *sys.argv[1:]], environment)
    with gang(1) as endpoints:
        taken = measure(endpoints, options.mib * MIB, options.rounds)
    print(
        f"{options.mib} MiB, {options.rounds} rounds, load {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores"
    )
    for way, of in taken.items():
        beside = taken[way.alone]
        # Of the same round each: what else the machine does meanwhile concerns both.
        ratio = statistics.median(mine / one for mine, one in zip(of.seconds, beside.seconds, strict=True))
        print(
            f"{way!s:38s} p50 {statistics.median(of.seconds) * 1e3:8.1f} ms  min {min(of.seconds) * 1e3:8.1f} ms  "
            f"CPU {statistics.median(of.cpu) * 1e3:8.1f} ms   {ratio:5.2f} x one stream"
        )


if __name__ == "__main__":
    main()
