"""One gang under chaos, and the controllers that drive it."""

from __future__ import annotations

import time
import uuid
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from tests.chaos.checks import Allowed, Called, Ended, described, equal, judge
from tests.chaos.controllers.controller import Controller, Flight
from tests.chaos.findings import Findings
from tests.chaos.operations import Operation, Values
from tests.support.gangs import RunningGang

import rankbridge
from rankbridge import ErrorCode, Gang, RankBridgeError, Ref
from rankbridge.harness.usage import Usage

CALL_TIMEOUT_S = 8.0
SHORT_TIMEOUT_S = 0.4
# The clients give a rank two seconds beyond a call's timeout, and their threads need a moment on a busy machine.
PATIENCE_S = 5.0
PAIR = "pair"
Outcome: TypeAlias = tuple[RankBridgeError | None, Ref | None]


@dataclass(frozen=True)
class Begun:
    """An operation in flight: the pending calls, and what each had to do, by rank."""

    operation_id: str
    refs: dict[int, Ref]
    calls: dict[int, Called]
    pending: dict[int, Flight]


@dataclass
class Scene:
    """A gang of one size through all its rounds.

    `gang`: for looking on, and for what is no business of the round's clients. `controllers`: by client. `callers`:
    the client whose calls each rank gets in this round, by rank. `pids`: of the ranks, as they are now. `kept`: a
    tensor on each rank that lives as long as its process. `baseline`: what each process held when it was new.
    `retried`: formings that failed before one that did not.
    """

    gang: Gang
    running: RunningGang
    findings: Findings
    controllers: dict[str, Controller] = field(default_factory=dict)
    callers: Sequence[str] = ()
    pids: list[int] = field(default_factory=list)
    kept: dict[int, Ref] = field(default_factory=dict)
    baseline: dict[int, Usage] = field(default_factory=dict)
    formed: int = 0
    retried: int = 0

    @property
    def size(self) -> int:
        """Ranks in the gang."""
        return len(self.gang)

    @property
    def groups(self) -> dict[str, list[int]]:
        """Ranks of each group, in group order."""
        return {"world": list(range(self.size)), PAIR: [self.size - 1, 0]}

    def caller(self, rank: int) -> Controller:
        """Whose calls a rank gets."""
        return self.controllers[self.callers[rank]]

    def by_caller(self, ranks: Collection[int]) -> list[tuple[Controller, list[int]]]:
        """Ranks by whose calls they get, in their order."""
        names = dict.fromkeys(self.callers[rank] for rank in ranks)
        return [
            (self.controllers[name], [rank for rank in ranks if self.callers[rank] == name]) for name in names
        ]

    def put(self, values: Mapping[int, Values]) -> dict[int, Ref]:
        """Brings a tensor to each of some ranks, by the ranks' own callers."""
        refs: dict[int, Ref] = {}
        for controller, ranks in self.by_caller(values.keys()):
            refs |= controller.put({rank: values[rank] for rank in ranks})
        return refs

    def fetch(self, ref: Ref) -> Values:
        """The tensor of a ref, by its rank's caller."""
        return self.caller(ref.rank).fetch(ref)

    def release(self, refs: Mapping[int, Ref]) -> None:
        """Frees refs, by the ranks' own callers."""
        for controller, ranks in self.by_caller(refs.keys()):
            controller.release([refs[rank] for rank in ranks])

    def start(
        self,
        rank: int,
        kind: str,
        ref: Ref | None,
        group: str,
        operation_id: str,
        timeout: float,
        **options: Any,
    ) -> Flight:
        """Begins one rank's part of a collective, by its caller."""
        self.findings.calls[self.callers[rank]] += 1
        return self.caller(rank).start(
            rank, kind, ref, options, group=group, operation_id=operation_id, timeout=timeout
        )

    def begin(
        self,
        operation: Operation,
        group: str,
        *,
        absent: Collection[int] = (),
        other: Mapping[int, Operation] | None = None,
        timeout: float = CALL_TIMEOUT_S,
    ) -> Begun:
        """Begins an operation on the members of a group.

        Args:
            operation: What to do.
            group: Where.
            absent: Ranks that are not called.
            other: Ranks that are called for something else.
            timeout: Of each call, in seconds.
        """
        self.findings.begin_operation()
        members = self.groups[group]
        operation_id = uuid.uuid4().hex
        parts = {rank: (other or {}).get(rank, operation) for rank in members}
        inputs = {rank: part.inputs(len(members))[place] for place, (rank, part) in enumerate(parts.items())}
        refs = self.put(inputs)
        results = operation.results(operation.inputs(len(members)))
        calls = {
            rank: Called(inputs[rank], results[place], parts[rank].in_place)
            for place, rank in enumerate(members)
        }
        pending = {
            rank: self.start(
                rank, parts[rank].kind, refs[rank], group, operation_id, timeout, **parts[rank].options
            )
            for rank in members
            if rank not in absent
        }
        return Begun(operation_id, refs, calls, pending)

    def collect(self, begun: Begun, struck: float, *, gone: Collection[int] = ()) -> dict[int, Outcome]:
        """Waits for an operation's end on every rank that was called.

        Args:
            begun: The operation.
            struck: When the fault came, of `time.monotonic`.
            gone: Ranks that are the fault's own, and no survivors.
        """

        def ended(rank: int) -> tuple[int, Outcome]:
            outcome = self._outcome(begun, rank)
            if outcome[0] is not None and rank not in gone:
                self.findings.failed_after(time.monotonic() - struck)
            return rank, outcome

        with ThreadPoolExecutor(self.size) as threads:
            return dict(threads.map(ended, begun.pending))

    def judge(
        self,
        begun: Begun,
        outcomes: Mapping[int, Outcome],
        allowed: Mapping[int, Allowed],
        *,
        gone: Collection[int] = (),
    ) -> None:
        """Checks outcomes and tensors on every rank, also on those that were not called, and frees the tensors.

        Args:
            begun: The operation.
            outcomes: How it ended, by rank.
            allowed: How it may end, by rank.
            gone: Ranks that cannot be asked for their tensors any more.
        """
        ended = {
            rank: Ended(error, begun.calls[rank].expected if error is None else None, None)
            if rank in gone
            else self._ended(begun.refs[rank], error, result)
            for rank, (error, result) in outcomes.items()
        }
        judge(self.findings, begun.calls, ended, allowed)
        for rank in begun.refs.keys() - outcomes.keys() - set(gone):
            if not equal(got := self.fetch(begun.refs[rank]), begun.calls[rank].before):
                self.findings.wrong_result(
                    f"rank {rank} was not called, and its tensor became {described(got)}"
                )
        self.release({rank: ref for rank, ref in begun.refs.items() if rank not in gone})

    def good(self, operation: Operation, group: str) -> bool:
        """Does an operation that must succeed; False: it did not, and that has been noted."""
        begun = self.begin(operation, group)
        outcomes = self.collect(begun, time.monotonic())
        self.judge(begun, outcomes, dict.fromkeys(begun.pending, Allowed(frozenset())))
        return all(error is None for error, _ in outcomes.values())

    def _ended(self, ref: Ref, error: RankBridgeError | None, result: Ref | None) -> Ended:
        after = self.fetch(ref)
        if result is None:
            return Ended(error, None, after)
        fetched = self.fetch(result)
        if result.id != ref.id:
            self.release({ref.rank: result})
        return Ended(error, fetched, after)

    def _outcome(self, begun: Begun, rank: int) -> Outcome:
        try:
            outcome = begun.pending[rank].outcome(CALL_TIMEOUT_S + PATIENCE_S)
            error, result = outcome.error, outcome.value
            if error is not None and error.code is ErrorCode.CANCELLED and error.indefinite:
                # The caller let go; what became of the call, the rank knows.
                return self._truth(begun, rank)
        except TimeoutError as unanswered:
            error, result = rankbridge.DeadlineExceededError(str(unanswered), indefinite=True), None
        # A rank that answers so says in which phase; without one, no rank answered.
        if error is not None and error.code is ErrorCode.DEADLINE_EXCEEDED and error.phase == "unspecified":
            self.findings.hang(f"rank {rank} did not answer in time: {error}")
        return error, result

    def _truth(self, begun: Begun, rank: int) -> Outcome:
        try:
            return None, self.caller(rank).await_operation(rank, begun.operation_id, timeout=CALL_TIMEOUT_S)
        except RankBridgeError as error:
            return error, None
