"""Drives a gang of four ranks or more: ``python -m rankbridge.demo ENDPOINTS_FILE``.

Prints one line for each step, the same lines in every language but for the times::

    columns 1-12   the step
    columns 13-66  what was done
    columns 67-76  how long it took, in milliseconds with one decimal, right-aligned, then " ms"

Rank r brings a float32[256, 1024] whose element i, counted in row-major order, is (r + 1) * (i mod 251), so that
every expected value is exact. Every value is checked; the time for checking is not counted in the steps. The last
line is "all values are right". The first difference ends the program with status 1 and a line on stderr.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

import rankbridge
from rankbridge import Gang, Ref

T = TypeVar("T")
Floats = npt.NDArray[np.float32]

__all__ = ["Difference", "main", "run"]

SHAPE = (256, 1024)


class Difference(Exception):
    """Something is not as it should be."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the demo, and gives the exit status: 0, or 1 after a line on stderr.

    Args:
        arguments: Of the command line. None: the process's own.
    """
    parser = argparse.ArgumentParser(prog="python -m rankbridge.demo", description="Drives a running gang.")
    parser.add_argument("endpoints", metavar="ENDPOINTS_FILE", help="what `rankbridge up` wrote")
    options = parser.parse_args(arguments)
    try:
        run(options.endpoints)
    except (Difference, rankbridge.RankBridgeError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def run(target: rankbridge.Target) -> None:
    """Takes every step, and checks every value.

    Raises:
        Difference: A value is wrong.
        RankBridgeError: A call failed.
        OSError: The endpoints file cannot be read.
    """
    started = time.perf_counter()
    gang = _step("connect", lambda: _connect(target))
    with gang:
        _drive(gang)
        _step("close", _saying(gang.close, "session and connections"))
    _line("total", "", time.perf_counter() - started)
    print("all values are right", flush=True)


def _connect(target: rankbridge.Target) -> tuple[Gang, str]:
    gang = rankbridge.connect(target)
    status = gang[0].status()
    what = f"{status.world_size} ranks, backend {status.backend}, generation {status.generation}"
    return gang, what


def _drive(gang: Gang) -> None:
    size = len(gang)
    inputs = [_tensor(rank + 1) for rank in range(size)]
    refs = _step("put", lambda: (gang.put(inputs), f"float32{list(SHAPE)} on each of {size} ranks"))
    _step("barrier", _saying(gang.barrier, f"group world, {size} members"))
    copies = _step("broadcast", lambda: (gang.broadcast(refs, src_rank_in_group=2), "from rank 2 to all"))
    sums = _step("all_reduce", lambda: (gang.all_reduce(refs, op="sum"), "sum, to all"))
    gathered = _step(
        "gather", lambda: (gang.gather(refs, dst_rank_in_group=1, dim=0), "to rank 1, along dimension 0")
    )
    joined = [ref for ref in gathered if ref is not None]
    _check("gather gives the others none", joined == [gathered[1]])

    _read(gang, "broadcast", copies, [_tensor(3)] * size)
    _read(gang, "all_reduce", sums, [_tensor(size * (size + 1) // 2)] * size)
    _read(gang, "gather", joined, [np.concatenate(inputs)])
    _read(gang, "put", refs, inputs)

    everything = [*joined, *refs, *copies, *sums]
    released = _step("release", lambda: (gang.release(everything), f"{len(everything)} refs"))
    _check("every ref is released", released == len(everything))
    _check("no ref is left", not any(gang.list_refs()))


def _tensor(factor: int) -> Floats:
    elements = np.arange(SHAPE[0] * SHAPE[1]) % 251 * factor
    return elements.astype(np.float32).reshape(SHAPE)


def _read(gang: Gang, what: str, refs: list[Ref], expected: Sequence[Floats]) -> None:
    count = "1 tensor" if len(refs) == 1 else f"{len(refs)} tensors"
    tensors: list[Any] = _step("read back", lambda: (gang.get(refs), f"{count} of {what}"))
    for ref, got, wanted in zip(refs, tensors, expected, strict=True):
        same = got.dtype == wanted.dtype and np.array_equal(got, wanted)
        _check(f"{what} on rank {ref.rank} has the expected values", same)


def _step(name: str, do: Callable[[], tuple[T, str]]) -> T:
    started = time.perf_counter()
    result, what = do()
    _line(name, what, time.perf_counter() - started)
    return result


def _saying(do: Callable[[], None], what: str) -> Callable[[], tuple[None, str]]:
    def step() -> tuple[None, str]:
        do()
        return None, what

    return step


def _line(name: str, what: str, seconds: float) -> None:
    print(f"{name:<12}{what:<54}{seconds * 1000:>10.1f} ms", flush=True)


def _check(what: str, so: bool) -> None:
    if not so:
        raise Difference(f"not so: {what}")


if __name__ == "__main__":
    sys.exit(main())
