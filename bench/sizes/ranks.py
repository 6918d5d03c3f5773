"""Many ranks in one process, on the fake backend, with real gRPC and control links."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Any

import rankbridge
from bench.gang import ARGUMENTS, gang
from bench.sizes.memory import resident_bytes
from rankbridge._plan.operations import Calls

_TIMEOUT_S = 120.0
_BACKEND = (*ARGUMENTS, "--backend", "fake")


@dataclass(frozen=True, slots=True)
class Ranks:
    """Of `size` ranks: seconds until they are up, of forming them again, and of each call; bytes of their process."""

    size: int
    up: float
    formed: float
    calls: dict[str, float]
    resident: int

    def __str__(self) -> str:
        calls = "; ".join(f"{name} {seconds * 1e3:.0f} ms" for name, seconds in self.calls.items())
        return (
            f"{self.size} ranks: up in {self.up:.2f} s; formed again in {self.formed:.2f} s; {calls}; "
            f"{self.resident / 1e6:.0f} MB in all"
        )


def ranks(size: int) -> Ranks:
    """Starts and forms them, makes each call, and checks its result."""
    begun = perf_counter()
    with gang(size, _BACKEND) as endpoints:
        up = perf_counter() - begun
        with rankbridge.connect(endpoints, timeout=_TIMEOUT_S) as many:
            calls = {name: _second(call, after) for name, (call, after) in _calls(many).items()}
            begun = perf_counter()
            many.form(timeout=_TIMEOUT_S)
            formed = perf_counter() - begun
            return Ranks(size, up, formed, calls, resident_bytes(many[0].status().pid))


def _calls(gang: rankbridge.Gang) -> dict[str, tuple[Callable[[], Any], Callable[[Any], None]]]:
    """Calls, and what is done with the result of each."""
    size = len(gang)
    refs = gang.create("int32", 4, init=[rankbridge.full(rank) for rank in range(size)])

    def check(sums: list[rankbridge.Ref]) -> None:
        # The first, the last, and one between: all of them would be as many calls again.
        for ref in (sums[0], sums[size // 2], sums[-1]):
            fetched = gang[ref.rank].get(ref, to="tensor").numpy()
            if fetched.tolist() != [size * (size - 1) // 2] * 4:
                raise RuntimeError(f"rank {ref.rank} has another sum: {fetched}")
        if gang.release(sums) != size:
            raise RuntimeError("refs are missing")

    def nothing(result: object) -> None:
        if result is not None:
            raise RuntimeError(f"unexpected: {result}")

    ways: dict[str, Calls] = {"as gang call": "gang", "by each rank": "ranks"}
    calls: dict[str, tuple[Callable[[], Any], Callable[[Any], None]]] = {"ping": (gang.ping, nothing)}
    for name, way in ways.items():
        calls[f"barrier {name}"] = (partial(gang.barrier, calls=way), nothing)
        calls[f"all_reduce {name}"] = (partial(gang.all_reduce, refs, calls=way), check)
    return calls


def _second(call: Callable[[], Any], after: Callable[[Any], None]) -> float:
    """Seconds of the second of two calls: the first makes connections, streams and threads."""
    after(call())
    begun = perf_counter()
    result = call()
    seconds = perf_counter() - begun
    after(result)
    return seconds
