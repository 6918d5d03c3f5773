"""Running several collectives as one operation: admitted at once, committed at once.

Shapes depend on shapes alone, never on elements, so the inputs of every step are known before the first step runs. Some
are known only after the arrivals, because they depend on ragged tensors of other members: their steps are planned after
the admission, and all members agree once more before the first step runs.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import replace
from io import BytesIO

from ..errors import BridgeError, ErrorCode, Phase, exhausted, failed_on, invalid
from ..operations.operation import Entry, Plan, Site, operation
from ..operations.outcome import Outcome
from .cells import ProgramCells
from .program import Coalesce, ProgramOperation, ProgramStep, RunProgram, check
from .steps import Action, made
from .terms import COALESCE, RUN_PROGRAM, terms_of

MAX_PAYLOADS = 4 * 1024 * 1024
"""Bytes of the payloads of all members of a program in one admission."""

_LENGTH = struct.Struct("<I")


@operation()
def run_program(site: Site, args: RunProgram) -> Plan:
    """Members agree on the steps and their order, on counts and on names."""
    check(args)
    return ProgramPlan(site, RUN_PROGRAM, args.steps, args.results)


@operation()
def coalesce(site: Site, args: Coalesce) -> Plan:
    """Members agree on the operations and their order."""
    if not args.operations:
        raise invalid("nothing to coalesce", expected="one operation or more", got="none")
    steps = [
        ProgramOperation(operation, its, str(number))
        for number, (operation, its) in enumerate(args.operations)
    ]
    return ProgramPlan(site, COALESCE, steps)


class ProgramPlan:
    """The plans of all steps, on the program's own cells. `name`: of the operation.

    `results`: names of the results to keep. None: all results are kept, no step sees the result of another, and the
    steps' numbers are their names.
    """

    def __init__(
        self, site: Site, name: str, steps: Sequence[ProgramStep], results: Sequence[str] | None = None
    ) -> None:
        """Plans the steps whose inputs are known. Raises a plan's error with the step's number."""
        self._site = site
        self._name = name
        self._results = results
        self.cells = ProgramCells(site, snapshots=results is None)
        inside = site._replace(refs=self.cells, reserve=self.cells.reserve)
        self._planned: list[Action] = []
        self._whole, written = made(inside, self.cells, steps)
        self._actions = [step for step in written if isinstance(step, Action)]
        self._kept = list(map(str, range(len(written)))) if results is None else results
        try:
            self._planned = self._plan()
            self.cells.check_results(self._kept)
            self._payload = self._joined()
        except BridgeError:
            self.abandon()
            raise
        self.terms = terms_of([step.terms for step in written], results, site.size)

    def payload(self) -> bytes:
        """The payloads of all planned steps, if any has one."""
        return self._payload

    def run(self, entry: Entry) -> Callable[[], Outcome]:
        """Runs the steps. The returned function makes refs of the results, and changes refs in place."""
        self._share(entry)
        while not all(action.settled for action in self._planned):
            self._share(entry._replace(payloads=self._plan_more(entry)))
        return self.commit(self.enter(self.cells.inputs()))

    def settle(self, entry: Entry) -> None:
        """Sets the shapes that an earlier run of the same steps has learned, and all members agreed on."""
        self._share(entry)
        self._settle()

    def enter(self, inputs: Sequence[object]) -> Sequence[object]:
        """Runs the steps on `inputs`, those of `cells`. Returns the tensors for the changed refs."""
        self.cells.load(inputs)
        self._whole.run()
        return self.cells.changes()

    def commit(self, changes: Sequence[object]) -> Callable[[], Outcome]:
        """A function that commits the kept results and the `changes` of refs."""
        return lambda: self.cells.commit(self._kept, changes)

    def abandon(self) -> None:
        """Frees the slots that were not filled. Drops all tensors, because a lane keeps its last job a while."""
        for action in self._actions:
            action.abandon()
        self.cells.give_back()
        del self._whole, self._actions, self._planned, self.cells

    def _plan(self) -> list[Action]:
        """Plans the steps that can be planned now and were not before."""
        new = [action for action in self._actions if not action.planned]
        for action in new:
            action.prepare()
        return [action for action in new if action.planned]

    def _settle(self) -> None:
        """Sets the result shapes of the steps that were planned last."""
        for action in self._planned:
            if not action.settled:
                action.prepare()

    def _joined(self) -> bytes:
        payloads = [action.payload() for action in self._planned]
        whole = b"".join(_LENGTH.pack(len(it)) + it for it in payloads) if any(payloads) else b""
        most = MAX_PAYLOADS // self._site.size
        if len(whole) > most and self._results is not None:
            message = (
                "the members have to exchange too many sizes and shapes: divide the program into several"
            )
            raise exhausted(message, most=f"{most} bytes", got=str(len(whole)))
        return whole

    def _share(self, entry: Entry) -> None:
        """Gives each step that was planned last its part of the members' payloads."""
        if not any(entry.payloads):
            for action in self._planned:
                action.entry = entry
            return
        members = [_parted(payload, len(self._planned)) for payload in entry.payloads]
        for action, payloads in zip(self._planned, zip(*members, strict=True), strict=True):
            action.entry = entry._replace(payloads=payloads)

    def _plan_more(self, entry: Entry) -> Sequence[bytes]:
        """Plans steps whose inputs have become known, and agrees with all members; returns their payloads."""
        trouble: BridgeError | None = None
        try:
            self._settle()
            self._planned = self._plan()
            self._payload = self._joined()
        except BridgeError as error:
            trouble = error
        report = f"{trouble.failure.code.name} {trouble}" if trouble is not None else ""
        reports = entry.agree(f"{self._name}: what has become known", report.encode())
        if any(reports):
            refusal = _refusal(self._site.group.description.ranks, [it.decode() for it in reports])
            if trouble is None:
                raise refusal
            ranks = trouble.failure.ranks or refusal.failure.ranks
            raise BridgeError(replace(trouble.failure, phase=Phase.ADMISSION, ranks=ranks)) from trouble
        if not self._planned:
            return ()
        terms = terms_of([action.terms for action in self._planned], self._results, self._site.size)
        return entry.agree(f"{self._name} {terms}", self._payload)


def _refusal(ranks: Sequence[int], reports: Sequence[str]) -> BridgeError:
    """The error for members that could go on when others cannot."""
    codes, troubles = zip(*(report.partition(" ")[::2] for report in reports), strict=True)
    first = next(filter(None, codes))
    return failed_on(ErrorCode[first], "the program cannot run", ranks, troubles)


def _parted(whole: bytes, count: int) -> list[bytes]:
    """Splits joined payloads into `count`; all are empty if `whole` is."""
    payloads: list[bytes] = []
    rest = BytesIO(whole or bytes(count * _LENGTH.size))
    for _ in range(count):
        (length,) = _LENGTH.unpack(rest.read(_LENGTH.size))
        payloads.append(rest.read(length))
    return payloads
