"""What a run does: drawn from its seed before it begins, so that a seed repeats it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from tests.chaos.faults import FAULTS, Fault
from tests.chaos.operations import Operation, draw
from tests.chaos.scene import PAIR

_MOST_GOOD = 2


@dataclass(frozen=True)
class Round:
    """One fault on the gang of `size` ranks: good operations first, each with its group, then the one that it hits."""

    number: int
    size: int
    good: tuple[tuple[Operation, str], ...]
    operation: Operation
    group: str
    fault: Fault

    def __str__(self) -> str:
        absent = ", absent" if self.fault.absent else ""
        victim = f"rank {self.fault.victim} of {self.size}{absent}"
        return f"round {self.number}: {self.fault.kind} of {victim}, {self.operation} on {self.group}"


def plan(rounds: int, seed: int, sizes: Sequence[int], max_bytes: int) -> list[Round]:
    """Draws all rounds. Every kind of fault comes once before any comes again, in random order.

    Args:
        rounds: How many.
        seed: The same one gives the same rounds.
        sizes: Ranks in the gangs.
        max_bytes: Largest tensor.
    """
    random = Random(seed)
    kinds: list[type[Fault]] = []
    drawn: list[Round] = []
    for number in range(1, rounds + 1):
        if not kinds:
            kinds = random.sample(FAULTS, len(FAULTS))
        size = random.choice(list(sizes))
        good = tuple(_drawn(random, size, max_bytes) for _ in range(random.randint(0, _MOST_GOOD)))
        operation, group = _drawn(random, size, max_bytes)
        drawn.append(Round(number, size, good, operation, group, kinds.pop().draw(random, size)))
    return drawn


def _drawn(random: Random, size: int, max_bytes: int) -> tuple[Operation, str]:
    group = "world" if random.random() < 0.7 else PAIR
    return draw(random, size if group == "world" else 2, max_bytes), group
