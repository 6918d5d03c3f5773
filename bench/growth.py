"""How cost grows with ranks: the same few calls on more and more sidecars of one machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from bench.contender import Absent, Contender
from bench.samples import Measure, Samples

SIZES = (8, 16, 32, 64, 128, 256)
QUICK_SIZES = (8, 64, 256)

COUNTED = ("control_bytes_per_follower", "control_messages_per_follower")
_CALLS = {"gang": 20, "ranks": 6}
_COUNTED_CALLS = 3


def measure(
    sizes: Sequence[int], scale: float, samples: Samples, log: Path, say: Callable[[str], None]
) -> None:
    """Measures one size after the other.

    Args:
        sizes: Sidecars.
        scale: Of the number of calls.
        samples: To which it adds.
        log: Directory for what they write to standard error.
        say: Is told how far it is.
    """
    for size in sizes:
        say(f"{size} sidecars")
        with Contender("sidecars", str(size), log=log) as sidecars:
            sidecars.begun()
            samples.versions[sidecars.name] = sidecars.versions
            for place, why in sidecars.missing.items():
                samples.lack(why, sidecars.name, *([place] if place else []))
            for way, names in sidecars.ways.items():
                for name in names:
                    _take(sidecars, way, name, size, scale, samples)


def _take(sidecars: Contender, way: str, name: str, size: int, scale: float, samples: Samples) -> None:
    calls = _COUNTED_CALLS if name in COUNTED else max(1, round(_CALLS[way] * scale))
    try:
        sidecars.block(way, name, 1)
        block = sidecars.block(way, name, calls)
    except Absent as failed:
        samples.lack(f"failed at {size} sidecars: {failed}", sidecars.name, way, name)
        return
    samples.add(Measure(sidecars.name, way, name, size), block.seconds, block.cpu)
    samples.peak_bytes[sidecars.name, size] = block.peak_bytes
