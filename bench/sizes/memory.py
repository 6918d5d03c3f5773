"""How much memory a process takes for something that it does. Linux only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Generic, TypeVar

T = TypeVar("T")

_FORGET_PEAK = "5"


def resident_bytes(pid: int) -> int:
    """Resident memory of a process now; memory that it shares counts whole."""
    return _status(pid, "VmRSS:")


@dataclass(frozen=True, slots=True)
class Done(Generic[T]):
    """What came of something, and what it took.

    Attributes:
        result: What it gave.
        seconds: How long it took.
        grown: Bytes by which the resident memory of each process grew at most meanwhile.
    """

    result: T
    seconds: float
    grown: list[int]


def watched(pids: Sequence[int], run: Callable[[], T]) -> Done[T]:
    """Does something, and watches these processes meanwhile."""
    for pid in pids:
        Path(f"/proc/{pid}/clear_refs").write_text(_FORGET_PEAK)
    before = [resident_bytes(pid) for pid in pids]
    begun = perf_counter()
    result = run()
    seconds = perf_counter() - begun
    peaks = [_status(pid, "VmHWM:") for pid in pids]
    return Done(result, seconds, [max(0, peak - was) for peak, was in zip(peaks, before, strict=True)])


def _status(pid: int, name: str) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(name):
            return int(line.split()[1]) * 1024
    raise ProcessLookupError(f"process {pid} has no {name}")
