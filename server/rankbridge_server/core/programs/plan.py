"""Running a program as one operation: admitted at once, committed at once.

Shapes depend on shapes alone, never on elements. So what every step takes is known before any is run, though maybe not
before the arrivals: what members learn of each other's ragged tensors decides what later steps take. These are planned
after the admission, and agreed on once more, before the first step is run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from ..errors import BridgeError, ErrorCode, Phase, failed_ranks
from ..operations.operation import Entry, Plan, Site
from ..operations.outcome import Outcome
from .cells import ProgramCells
from .coalesced import apart, joined
from .program import RunProgram, check
from .steps import Action, in_order, made
from .terms import RUN_PROGRAM, terms_of

MAX_PAYLOADS = 4 * 1024 * 1024
"""Bytes that all members together tell each other at one admission."""


def plan_run_program(site: Site, args: RunProgram) -> Plan:
    """What each of its steps agrees on, and in which order; counts and names."""
    check(args)
    return ProgramPlan(site, args)


class ProgramPlan:
    """Plans of all steps, on cells of the program's own."""

    def __init__(self, site: Site, program: RunProgram) -> None:
        """Plan what can be planned. Raises what a plan raises, with the step's number; nothing is set aside then."""
        self._site = site
        self._results = program.results
        self._cells = ProgramCells(site)
        self._steps = made(site, self._cells, program.steps)
        written = in_order(self._steps)
        self._actions = [step for step in written if isinstance(step, Action)]
        try:
            self._planned = self._plan()
            self._cells.check_results(self._results)
            self._payload = self._joined()
        except BridgeError:
            self.abandon()
            raise
        self.terms = terms_of([step.terms for step in written], self._results, site.size)

    def payload(self) -> bytes:
        """The payloads of all that could be planned, if any has one."""
        return self._payload

    def run(self, entry: Entry) -> Callable[[], Outcome]:
        """Run the steps; what is returned makes refs of results, and changes refs in place."""
        payloads = self._share(entry, entry.payloads)
        while not all(action.settled for action in self._planned):
            payloads = self._share(entry, self._plan_more(entry, payloads))
        self._cells.load()
        for run in [step.begin() for step in self._steps]:
            run()
        return lambda: self._cells.commit(self._results)

    def abandon(self) -> None:
        """Give back the room of what was not kept."""
        for action in self._actions:
            action.abandon()
        self._cells.give_back()

    def _plan(self) -> list[Action]:
        """Plan what can be planned now, and was not."""
        new = [action for action in self._actions if not action.planned]
        for action in new:
            action.plan()
        return [action for action in new if action.planned]

    def _joined(self) -> bytes:
        payloads = [action.payload() for action in self._planned]
        whole = joined(payloads) if any(payloads) else b""
        most = MAX_PAYLOADS // self._site.size
        if len(whole) > most:
            raise BridgeError.of(
                ErrorCode.RESOURCE_EXHAUSTED,
                "the members have to tell each other too much of sizes and shapes: make it several programs",
                expected=f"at most {most} bytes",
                got=str(len(whole)),
            )
        return whole

    def _share(self, entry: Entry, payloads: Sequence[bytes]) -> list[list[bytes]]:
        """Give those that were planned last their part of what all members gave; by action and rank in group."""
        members = [apart(payload, len(self._planned)) for payload in payloads]
        its = [list(mine) for mine in zip(*members, strict=True)]
        for action, mine in zip(self._planned, its, strict=True):
            action.enter_with(replace(entry, payloads=mine))
        return its

    def _plan_more(self, entry: Entry, payloads: Sequence[Sequence[bytes]]) -> Sequence[bytes]:
        """Plan what takes what has become known, agreed with all members; gives what these tell."""
        trouble: BridgeError | None = None
        try:
            for action, mine in zip(self._planned, payloads, strict=True):
                action.settle(mine)
            self._planned = self._plan()
            self._payload = self._joined()
        except BridgeError as error:
            trouble = error
        told = f"{trouble.failure.code.name} {trouble}" if trouble is not None else ""
        reports = entry.agree(f"{RUN_PROGRAM}: what has become known", told.encode())
        if trouble is not None:
            raise BridgeError(replace(trouble.failure, phase=Phase.ADMISSION)) from trouble
        if any(reports):
            raise _refused(self._site.group.description.ranks, [it.decode() for it in reports])
        if not self._planned:
            return [b""] * self._site.size
        terms = terms_of([action.terms for action in self._planned], self._results, self._site.size)
        return entry.agree(f"{RUN_PROGRAM} {terms}", self._payload)


def _refused(ranks: Sequence[int], reports: Sequence[str]) -> BridgeError:
    """What the others get when some cannot go on."""
    codes, troubles = zip(*(report.partition(" ")[::2] for report in reports), strict=True)
    failed = failed_ranks(ranks, troubles)
    first = failed[0]
    return BridgeError.of(
        ErrorCode[codes[first.rank_in_group]],
        f"{len(failed)} of {len(ranks)} ranks cannot run the program; first, rank {first.rank}: {first.detail}",
        phase=Phase.ADMISSION,
        ranks=failed,
    )
