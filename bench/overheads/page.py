"""What an open live page costs a gang: its times with and without a browser, by turns."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from urllib.parse import urlsplit

import numpy as np

import rankbridge
from bench.gang import ARGUMENTS, gang
from bench.overheads.overhead import Overhead

MOVED = {"4 B": 1, "1 MB": 250_000}
"""Elements of float32 of each member."""
_SIZE = 4
BLOCK_S = 2.0
SETTLED_S = 1.0
# What a browser reads, from another process, as a browser is.
_READER = """
import http.client, sys
connection = http.client.HTTPConnection(sys.argv[1], int(sys.argv[2]))
connection.request("GET", sys.argv[3] + "events")
answer = connection.getresponse()
print(answer.status, flush=True)
while answer.read1(1 << 20):
    pass
"""


@contextmanager
def looked_at(url: str) -> Iterator[None]:
    """Somebody reads the page."""
    at = urlsplit(url)
    command = [sys.executable, "-c", _READER, str(at.hostname), str(at.port), at.path]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as reader:
        assert reader.stdout
        if reader.stdout.readline() != b"200\n":
            raise RuntimeError("the page is not served")
        try:
            yield
        finally:
            reader.kill()


class Blocks:
    """Calls of whiles. `times`: of each call, in seconds; `cpu`: of all ranks' processes, in all."""

    def __init__(self, call: Callable[[], object], pids: Sequence[int]) -> None:
        self.times: list[float] = []
        self.cpu = 0.0
        self._call = call
        self._pids = pids

    def run(self) -> None:
        """Calls for a while."""
        cpu, end = self._used(), time.perf_counter() + BLOCK_S
        while (start := time.perf_counter()) < end:
            self._call()
            self.times.append(time.perf_counter() - start)
        self.cpu += self._used() - cpu

    @property
    def took_us(self) -> float:
        """The median of the calls."""
        return median(self.times) * 1e6

    @property
    def cpu_us(self) -> float:
        """CPU time of a rank for a call."""
        return self.cpu / len(self._pids) / len(self.times) * 1e6

    def _used(self) -> float:
        stats = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in self._pids]
        return sum(int(it[11]) + int(it[12]) for it in stats) / os.sysconf("SC_CLK_TCK")


def compared(call: Callable[[], object], pids: Sequence[int], url: str, rounds: int) -> tuple[Blocks, Blocks]:
    """Calls while somebody looks, and while nobody does, by turns."""
    seen, unseen = Blocks(call, pids), Blocks(call, pids)
    for _ in range(rounds):
        with looked_at(url):
            # Until all ranks are watched, and until none is.
            time.sleep(SETTLED_S)
            seen.run()
        time.sleep(SETTLED_S)
        unseen.run()
    return seen, unseen


def page(*, quick: bool) -> Overhead:
    """What an open page adds."""
    return Overhead(
        "An open page",
        f"An `all_reduce` in place, by a gang call to {_SIZE} ranks, while a browser has the page open, and while none "
        "has.",
        ("all_reduce of", "closed, us", "open", "ratio", "CPU us of a rank, closed", "open", "ratio"),
        list(_measured(rounds=1 if quick else 10)),
    )


def _measured(rounds: int) -> Iterator[tuple[str, ...]]:
    with (
        gang(_SIZE, (*ARGUMENTS, "--page", "127.0.0.1:0")) as endpoints,
        rankbridge.connect(str(endpoints)) as made,
    ):
        described = json.loads(Path(endpoints).read_text())
        pids = [it["pid"] for it in described["ranks"]]
        for name, elements in MOVED.items():
            refs = made.put([np.ones(elements, np.float32)] * len(made))

            def call(refs: list[rankbridge.Ref] = refs) -> object:
                return made.all_reduce(refs, in_place=True)

            # The first calls of a gang are slower.
            Blocks(call, pids).run()
            seen, unseen = compared(call, pids, described["page"], rounds)
            yield (
                name,
                f"{unseen.took_us:,.0f}",
                f"{seen.took_us:,.0f}",
                f"{seen.took_us / unseen.took_us:.2f}",
                f"{unseen.cpu_us:,.0f}",
                f"{seen.cpu_us:,.0f}",
                f"{seen.cpu_us / unseen.cpu_us:.2f}",
            )
