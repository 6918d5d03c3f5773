"""Faults: what is done to the ranks of a gang while a step goes on."""

from __future__ import annotations

import contextlib
import contextvars
import os
import random
import signal
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from rankbridge import Rank, RankBridgeError, Ref, UnknownOperationError
from rankbridge.harness.calls import Called
from rankbridge.harness.connections import NotPermittedError, close_between, close_link
from rankbridge.harness.consistency import MOST_FILLERS, ranks_of
from rankbridge.harness.gangs import RunningGang
from rankbridge.harness.point_server import Armed
from rankbridge.harness.points import Point, point_of

_POLL_S = 0.002
_SLOW_S = 0.02
_PHASES = {"waiting": ("admission", "data"), "entered": ("data",)}


class Injector:
    """Does the faults of one step, each in a thread of its own, until the step has ended.

    Args:
        gang: Whose ranks.
        faults: As `fault` of the vocabulary.
        rng: For what is drawn.
        operation_id: Of the step's calls, to be withdrawn.
        expected: The first call of each rank that the step calls without delay: `waiting` is when all have come.
    """

    def __init__(
        self,
        gang: RunningGang,
        faults: Sequence[Mapping[str, Any]],
        rng: random.Random,
        operation_id: str = "",
        expected: Sequence[Called] = (),
    ) -> None:
        """Draws what is drawn; does nothing yet."""
        self._gang = gang
        self._pids = gang.pids
        self._operation_id = operation_id
        self._expected = expected
        self._over = threading.Event()
        self._threads: list[threading.Thread] = []
        self._failures: list[str] = []
        self._late: list[str] = []
        self._full: list[int] = []
        self._fillers: list[Ref] = []
        self._points: list[tuple[int, Point, Mapping[str, Any]]] = []
        for fault in faults:
            if (point := _point(fault)) is not None:
                ranks = ranks_of(fault)
                if point.rank is not None:
                    self._points.append((point.rank, point, fault))
                else:
                    self._points += [(it, point, _of_rank(fault, it)) for it in ranks]
            elif "quota" in fault:
                self._full += fault["quota"]
            elif "delay_ms" not in fault:
                after = fault.get("after_ms", 0)
                seconds = (rng.uniform(*after) if isinstance(after, list) else after) / 1000
                self._thread(self._run, fault, seconds)

    def arm(self) -> None:
        """Prepares what is to be there before the calls begin: full sessions, collectives at which ranks wait.

        Raises:
            LookupError: A rank does not answer, or the gang has no points, or no quota.
            RankBridgeError: A session cannot be filled.
        """
        armed: list[Armed] = []
        try:
            for rank in self._full:
                self._fill(rank)
            for rank, point, fault in self._points:
                if self._gang.points is None:
                    raise LookupError(f"collectives of functions are no points in this gang: {point.text}")
                armed.append(self._gang.points.arm(self._pids[rank], point))
                self._thread(self._run_at, armed[-1], rank, fault)
        except (LookupError, RankBridgeError):
            for it in armed:
                it.go()
            self._empty()
            raise

    def begin(self) -> None:
        """Lets time run."""
        for thread in self._threads:
            thread.start()

    def _thread(self, run: Callable[..., None], *arguments: object) -> None:
        context = contextvars.copy_context()
        thread = threading.Thread(target=context.run, args=(run, *arguments), daemon=True)
        self._threads.append(thread)

    def done(self, timeout: float) -> list[str]:
        """Waits until all has been done, and gives what could not be."""
        deadline = time.monotonic() + timeout
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        return self.end()

    def end(self) -> list[str]:
        """Ends what goes on until the step ends; gives what could not be done, and what came too late."""
        self._over.set()
        for thread in self._threads:
            thread.join()
        self._empty()
        return [*self._failures, *dict.fromkeys(self._late)]

    def _fill(self, rank: int) -> None:
        """Fills the session on a rank. Raises LookupError: it has no quota, or a large one."""
        most = dict(self._gang.wanted.limits).get("max_session_refs", MOST_FILLERS + 1)
        if most > MOST_FILLERS:
            raise LookupError(
                f"`quota` needs a gang with limits.max_session_refs of at most {MOST_FILLERS:,}"
            )
        on_rank = self._gang.client[rank]
        for _ in range(most - len(on_rank.list_refs())):
            self._fillers.append(on_rank.create("uint8", [1]))

    def _empty(self) -> None:
        """Makes room again, where the rank still has what was there."""
        for ref in self._fillers:
            with contextlib.suppress(RankBridgeError):
                self._gang.client.release(ref)
        self._fillers = []

    def _run(self, fault: Mapping[str, Any], seconds: float) -> None:
        too_late = not self._reached(fault["at"]) if "at" in fault else seconds and self._over.wait(seconds)
        if too_late:
            self._late.append("the step had ended before the fault came")
        else:
            self._try(fault)

    def _run_at(self, armed: Armed, rank: int, fault: Mapping[str, Any]) -> None:
        """Waits until a rank is at a collective, does the fault, and lets the rank go on."""
        try:
            while not armed.reached.wait(_POLL_S):
                if self._over.is_set():
                    self._late.append(f"rank {rank} did not come to the {armed.point.text}")
                    return
            if "hold" in fault:
                self._over.wait()
            self._over.wait(fault.get("delay_ms", {}).get(str(rank), 0) / 1000)
            if "slow" not in fault:
                self._try(fault)
        finally:
            armed.go(fault.get("change", {}).get(str(rank)))
        if "slow" in fault:
            self._try(fault)

    def _try(self, fault: Mapping[str, Any]) -> None:
        try:
            self._do(fault)
        except (OSError, LookupError, NotPermittedError, RankBridgeError) as error:
            self._failures.append(f"the fault cannot be had: {error}")

    def _reached(self, point: str) -> bool:
        """Waits until the ranks are at a point; False: the step ended before."""
        # One that comes after the fault would be told that the generation is over, not who is lost.
        expected = self._expected if point == "waiting" else ()
        while not self._over.is_set():
            there = {it.rank for it in self._gang.client if self._is_at(it, _PHASES[point])}
            if there and all(it.rank in there or it.is_answered() for it in expected):
                return True
            self._over.wait(_POLL_S)
        return False

    def _is_at(self, rank: Rank, phases: Collection[str]) -> bool:
        try:
            return any(it.phase in phases for it in rank.pending().operations)
        except RankBridgeError:
            return False

    def _do(self, fault: Mapping[str, Any]) -> None:
        signals = {"kill": signal.SIGKILL, "stop": signal.SIGSTOP, "cont": signal.SIGCONT}
        for word, signum in signals.items():
            strike([self._pids[rank] for rank in fault.get(word, ())], signum)
        for rank in fault.get("drop_link", ()):
            _drop(self._pids, rank)
        if "partition" in fault:
            _part(self._pids, *fault["partition"])
        for rank in fault.get("cancel", ()):
            self._cancel(rank)
        if "slow" in fault:
            self._slow([self._pids[rank] for rank in fault["slow"]])

    def _cancel(self, rank: int) -> None:
        """Withdraws a rank's call as soon as the rank has it. Raises UnknownOperationError: the step ended before."""
        while True:
            # A call may come, and the step end, between two questions: what decides is asked after the end.
            is_over = self._over.is_set()
            try:
                self._gang.client[rank].cancel(self._operation_id)
                return
            except UnknownOperationError:
                if is_over:
                    raise
                self._over.wait(_POLL_S)

    def _slow(self, pids: Sequence[int]) -> None:
        while not self._over.wait(_SLOW_S):
            send(pids, signal.SIGSTOP)
            time.sleep(_SLOW_S)
            send(pids, signal.SIGCONT)


