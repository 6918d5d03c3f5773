"""Many refs of one rank: made, listed, released."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import rankbridge
from bench.sizes.memory import watched

_AT_ONCE = 64


@dataclass(frozen=True, slots=True)
class Refs:
    """Of `count` refs: seconds to make, list and release them all, and bytes of the rank's memory for each."""

    count: int
    made: float
    listed: float
    released: float
    bytes_each: float

    def __str__(self) -> str:
        return (
            f"{self.count} refs: made in {self.made:.2f} s, {_AT_ONCE} at a time; listed in {self.listed:.2f} s; "
            f"released in {self.released:.2f} s; {self.bytes_each:.0f} bytes each"
        )


def refs(rank: rankbridge.Rank, count: int) -> Refs:
    """Makes tensors of one element, lists them, checks that none is missing or out of order, and releases them."""
    pid = rank.status().pid
    made = watched([pid], lambda: _made(rank, count))
    listed = watched([pid], rank.list_refs)
    if [ref.id for ref in listed.result] != sorted((ref.id for ref in made.result), key=_number):
        raise RuntimeError(f"{len(listed.result)} refs are listed of {count}, or not in their order")
    released = watched([pid], lambda: rank.release(made.result))
    if released.result != count or rank.list_refs():
        raise RuntimeError(f"{released.result} refs were released of {count}")
    return Refs(count, made.seconds, listed.seconds, released.seconds, made.grown[0] / count)


def _made(rank: rankbridge.Rank, count: int) -> list[rankbridge.Ref]:
    begun: deque[rankbridge.Pending[rankbridge.Ref]] = deque()
    made = []
    for _ in range(count):
        if len(begun) == _AT_ONCE:
            made.append(begun.popleft().result())
        begun.append(rank.start("create", "float32", ()))
    made.extend(pending.result() for pending in begun)
    return made


def _number(ref_id: str) -> int:
    return int(ref_id.rpartition(".")[2])
