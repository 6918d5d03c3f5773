"""What a run does: drawn from its seed before it begins, so that a seed repeats it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from tests.chaos.faults.fault import Fault
from tests.chaos.faults.kinds import FAULTS
from tests.chaos.operations import Operation, draw
from tests.chaos.scene import PAIR

BOTH = "both"
# Whose operations a round has.
CLIENTS = ("python", "elixir", BOTH)
_SHARES = {"python": 2, "elixir": 2, BOTH: 1}
_MOST_GOOD = 2


@dataclass(frozen=True)
class Round:
    """One fault on the gang of `size` ranks: good operations first, each with its group, then the one that it hits.

    `callers`: the client whose calls each rank gets, by rank.
    """

    number: int
    size: int
    callers: tuple[str, ...]
    good: tuple[tuple[Operation, str], ...]
    operation: Operation
    group: str
    fault: Fault

    @property
    def client(self) -> str:
        """Whose operations it has: one client's, or those of both."""
        return self.callers[0] if len(set(self.callers)) == 1 else BOTH

    def __str__(self) -> str:
        absent = ", absent" if self.fault.absent else ""
        victim = f"rank {self.fault.victim} of {self.size}{absent}"
        by = self.client if self.client != BOTH else ", ".join(self.callers)
        return (
            f"round {self.number}: {self.fault.kind} of {victim}, {self.operation} on {self.group}, by {by}"
        )


def plan(
    rounds: int, seed: int, sizes: Sequence[int], max_bytes: int, clients: Sequence[str] = CLIENTS
) -> list[Round]:
    """Draws all rounds. Every kind of fault comes once before any comes again, in random order.

    Args:
        rounds: How many.
        seed: The same one gives the same rounds.
        sizes: Ranks in the gangs.
        max_bytes: Largest tensor.
        clients: Whose operations rounds have, of `CLIENTS`. Other ones change nothing else.
    """
    random, who = Random(seed), Random(f"clients of {seed}")
    kinds: list[type[Fault]] = []
    drawn: list[Round] = []
    for number in range(1, rounds + 1):
        if not kinds:
            kinds = random.sample(FAULTS, len(FAULTS))
        size = random.choice(list(sizes))
        good = tuple(_drawn(random, size, max_bytes) for _ in range(random.randint(0, _MOST_GOOD)))
        operation, group = _drawn(random, size, max_bytes)
        fault = kinds.pop().draw(random, size)
        drawn.append(Round(number, size, _callers(who, size, clients), good, operation, group, fault))
    return drawn


def _callers(random: Random, size: int, clients: Sequence[str]) -> tuple[str, ...]:
    (client,) = random.choices(clients, [_SHARES[it] for it in clients])
    if client != BOTH:
        return (client,) * size
    # The first and the last rank are in every group: so both clients are in every operation.
    first, last = random.sample(["python", "elixir"], 2)
    return (first, *random.choices(["python", "elixir"], k=size - 2), last)


def _drawn(random: Random, size: int, max_bytes: int) -> tuple[Operation, str]:
    group = "world" if random.random() < 0.7 else PAIR
    return draw(random, size if group == "world" else 2, max_bytes), group