def _drop(pids: Mapping[int, int], rank: int) -> None:
    """Closes the link between a rank and the leader; of the leader itself, those of all others."""
    if rank != 0:
        close_link(pids[rank], 0)
        return
    for other in pids.keys() - {0}:
        close_link(pids[other], 0)


def _part(pids: Mapping[int, int], one: Sequence[int], other: Sequence[int]) -> None:
    """Closes every connection between two sets of ranks. Raises LookupError: there is none."""
    closed = 0
    for rank, peer in ((rank, peer) for rank in one for peer in other):
        for it, leader in ((rank, peer), (peer, rank)):
            with contextlib.suppress(LookupError):
                close_link(pids[it], leader)
                closed += 1
        closed += close_between(pids[rank], pids[peer])
    if not closed:
        raise LookupError(f"ranks {list(one)} have no connection to ranks {list(other)}")


def strike(pids: Sequence[int], signum: signal.Signals) -> None:
    """Sends a signal to processes. Raises ProcessLookupError: one has ended, and was not just to go on."""
    if signum == signal.SIGCONT:
        # The agent ends a stopped rank some time after the others have lost it.
        send(pids, signum)
        return
    for pid in pids:
        os.kill(pid, signum)


def send(pids: Sequence[int], signum: signal.Signals) -> None:
    """Sends a signal to processes, of which some may have ended."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signum)


def delays(faults: Sequence[Mapping[str, Any]]) -> Callable[[int], float]:
    """Gives by how many seconds a rank is called late."""
    before = [it for it in faults if _point(it) is None]
    late = {int(rank): ms / 1000 for fault in before for rank, ms in fault.get("delay_ms", {}).items()}
    return lambda rank: late.get(rank, 0.0)


def _of_rank(fault: Mapping[str, Any], rank: int) -> Mapping[str, Any]:
    """Gives the part of a fault that hits one rank."""
    return {word: [rank] if isinstance(it, list) and word != "after_ms" else it for word, it in fault.items()}


def _point(fault: Mapping[str, Any]) -> Point | None:
    return point_of(fault.get("at", ""))
