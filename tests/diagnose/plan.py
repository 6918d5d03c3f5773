"""Which rank a fault hits, and when: drawn by its name and a seed, alike in the job and in who judges."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path

SIZE = 4
PAIRS = ((0, 2), (1, 3))


@dataclass(frozen=True)
class Plan:
    """A fault's ranks and step."""

    victim: int
    other: int
    step: int

    @classmethod
    def drawn(cls, name: str, seed: int) -> Plan:
        """By chance, from name and seed."""
        chance = random.Random(f"{name} {seed}")
        victim, other = chance.sample(range(SIZE), 2)
        return cls(victim, other, chance.randrange(4, 12))

    @property
    def partner(self) -> int:
        """The other member of the victim's pair."""
        return next(b if a == self.victim else a for a, b in PAIRS if self.victim in (a, b))


def marker(folder: Path, rank: int) -> Path:
    """The file that a rank makes when its fault begins."""
    return folder / f"hit-{rank}"
