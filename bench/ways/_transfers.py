"""Tensors from a rank and to it, however they travel."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy

from bench.operation import TRANSFERRED
from bench.subject import Timed, timed
from rankbridge import Gang, Ref


def transfers(gang: Gang, *, shared: bool) -> dict[str, Timed]:
    """Of rank 1, or the only one. `shared`: whether they must go by shared memory; fails if they did not."""
    rank = gang[1 % len(gang)]

    def checked(run: Timed) -> Timed:
        def checking(count: int) -> list[float]:
            before = rank.transfers
            times = run(count)
            after = rank.transfers
            if shared and after.streamed > before.streamed:
                raise RuntimeError(f"not by shared memory: {after.reason}")
            return times

        return checking

    operations = {}
    for name, nbytes in TRANSFERRED.items():
        operations[f"fetch_{name}"] = checked(timed(_fetching(gang, nbytes)))
        operations[f"put_{name}"] = checked(timed(_putting(gang, nbytes), gang.release))
    return operations


def _fetching(gang: Gang, nbytes: int) -> Callable[[], object]:
    rank = gang[1 % len(gang)]

    @cache
    def held() -> Ref:
        return rank.create("uint8", nbytes)

    return lambda: rank.get(held())


def _putting(gang: Gang, nbytes: int) -> Callable[[], Ref]:
    rank = gang[1 % len(gang)]

    @cache
    def whole() -> numpy.ndarray:
        return numpy.ones(nbytes, numpy.uint8)

    return lambda: rank.put(whole())
