"""One gang under chaos, and the controller that drives it and mends it by itself."""

from __future__ import annotations

import time
import uuid
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from tests.chaos.checks import Allowed, Called, Ended, judge, same, told
from tests.chaos.findings import Findings
from tests.chaos.operations import Operation, Values
from tests.chaos.usage import SETTLE_S, Usage, settled, usage
from tests.support.gangs import RunningGang, up

import rankbridge
from rankbridge import ErrorCode, Gang, Pending, RankBridgeError, Ref

CALL_TIMEOUT_S = 8.0
SHORT_TIMEOUT_S = 0.4
WHOLE_TIMEOUT_S = 30.0
MAX_PENDING = 16
MAX_SESSION_REFS = 64
# The client gives a rank two seconds beyond a call's timeout, and its threads need a moment on a busy machine.
_PATIENCE_S = 5.0
_KEPT_ELEMENTS = 16 * 1024
# Threads that a rank's server makes before it reuses them: more than all calls of a round hold at once.
_AWAITS = 12
# A thread or descriptor of gRPC or of the interpreter that comes with some first use, and stays.
SLACK = 1
PAIR = "pair"
Outcome: TypeAlias = tuple[RankBridgeError | None, Ref | None]


class GangBrokenError(Exception):
    """The gang was not whole again in time; nothing more can be tried on it."""


@dataclass(frozen=True)
class Begun:
    """An operation in flight: the pending calls, and what each had to do, by rank."""

    operation_id: str
    refs: dict[int, Ref]
    calls: dict[int, Called]
    pending: dict[int, Pending[Any]]


