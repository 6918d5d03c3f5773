"""Faults: what is done to the ranks of a gang while a step goes on."""

from __future__ import annotations

import contextlib
import contextvars
import os
import random
import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rankbridge import RankBridgeError
from rankbridge.harness.control_links import NotPermittedError, close_link
from rankbridge.harness.gangs import RunningGang

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
    """

    def __init__(
        self, gang: RunningGang, faults: Sequence[Mapping[str, Any]], rng: random.Random, operation_id: str
    ) -> None:
        """Draws what is drawn; does nothing yet."""
        self._gang = gang
        self._pids = gang.pids
        self._operation_id = operation_id
        self._over = threading.Event()
        self._threads: list[threading.Thread] = []
        self._failures: list[str] = []
        self._done = 0
        for fault in faults:
            if "delay_ms" in fault:
                continue
            after = fault.get("after_ms", 0)
            seconds = (rng.uniform(*after) if isinstance(after, list) else after) / 1000
            context = contextvars.copy_context()
            run = (context.run, self._run, fault, seconds)
            self._threads.append(threading.Thread(target=run[0], args=run[1:], daemon=True))

    def begin(self) -> None:
        """Lets time run."""
        for thread in self._threads:
            thread.start()

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
        late = len(self._threads) - self._done - len(self._failures)
        return [*self._failures, *(["the step had ended before the fault came"] if late > 0 else [])]

    def _run(self, fault: Mapping[str, Any], seconds: float) -> None:
        too_late = not self._reached(fault["at"]) if "at" in fault else seconds and self._over.wait(seconds)
        if too_late:
            return
        try:
            self._do(fault)
        except (OSError, LookupError, NotPermittedError, RankBridgeError) as error:
            self._failures.append(f"the fault cannot be had: {error}")
        else:
            self._done += 1

    def _reached(self, point: str) -> bool:
        """Waits until a rank is at a point; False: the step ended before."""
        while not self._over.is_set():
            for rank in self._gang.client:
                with contextlib.suppress(RankBridgeError):
                    if any(it.phase in _PHASES[point] for it in rank.pending().operations):
                        return True
            self._over.wait(_POLL_S)
        return False

    def _do(self, fault: Mapping[str, Any]) -> None:
        signals = {"kill": signal.SIGKILL, "stop": signal.SIGSTOP, "cont": signal.SIGCONT}
        for word, signum in signals.items():
            for rank in fault.get(word, ()):
                os.kill(self._pids[rank], signum)
        for rank in fault.get("drop_link", ()):
            _drop(self._pids, rank)
        for rank in fault.get("cancel", ()):
            self._gang.client[rank].cancel(self._operation_id)
        if "slow" in fault:
            self._slow([self._pids[rank] for rank in fault["slow"]])

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


def send(pids: Sequence[int], signum: signal.Signals) -> None:
    """Sends a signal to processes, of which some may have ended."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signum)


def delays(faults: Sequence[Mapping[str, Any]]) -> Callable[[int], float]:
    """Gives by how many seconds a rank is called late."""
    late = {int(rank): ms / 1000 for fault in faults for rank, ms in fault.get("delay_ms", {}).items()}
    return lambda rank: late.get(rank, 0.0)
