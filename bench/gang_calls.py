"""Gang calls beside calls of every rank, and beside torch.distributed.rpc, as a controller sees them.

`python -m bench.gang_calls` starts 4 ranks on Gloo and, in processes of its own, torch.distributed.rpc with as many,
interleaves blocks of calls of each, and prints p50, p99 and mean of every way, and the ratios to torch's.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy

import rankbridge

WORLD = 4
BLOCK = 50

Way = Callable[[int], list[float]]
"""Makes so many calls; gives the seconds that each took."""


@contextmanager
def ranks(directory: Path) -> Iterator[Path]:
    """A gang on Gloo; gives its endpoints file."""
    endpoints = directory / "endpoints.json"
    command = [
        str(Path(sys.executable).with_name("rankbridge")),
        "up",
        "--size",
        str(WORLD),
        "--backend",
        "gloo",
    ]
    command += ["--endpoints-file", str(endpoints), "--exit-on-stdin-close"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        if process.stdin is None or process.stdout is None:
            raise RuntimeError("no pipes")
        while not process.stdout.readline().startswith("ready:"):
            if process.poll() is not None:
                raise RuntimeError("the gang did not start")
        try:
            yield endpoints
        finally:
            process.stdin.close()


@contextmanager
def torch_rpc() -> Iterator[Callable[[str], Way]]:
    """torch.distributed.rpc; gives the way of each of its calls by name."""
    command = [sys.executable, "-m", "bench.peers.torch_rpc", str(WORLD)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        if process.stdin is None or process.stdout is None:
            raise RuntimeError("no pipes")
        told, heard = process.stdin, process.stdout
        if heard.readline() != "ready\n":
            raise RuntimeError("torch.distributed.rpc did not start")

        def way(name: str) -> Way:
            def run(count: int) -> list[float]:
                told.write(f"{name} {count}\n")
                told.flush()
                times: list[float] = json.loads(heard.readline())
                return times

            return run

        try:
            yield way
        finally:
            told.close()


def timed(call: Callable[[], object]) -> Way:
    """A way that makes a call."""

    def run(count: int) -> list[float]:
        times = []
        for _ in range(count):
            start = time.perf_counter()
            call()
            times.append(time.perf_counter() - start)
        return times

    return run


def measure(blocks: int) -> dict[str, list[float]]:
    """Seconds of every call by way. The first block of each is not counted."""
    with (
        tempfile.TemporaryDirectory(prefix="rankbridge-bench-") as directory,
        ranks(Path(directory)) as endpoints,
        torch_rpc() as peer,
        rankbridge.connect(endpoints) as gang,
    ):
        refs = gang.put([numpy.zeros(1, numpy.float32) for _ in range(WORLD)])
        ways = {
            "torch rpc, empty": peer("empty"),
            "gang call, empty": timed(gang.ping),
            "torch rpc, barrier": peer("barrier"),
            "gang call, barrier": timed(lambda: gang.barrier(calls="gang")),
            "calls of ranks, barrier": timed(lambda: gang.barrier(calls="ranks")),
            "torch rpc, all_reduce 4 B": peer("all_reduce"),
            "gang call, all_reduce 4 B": timed(lambda: gang.all_reduce(refs, in_place=True, calls="gang")),
            "calls of ranks, all_reduce 4 B": timed(
                lambda: gang.all_reduce(refs, in_place=True, calls="ranks")
            ),
            "one rank, describe": timed(gang[0].status),
        }
        times: dict[str, list[float]] = {way: [] for way in ways}
        for block in range(blocks + 1):
            for way, run in ways.items():
                taken = run(BLOCK)
                if block:
                    times[way] += taken
    return times


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--blocks", type=int, default=10, help=f"blocks of {BLOCK} calls of each way (default: %(default)s)"
    )
    times = measure(parser.parse_args().blocks)
    middle = {way: statistics.median(taken) for way, taken in times.items()}
    for way, taken in times.items():
        p99 = sorted(taken)[int(len(taken) * 0.99)]
        what = way.partition(", ")[2]
        beside = middle.get(f"torch rpc, {what}")
        ratio = (
            f"   {middle[way] / beside:.2f} of torch rpc" if beside and not way.startswith("torch") else ""
        )
        print(
            f"{way:32} p50 {middle[way] * 1e6:6.0f}   p99 {p99 * 1e6:6.0f}"
            f"   mean {statistics.mean(taken) * 1e6:6.0f} us{ratio}"
        )


if __name__ == "__main__":
    main()