@dataclass
class Scene:
    """A gang of one size through all its rounds.

    `pids`: of the ranks, as they are now. `kept`: a tensor on each rank that lives as long as its process.
    `baseline`: what each process held when it was new. `retried`: formings that failed before one that did not.
    """

    gang: Gang
    running: RunningGang
    findings: Findings
    kind: str = ""
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
        self.findings.operations += 1
        members = self.groups[group]
        operation_id = uuid.uuid4().hex
        parts = {rank: (other or {}).get(rank, operation) for rank in members}
        inputs = {rank: part.inputs(len(members))[place] for place, (rank, part) in enumerate(parts.items())}
        put = self.gang.put([inputs[rank] for rank in members], group=self._group(group))
        refs = dict(zip(members, put, strict=True))
        results = operation.results(operation.inputs(len(members)))
        calls = {
            rank: Called(inputs[rank], results[place], parts[rank].in_place)
            for place, rank in enumerate(members)
        }
        pending = {
            rank: self.gang[rank].start(
                parts[rank].kind,
                refs[rank],
                group=group,
                operation_id=operation_id,
                timeout=timeout,
                **parts[rank].options,
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
                self.findings.times[self.kind].to_error.append(time.monotonic() - struck)
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
            if not same(got := self._fetch(begun.refs[rank]), begun.calls[rank].before):
                self.findings.wrong_result(f"rank {rank} was not called, and its tensor became {told(got)}")
        self.gang.release([ref for rank, ref in begun.refs.items() if rank not in gone])

    def finish(self, begun: Begun, allowed: Mapping[int, Allowed], struck: float) -> None:
        """Waits for an operation's end, and judges it."""
        self.judge(begun, self.collect(begun, struck), allowed)

    def good(self, operation: Operation, group: str) -> bool:
        """Does an operation that must succeed; False: it did not, and that has been noted."""
        begun = self.begin(operation, group)
        outcomes = self.collect(begun, time.monotonic())
        self.judge(begun, outcomes, dict.fromkeys(begun.pending, Allowed(frozenset())))
        return all(error is None for error, _ in outcomes.values())

    def is_whole(self, struck: float) -> None:
        """Requires that the gang is whole as it is, without a forming."""
        self._one_reduction()
        self.findings.times[self.kind].to_whole.append(time.monotonic() - struck)
        self._look_around(replaced=())

    def make_whole(self, struck: float, survivor: int, *, replaced: Collection[int] = ()) -> None:
        """Forms the next generation by way of a survivor, until an operation succeeds on all ranks.

        Args:
            struck: When the fault came, of `time.monotonic`.
            survivor: Who forms it.
            replaced: Ranks whose processes may be new.

        Raises:
            GangBrokenError: It is not whole in time.
        """
        deadline = time.monotonic() + WHOLE_TIMEOUT_S
        while True:
            try:
                self.gang.form(via_rank=survivor)
                self._one_reduction()
                break
            except RankBridgeError as error:
                self.retried += 1
                if time.monotonic() > deadline:
                    self.findings.hang(f"not whole after {WHOLE_TIMEOUT_S:.0f} s: {error}")
                    raise GangBrokenError(str(error)) from error
        self.formed += 1
        self.findings.times[self.kind].to_whole.append(time.monotonic() - struck)
        self._look_around(replaced=replaced)

    def count_leaks(self, seconds: float = SETTLE_S) -> dict[int, tuple[Usage, Usage]]:
        """Finds what the present processes hold more than when they were new, after `seconds` at the latest.

        Returns:
            What each held then and holds now, by pid.
        """
        pairs: dict[int, tuple[Usage, Usage]] = {}
        for rank, pid in enumerate(self.pids):
            then = self.baseline[pid]
            now = settled(pid, then, seconds)
            pairs[pid] = then, now
            for what, before, after in (
                ("threads", then.threads, now.threads),
                ("file descriptors", then.fds, now.fds),
            ):
                if after > before + SLACK:
                    self.findings.leak(f"rank {rank} of {self.size} had {before} {what}, and has {after}")
        return pairs

    def welcome(self, ranks: Collection[int]) -> None:
        """Gives new processes a tensor to keep, makes them use all they ever will, and notes what they hold."""
        for rank in ranks:
            self.pids[rank] = self.gang[rank].status().pid
            self.kept[rank] = self.gang[rank].put(_kept(rank))
            self._warm_up(rank)
            self.baseline[self.pids[rank]] = usage(self.pids[rank])

    def fill_queue(self, rank: int, operation_id: str) -> list[Pending[Any]]:
        """Makes a rank hold as many pending operations as it may; the first has the id."""
        ids = [operation_id] + [""] * (MAX_PENDING - 1)
        pending = [self.gang[rank].start("barrier", operation_id=it, timeout=CALL_TIMEOUT_S) for it in ids]
        self.wait_pending(rank, MAX_PENDING)
        return pending

    def wait_pending(self, rank: int, number: int) -> None:
        """Waits until a rank has so many pending operations."""
        deadline = time.monotonic() + CALL_TIMEOUT_S
        while (found := self.gang[rank].status().pending_operations) != number:
            if time.monotonic() > deadline:
                raise GangBrokenError(f"rank {rank} has {found} pending operations, not {number}")

    def _warm_up(self, rank: int) -> None:
        operation_id = uuid.uuid4().hex
        pending = self.fill_queue(rank, operation_id)
        first = self._await_until_known(rank, operation_id)
        waiting = [first, *(self._start_await(rank, operation_id) for _ in range(_AWAITS))]
        for it in [*waiting, *pending]:
            it.cancel()
        self.wait_pending(rank, 0)

    def _await_until_known(self, rank: int, operation_id: str) -> Pending[Any]:
        self.gang[rank].poll(operation_id)
        return self._start_await(rank, operation_id)

    def _start_await(self, rank: int, operation_id: str) -> Pending[Any]:
        return self.gang[rank].start("await_operation", operation_id, timeout=SHORT_TIMEOUT_S)

    def _group(self, name: str) -> str | rankbridge.Group:
        return name if name == "world" else rankbridge.Group(name=name, ranks=tuple(self.groups[name]))

    def _ended(self, ref: Ref, error: RankBridgeError | None, result: Ref | None) -> Ended:
        after = self._fetch(ref)
        if result is None:
            return Ended(error, None, after)
        fetched = self._fetch(result)
        if result.id != ref.id:
            self.gang.release(result)
        return Ended(error, fetched, after)

    def _outcome(self, begun: Begun, rank: int) -> Outcome:
        try:
            outcome = begun.pending[rank].outcome(CALL_TIMEOUT_S + _PATIENCE_S)
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
            return None, self.gang[rank].await_operation(begun.operation_id, timeout=CALL_TIMEOUT_S)
        except RankBridgeError as error:
            return error, None

    def _fetch(self, ref: Ref) -> Values:
        fetched = self.gang.get(ref)
        assert isinstance(fetched, np.ndarray)
        return fetched

    def _one_reduction(self) -> None:
        refs = self.gang.put([np.array([1, rank], np.int64) for rank in range(self.size)])
        try:
            results = self.gang.all_reduce(refs, timeout=CALL_TIMEOUT_S)
            expected = np.array([self.size, sum(range(self.size))], np.int64)
            for rank, result in enumerate(results):
                if not same(got := self._fetch(result), expected):
                    self.findings.wrong_result(f"rank {rank} got {told(got)} when whole again")
            self.gang.release(results)
        finally:
            self.gang.release(refs)

    def _look_around(self, replaced: Collection[int]) -> None:
        pids = [status.pid for status in self.gang.status()]
        new = [rank for rank, pid in enumerate(pids) if pid != self.pids[rank]]
        for rank in new:
            if rank not in replaced:
                self.findings.wrong_error(f"the process of rank {rank} was not touched, and is another")
        for rank in range(self.size):
            if rank not in new and not same(got := self._fetch(self.kept[rank]), _kept(rank)):
                self.findings.wrong_result(f"what rank {rank} keeps became {told(got)}")
        self.gang.barrier(group=self._group(PAIR), timeout=CALL_TIMEOUT_S)
        self.welcome(new)


@contextmanager
def scene(directory: Path, size: int, findings: Findings) -> Iterator[Scene]:
    """Starts a gang with small limits, and connects a controller to it."""
    limits = ["--max-pending", str(MAX_PENDING), "--max-session-refs", str(MAX_SESSION_REFS)]
    with up(directory, size, options=limits) as running, rankbridge.connect(running.targets) as gang:
        it = Scene(gang, running, findings, pids=list(running.pids))
        gang.new_group(PAIR, it.groups[PAIR])
        it.welcome(range(size))
        yield it


def _kept(rank: int) -> Values:
    return np.arange(_KEPT_ELEMENTS, dtype=np.int32) * (rank + 1)
