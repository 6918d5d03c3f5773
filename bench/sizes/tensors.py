"""One large tensor: put, fetched, reduced; how long it takes, and how much memory beyond the tensor itself."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy
import numpy.typing

import rankbridge
from bench.sizes.memory import Done, watched

SLACK = 96 << 20
"""Bytes that a step may take beyond whole tensors: chunks on their way, threads, what an allocator keeps."""

_BLOCK = 1 << 24
_TIMEOUT_S = 600.0

Array = numpy.typing.NDArray[numpy.int32]


@dataclass(frozen=True, slots=True)
class Expected:
    """Tensors by which memory may grow: of each rank, and of the client."""

    rank: float
    client: float


EXPECTED = {
    "gRPC, put": Expected(rank=1, client=0),
    "gRPC, fetch": Expected(rank=0, client=1),
    # Client and rank show the same memory, which counts for both, with room for an eighth more.
    # Memory counts when it is touched: a rank touches the tensor that was put when it is fetched.
    "shared memory, put": Expected(rank=0.125, client=1.125),
    "shared memory, fetch": Expected(rank=2.125, client=1.125),
    "create": Expected(rank=1, client=0),
    # The result, which is made beside the tensor and takes its place.
    "all_reduce in place": Expected(rank=1, client=0),
}


@dataclass(frozen=True, slots=True)
class Step:
    """What was done with a tensor of `nbytes` bytes: seconds, and bytes by which memory grew at most meanwhile."""

    name: str
    nbytes: int
    seconds: float
    rank: int
    client: int

    def check(self) -> None:
        """Raises RuntimeError if more memory was taken than is expected."""
        expected = EXPECTED[self.name]
        for who, grown, tensors in (
            ("rank", self.rank, expected.rank),
            ("client", self.client, expected.client),
        ):
            if grown > tensors * self.nbytes + SLACK:
                raise RuntimeError(
                    f"{self.name} of {self.nbytes} bytes: the {who} took {grown} bytes more, "
                    f"expected at most {tensors} tensors and {SLACK} bytes"
                )

    def __str__(self) -> str:
        return (
            f"{self.name:22s} {self.seconds:7.2f} s  {self.nbytes / self.seconds / 1e9:5.2f} GB/s   "
            f"rank +{self.rank / self.nbytes:.3f} x   client +{self.client / self.nbytes:.3f} x"
        )


def counting(nbytes: int) -> Array:
    """int32 of which each tells its place: the first is the lowest."""
    size = nbytes // 4
    array = numpy.empty(size, numpy.int32)
    for start in range(0, size, _BLOCK):
        array[start : start + _BLOCK] = _part(size, start)
    return array


def check(fetched: Any, nbytes: int, times: int = 1) -> None:
    """Raises RuntimeError unless every element is `times` that of `counting`."""
    size = nbytes // 4
    if fetched.dtype != numpy.int32 or fetched.shape != (size,):
        raise RuntimeError(f"expected int32[{size}], got {fetched.dtype}{list(fetched.shape)}")
    for start in range(0, size, _BLOCK):
        if not numpy.array_equal(fetched[start : start + _BLOCK], _part(size, start) * times):
            raise RuntimeError(f"other elements within {_BLOCK} from element {start} on")


def transfers(name: str, rank: rankbridge.Rank, source: Array) -> list[Step]:
    """Puts a tensor, fetches it, and checks every element. `name`: how it travels."""
    pids = [rank.status().pid, os.getpid()]
    put = watched(pids, lambda: rank.put(source, timeout=_TIMEOUT_S))
    fetched = watched(pids, lambda: rank.get(put.result, timeout=_TIMEOUT_S))
    check(fetched.result, source.nbytes)
    rank.release(put.result)
    return [_step(f"{name}, put", source.nbytes, put), _step(f"{name}, fetch", source.nbytes, fetched)]


def all_reduce(gang: rankbridge.Gang, nbytes: int) -> list[Step]:
    """Makes a tensor on each rank, adds them in place, and checks every element of the results."""
    pids = [*(rank.status().pid for rank in gang), os.getpid()]
    size = nbytes // 4
    first = rankbridge.arange(-(size // 2))
    made = watched(pids, lambda: gang.create("int32", size, init=first))
    reduced = watched(pids, lambda: gang.all_reduce(made.result, in_place=True, timeout=_TIMEOUT_S))
    for ref in reduced.result:
        check(gang[ref.rank].get(ref, timeout=_TIMEOUT_S), nbytes, len(gang))
    gang.release(reduced.result)
    return [_step("create", nbytes, made), _step("all_reduce in place", nbytes, reduced)]


def _part(size: int, start: int) -> Array:
    return numpy.arange(start, min(size, start + _BLOCK), dtype=numpy.int32) - numpy.int32(size // 2)


def _step(name: str, nbytes: int, done: Done[Any]) -> Step:
    *ranks, client = done.grown
    return Step(name, nbytes, done.seconds, max(ranks), client)
