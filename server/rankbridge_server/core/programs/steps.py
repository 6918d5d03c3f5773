"""The steps of a program, planned once and run as often as it says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from ..errors import BridgeError
from ..operations.gathers import GatherLayout, GatherPlan
from ..operations.operation import Entry, Errand, Plan, Site, Transfer
from .cells import NotYetKnown, Output, ProgramCells
from .program import ProgramLoop, ProgramOperation, ProgramStep, number_of

Run = Callable[[], None]


class Action:
    """One collective of a program. `terms`: what all members must agree on, with its number.

    `payload`, `settle` and `begin` are called once it is `planned`.
    """

    def __init__(self, site: Site, cells: ProgramCells, number: str, step: ProgramOperation) -> None:
        listed = getattr(step.args, "layout", None) is GatherLayout.LIST
        self._cells = cells
        self._number = number
        self._step = step
        self._output = Output(cells, step.name, listed=listed)
        self._site = replace(site, refs=cells, reserve=self._output.reserve)
        self._plan: Plan | None = None
        self._entry: Entry | None = None

    @property
    def planned(self) -> bool:
        """Whether its plan is made."""
        return self._plan is not None

    @property
    def settled(self) -> bool:
        """Whether it is known what it gives."""
        return self._plan is not None and not (isinstance(self._plan, GatherPlan) and not self._plan.settled)

    @property
    def terms(self) -> str:
        """With the name that it gives; while it cannot be planned, that it comes later."""
        name = f"{self._step.name!r} = " if self._step.name else ""
        its = self._plan.terms if self._plan is not None else "later"
        return f"{self._number} {name}{self._step.operation.name} {its}".rstrip()

    def plan(self) -> None:
        """Make its plan, if what it takes is known. Raises what a plan raises, with the step's number."""
        try:
            plan = self._step.operation.plan(self._site, self._step.args)
            if isinstance(plan, Transfer | Errand):
                raise TypeError(f"{self._step.operation.name} is no collective")
            self._plan = plan
            self._give()
        except NotYetKnown:
            self._output.unknown()
        except BridgeError as error:
            raise self._named(error) from error

    def payload(self) -> bytes:
        """What this rank gives all others before it runs."""
        return self._its_plan().payload()

    def settle(self, payloads: Sequence[bytes]) -> None:
        """Learn what it gives from what all members gave. Raises MISMATCH, or RESOURCE_EXHAUSTED on this rank alone."""
        plan = self._its_plan()
        if isinstance(plan, GatherPlan) and not plan.settled:
            try:
                plan.settle(payloads)
                self._give()
            except BridgeError as error:
                raise self._named(error) from error

    def enter_with(self, entry: Entry) -> None:
        """Every run of it has this entry."""
        self._entry = entry

    def begin(self) -> Run:
        """What runs it once: results go to the program's own cells, all else is as it was."""
        run, entry = self._its_plan().run, self._entry
        if entry is None:
            raise RuntimeError("an action without its entry")
        its = entry

        def once() -> None:
            try:
                run(its)()
            except BridgeError as error:
                raise self._named(error) from error

        return once

    def abandon(self) -> None:
        """Let go of its plan."""
        if self._plan is not None:
            self._plan.abandon()

    def _give(self) -> None:
        if not self.settled:
            self._output.unknown()
        elif getattr(self._step.args, "in_place", False):
            ref_id = self._step.args.ref_id
            self._cells.change(ref_id)
            self._output.alias(self._cells.held(self._site.session_id, ref_id))
        else:
            self._output.done()

    def _its_plan(self) -> Plan:
        if self._plan is None:
            raise RuntimeError("an action without its plan")
        return self._plan

    def _named(self, error: BridgeError) -> BridgeError:
        message = f"step {self._number}, {self._step.operation.name}: {error.failure.message}"
        return BridgeError(replace(error.failure, message=message))


class Repetition:
    """A loop of a program."""

    def __init__(self, number: str, count: int, body: Sequence[Action | Repetition]) -> None:
        self.terms = f"{number} loop {count}"
        self.body = body
        self._count = count

    def begin(self) -> Run:
        """What runs it once, which is `count` times its body."""
        count = self._count
        runs = [step.begin() for step in self.body]
        if len(runs) == 1:
            (only,) = runs

            def alone() -> None:
                for _ in range(count):
                    only()

            return alone

        def together() -> None:
            for _ in range(count):
                for run in runs:
                    run()

        return together


def made(
    site: Site, cells: ProgramCells, steps: Sequence[ProgramStep], within: str = ""
) -> list[Action | Repetition]:
    """The steps, none of them planned. `within`: number of the loop that they are in."""
    its: list[Action | Repetition] = []
    for place, step in enumerate(steps):
        number = number_of(place, within)
        if isinstance(step, ProgramLoop):
            its.append(Repetition(number, step.count, made(site, cells, step.steps, number)))
        else:
            its.append(Action(site, cells, number, step))
    return its


def in_order(steps: Sequence[Action | Repetition]) -> list[Action | Repetition]:
    """The steps as they are written, loops before what is in them."""
    its: list[Action | Repetition] = []
    for step in steps:
        its.append(step)
        if isinstance(step, Repetition):
            its += in_order(step.body)
    return its
