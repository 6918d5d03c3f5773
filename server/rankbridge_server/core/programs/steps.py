"""The steps of a program, planned once and run as often as it says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import repeat
from typing import cast

from ..errors import BridgeError, invalid
from ..operations.gathers import GatherPlan
from ..operations.operation import Entry, Plan, Site
from .cells import NotYetKnown, ProgramCells
from .program import ProgramLoop, ProgramOperation, ProgramStep, numbered


class Action:
    """One collective of a program. It can run once it has its `entry`."""

    __slots__ = ("_cells", "_number", "_plan", "_site", "_step", "entry", "planned", "settled")
    entry: Entry
    _plan: Plan

    def __init__(self, site: Site, cells: ProgramCells, number: str, step: ProgramOperation) -> None:
        self.planned = False
        self.settled = False
        self._site = site
        self._cells = cells
        self._number = number
        self._step = step

    @property
    def terms(self) -> str:
        """The terms of the collective with its number; "later" while its inputs are unknown."""
        name = f"{self._step.name!r} = " if self._step.name and not self._cells.snapshots else ""
        its = self._plan.terms if self.planned else "later"
        return f"{self._number} {name}{self._step.operation.name} {its}".rstrip()

    def prepare(self) -> None:
        """Plans the collective if its inputs are known. If it is planned, sets its result shapes from the payloads.

        Raises what a plan raises, and MISMATCH, with the step's number.
        """
        operation = self._step.operation
        try:
            if not operation.recorded:
                raise invalid("it is no collective", expected="a collective", got=operation.name)
            self._cells.begin(self._step)
            if not self.planned:
                self._plan = cast(Plan, operation.plan(self._site, self._step.args))
                self.planned = True
            elif isinstance(self._plan, GatherPlan):
                self._plan.settle(self.entry.payloads)
            self.settled = not isinstance(self._plan, GatherPlan) or self._plan.settled
            self._cells.end(self.settled)
        except NotYetKnown:
            self._cells.end(False)
        except BridgeError as error:
            raise self._named(error) from error

    def payload(self) -> bytes:
        """This rank's payload for all other members."""
        return self._plan.payload()

    def run(self) -> None:
        """Runs the collective once. Only the program's own cells change."""
        try:
            self._plan.run(self.entry)()
        except BridgeError as error:
            raise self._named(error) from error

    def abandon(self) -> None:
        """Frees the slots of its plan."""
        if self.planned:
            self._plan.abandon()

    def _named(self, error: BridgeError) -> BridgeError:
        where = f"{'operation' if self._cells.snapshots else 'step'} {self._number}"
        message = f"{where}, {self._step.operation.name}: {error.failure.message}"
        return BridgeError(replace(error.failure, message=message))


class Repetition:
    """A loop of a program. `body`: its steps, in order."""

    def __init__(self, number: str, count: int) -> None:
        self.terms = f"{number} loop {count}"
        self.body: list[Action | Repetition] = []
        self._count = count

    def run(self) -> None:
        """Runs its body `count` times."""
        turn = [step.run for step in self.body]
        if len(turn) == 1:
            # The most common loop, and the one with the shortest turns.
            for run in repeat(turn[0], self._count):
                run()
            return
        for _ in range(self._count):
            for run in turn:
                run()


def made(
    site: Site, cells: ProgramCells, steps: Sequence[ProgramStep]
) -> tuple[Repetition, list[Action | Repetition]]:
    """Makes a program, and the list of its steps as they are written, none of them planned."""
    loops = {"": Repetition("", 1)}
    written: list[Action | Repetition] = []
    for number, step in numbered(steps):
        if isinstance(step, ProgramLoop):
            loops[number] = Repetition(number, step.count)
        item = loops[number] if isinstance(step, ProgramLoop) else Action(site, cells, number, step)
        loops[number.rpartition(".")[0]].body.append(item)
        written.append(item)
    return loops[""], written
