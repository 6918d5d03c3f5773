"""The controller of one rank: its plan, its groups, its ordinary step."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.diagnose.plan import PAIRS, Plan, marker

from rankbridge import Gang, Ref

STEPS = 1_000_000
Step = Callable[[int], None]


class Rank:
    """What a script on this rank would do, call by call."""

    def __init__(self, gang: Gang, number: int, plan: Plan, folder: Path) -> None:
        self.gang = gang
        self.number = number
        self.plan = plan
        self.client = gang[number]
        self.pair = f"pair-{number % 2}"
        self._folder = folder
        self.batch = self.tensor(16)

    @property
    def is_victim(self) -> bool:
        """Whether this rank goes wrong."""
        return self.number == self.plan.victim

    @property
    def is_partner(self) -> bool:
        """Whether it is the other member of the victim's pair."""
        return self.number == self.plan.partner

    def is_hit(self, step: int) -> bool:
        """Whether it goes wrong at this step."""
        return self.is_victim and step == self.plan.step

    def hit(self) -> None:
        """Says that the fault begins."""
        marker(self._folder, self.number).touch()

    def moved(self) -> None:
        """Says that it goes on."""
        marker(self._folder, self.number + 100).touch()

    def tensor(self, elements: int, dtype: str = "float32") -> Ref:
        """A tensor of zeros."""
        return self.client.create(dtype, elements)

    def next_batch(self, seconds: float = 0.005) -> None:
        """Ordinary work."""
        self.client.call("next_batch", seconds)

    def all_reduce(self, ref: Ref | None = None, **options: Any) -> None:
        """An all_reduce in place."""
        self.client.all_reduce(ref or self.batch, in_place=True, **options)

    def step(self, step: int) -> None:
        """An ordinary step."""
        self.next_batch()
        self.all_reduce()
        self.all_reduce(group=self.pair)

    def run(self, step: Step) -> None:
        """Does all steps."""
        for it in range(STEPS):
            step(it)
            self.moved()

    def stall(self, name: str, victims: tuple[int, ...]) -> None:
        """Ordinary steps; the victims call a function that does not return."""

        def step(it: int) -> None:
            if it == self.plan.step and self.number in victims:
                self.client.call("stall", name)
            self.step(it)

        self.run(step)


def make_groups(gang: Gang) -> None:
    """Pairs, as the jobs have them, twice."""
    for place, pair in enumerate(PAIRS):
        gang.new_group(f"pair-{place}", list(pair))
        gang.new_group(f"again-{place}", list(pair))
