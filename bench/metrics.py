"""`python -m bench.metrics`: what counting costs, as the ratio of two gangs' times, called in turn."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from statistics import median

import numpy as np

import rankbridge
from bench.gang import ARGUMENTS, gang
from rankbridge import Gang

BLOCK = 50
"""Calls of one gang before it is the other's turn."""


def barrier(gang: Gang) -> Callable[[], object]:
    """A barrier."""
    return gang.barrier


def all_reduce(gang: Gang) -> Callable[[], object]:
    """An all_reduce of four bytes, in place."""
    refs = gang.put([np.ones(1, np.float32)] * len(gang))
    return lambda: gang.all_reduce(refs, in_place=True)


def ratios(on: Callable[[], object], off: Callable[[], object], blocks: int) -> tuple[float, float, float]:
    """The median of `on` by that of `off`, and both, in microseconds."""
    times: dict[Callable[[], object], list[float]] = {on: [], off: []}
    for block in range(blocks):
        for call in (on, off) if block % 2 else (off, on):
            for _ in range(BLOCK):
                start = time.perf_counter()
                call()
                times[call].append(time.perf_counter() - start)
    return median(times[on]) / median(times[off]), median(times[on]) * 1e6, median(times[off]) * 1e6


def main() -> None:
    """Prints a line for each operation."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=4, help="ranks (default: %(default)s)")
    parser.add_argument("--blocks", type=int, default=60, help="blocks of each gang (default: %(default)s)")
    options = parser.parse_args()
    counting = (*ARGUMENTS, "--metrics", "127.0.0.1:0")
    with (
        gang(options.size, counting) as counted,
        gang(options.size) as plain,
        rankbridge.connect(str(counted)) as on,
        rankbridge.connect(str(plain)) as off,
    ):
        for made in (barrier, all_reduce):
            # The first calls of a gang are slower.
            ratios(calls_on := made(on), calls_off := made(off), 4)
            ratio, with_us, without_us = ratios(calls_on, calls_off, options.blocks)
            print(f"{made.__name__:12} on/off {ratio:.3f}   {with_us:.0f} us, {without_us:.0f} us")


if __name__ == "__main__":
    main()
