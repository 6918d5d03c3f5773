"""What the calls of one schedule did, as seen from inside their ranks, and what they may have done.

The model is sequential: an operation of one id happens at all members of its group or nowhere, on what their refs hold
then, and nothing else changes a ref.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import reduce
from typing import cast

import torch
from tests.model.gang import Member

from rankbridge_server.core.coordinator import Coordinator, ReduceOp
from rankbridge_server.core.errors import BridgeError, ErrorCode, Failure, Phase
from rankbridge_server.core.operations.operation import (
    Entry,
    FunctionPlan,
    LocalPlan,
    Operation,
    Plan,
    Site,
    Transfer,
)
from rankbridge_server.core.operations.outcome import Outcome
from rankbridge_server.core.operations.reductions import AllReduce, all_reduce
from rankbridge_server.core.refs.refs import Ref
from rankbridge_server.core.task import VERDICT_GRACE, Task
from rankbridge_server.links.sockets import SocketLinks

DEFINITE = {ErrorCode.MISMATCH, ErrorCode.PEER_MISSING, ErrorCode.CANCELLED}
EXPECTED = {
    *DEFINITE,
    ErrorCode.PEER_LOST,
    ErrorCode.ABORTED,
    ErrorCode.BACKEND_FAILED,
    ErrorCode.DEADLINE_EXCEEDED,
    ErrorCode.UNKNOWN_SESSION,
    ErrorCode.UNKNOWN_REF,
    ErrorCode.RELEASED_REF,
}


@dataclass(eq=False)
class Call:
    """One submission of one operation to one process.

    `slow`: seconds that its rank still takes when the data is there. `given`: what its ref held when it entered
    the backend. `value`: what it committed. `formed`: of which forming its generation is; numbers begin anew once all
    processes of a gang are others.
    """

    process: Member
    operation_id: str
    op: ReduceOp
    group: str
    in_place: bool
    session_id: str
    timeout: float
    slow: float
    called: float
    refused: Failure | None = None
    task: Task | None = None
    first: bool = False
    generation: int = 0
    formed: bytes = b""
    members: int = 0
    rank_in_group: int = 0
    runs: int = 0
    given: float | None = None
    value: float | None = None
    answered: float | None = None
    answer: Ref | Failure | None = None
    withdrawn: bool = False

    def __str__(self) -> str:
        how = f"{self.process} {self.operation_id} {self.op} {self.group} generation {self.generation}"
        return f"{how}: given {self.given} value {self.value} answer {self.answer} outcome {self.failure}"

    @property
    def failure(self) -> Failure | None:
        """What its task failed with."""
        if self.task is None or not self.task.done:
            return None
        error = self.task.error
        return error.failure if isinstance(error, BridgeError) else None


@dataclass
class History:
    """All calls; which generations were ended where; what each ref of each process holds."""

    calls: list[Call] = field(default_factory=list)
    ended: set[tuple[Member, int]] = field(default_factory=set)
    held: dict[tuple[Member, str], float] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)

    def operation(self, call: Call) -> Operation[AllReduce]:
        """`all_reduce`, watched on behalf of `call`."""

        def plan(site: Site, args: AllReduce) -> Plan:
            inner = all_reduce.plan(site, args)
            assert not isinstance(inner, Transfer | LocalPlan | FunctionPlan)
            call.first = True
            call.generation = site.generation.number
            links = site.generation.links
            assert isinstance(links, SocketLinks)
            call.formed = links._secret
            call.members = site.size
            call.rank_in_group = site.membership.rank_in_group
            return _Watched(self, call, inner, args.ref_id)

        return Operation(all_reduce.name, all_reduce.args, plan)

    def committed(self, call: Call, ref_id: str, value: float) -> None:
        """A result was put into a ref."""
        call.value = value
        self.held[(call.process, ref_id)] = value
        if (call.process, call.generation) in self.ended:
            self.wrong.append(f"committed after the end of its generation: {call}")

    def check(self) -> None:
        """Whatever holds at any moment."""
        assert not self.wrong, self.wrong
        for call in self.calls:
            self._check_call(call)
        begun = [(call.process, call.operation_id) for call in self.calls if call.first and not call.refused]
        assert len(set(begun)) == len(begun), f"an id began twice on one rank: {begun}"
        for calls in self._operations().values():
            self._check_operation(calls)

    def check_end(self) -> None:
        """What holds in the end, when every timeout has passed."""
        self.check()
        for call in self.calls:
            if call.process.dead or call.refused is not None:
                continue
            assert call.answer is not None, f"hangs: {call}"
            assert call.task is not None
            assert call.task.done, f"answered but never done: {call}"

    def _operations(self) -> dict[tuple[bytes, str, str], list[Call]]:
        operations: dict[tuple[bytes, str, str], list[Call]] = {}
        for call in self.calls:
            if call.first and call.refused is None:
                operations.setdefault((call.formed, call.group, call.operation_id), []).append(call)
        return operations

    def _check_call(self, call: Call) -> None:
        assert call.runs <= 1, f"ran twice: {call}"
        if call.refused is not None:
            assert not call.refused.indefinite, f"refused, but indefinite: {call}"
            assert not call.runs, f"refused, but ran: {call}"
        for failure in (call.failure, call.answer):
            if isinstance(failure, Failure):
                assert failure.code in EXPECTED, f"unexpected: {call}"
                assert failure.place is not None, f"nowhere: {call}"
                assert not (failure.code in DEFINITE and failure.indefinite), f"must be definite: {call}"
                assert failure.indefinite or failure.phase is Phase.CHECK or failure.code in DEFINITE, (
                    f"it came as far as {failure.phase}, but is definite: {call}"
                )
        if call.answered is not None and call.process.resumed < call.called:
            assert call.task is not None
            # Who repeats a call waits as long as the first caller does.
            latest = max(call.called, call.task.deadline) + VERDICT_GRACE
            assert call.answered <= latest + 0.001, f"answered after {call.answered - call.called} s: {call}"
        if call.withdrawn:
            failure = call.failure
            assert failure is not None, f"said withdrawn, but did not fail: {call}"
            refused = failure.phase is Phase.CHECK and not failure.indefinite
            assert failure.code is ErrorCode.CANCELLED or refused, (
                f"said withdrawn, but failed otherwise: {call}"
            )
        if call.failure is not None:
            assert call.value is None, f"failed, but committed: {call}"

    def _check_operation(self, calls: list[Call]) -> None:
        done = [call for call in calls if call.value is not None]
        entered = [call for call in calls if call.runs]
        if entered:
            ops = {call.op for call in entered}
            assert len(ops) == 1, f"members that do not agree entered: {_all(calls)}"
            arrived = [call for call in calls if call.op in ops]
            assert len(arrived) == entered[0].members, f"some entered before all came: {_all(calls)}"
            for call in calls:
                failure = call.failure
                assert failure is None or failure.indefinite, f"definite, but some entered: {_all(calls)}"
        if not done:
            return
        given = {call.rank_in_group: call.given for call in entered if call.given is not None}
        assert len(given) == done[0].members, f"done without everyone: {_all(calls)}"
        right = _reduced(done[0].op, [given[place] for place in sorted(given)])
        for call in done:
            assert call.value == right, f"wrong, should be {right}: {_all(calls)}"


class _Watched:
    """A plan that says what it is given and what it commits."""

    def __init__(self, history: History, call: Call, inner: Plan, ref_id: str) -> None:
        self._history = history
        self._call = call
        self._inner = inner
        self._ref_id = ref_id
        self.terms = inner.terms

    def payload(self) -> bytes:
        return self._inner.payload()

    def run(self, entry: Entry) -> Callable[[], Outcome]:
        history, call = self._history, self._call
        call.runs += 1
        seen = _Seen(entry.coordinator, call, self._enters)
        commit = self._inner.run(entry._replace(coordinator=cast(Coordinator, seen)))

        def watched() -> Outcome:
            ref = commit()
            assert isinstance(ref, Ref)
            history.committed(call, ref.id, element(seen.result))
            return ref

        return watched

    def _enters(self, tensor: object) -> None:
        call = self._call
        call.given = element(tensor)
        held = self._history.held[(call.process, self._ref_id)]
        if call.given != held:
            self._history.wrong.append(f"its ref should hold {held}: {call}")

    def abandon(self) -> None:
        self._inner.abandon()


class _Seen:
    """A coordinator that shows what goes in and what comes out."""

    def __init__(self, coordinator: Coordinator, call: Call, enters: Callable[[object], None]) -> None:
        self._coordinator = coordinator
        self._call = call
        self._enters = enters
        self.result: object = None

    def all_reduce(self, tensor: object, op: ReduceOp, timeout: float) -> object:
        self._enters(tensor)
        self.result = self._coordinator.all_reduce(tensor, op, timeout)
        if self._call.slow:
            self._call.process.simulation.park(self._call.slow)
        return self.result


def element(tensor: object) -> float:
    """The one value that a tensor repeats."""
    values = set(cast(torch.Tensor, tensor).tolist())
    assert len(values) == 1, f"not one value: {values}"
    return float(values.pop())


def _reduced(op: ReduceOp, given: list[float]) -> float:
    tensors = torch.tensor(given, dtype=torch.float32)
    # One after another and in the order of ranks, as the fake backend rounds.
    return float(reduce(torch.add, tensors) if op is ReduceOp.SUM else tensors.max())


def _all(calls: list[Call]) -> str:
    return "\n  " + "\n  ".join(map(str, calls))
