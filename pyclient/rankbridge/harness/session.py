"""Steps on a gang: what scenarios and the driver have in common."""

from __future__ import annotations

import random
import signal
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from rankbridge import RankBridgeError
from rankbridge.harness.calls import Agenda, Begun, Called, begin, of_members, of_one
from rankbridge.harness.cases import faults_in
from rankbridge.harness.faults import Injector, delays, send
from rankbridge.harness.gangs import NoGang, RunningGang
from rankbridge.harness.judging import Happened
from rankbridge.harness.tensors import Tensors

FORM_TIMEOUT_S = 30.0
_QUICK_S = 5.0


@dataclass
class Going:
    """A step that goes on."""

    step: Mapping[str, Any]
    begun: Begun
    injector: Injector


class Session:
    """Steps on a gang, with tensors and groups of their own.

    Args:
        gang: The gang, which works.
        timeout: Of each call that has none of its own, in seconds.
        seed: Of whatever is drawn.
    """

    def __init__(self, gang: RunningGang, timeout: float, seed: int) -> None:
        """Made by `opened`."""
        self.gang = gang
        self.tensors = Tensors(gang.client)
        self.groups: dict[str, Sequence[int]] = {"world": range(gang.wanted.size)}
        self.timeout = timeout
        self.seed = seed
        self.disturbed = False
        self._rng = random.Random(seed)
        self._pids = gang.pids

    def new_groups(self, groups: Mapping[str, Sequence[int]]) -> None:
        """Makes groups."""
        for name, ranks in groups.items():
            self.gang.client.new_group(name, ranks, timeout=self.timeout)
            self.groups[name] = ranks

    def make(self, tensors: Mapping[str, Mapping[str, Any]]) -> None:
        """Makes tensors on every rank."""
        for place, (name, described) in enumerate(tensors.items()):
            self.tensors.make(name, described, self.groups["world"], self.seed + place)

    def begin(self, step: Mapping[str, Any], operation_id: str | None = None) -> Going:
        """Begins the calls of a step, and its faults.

        Args:
            step: The step.
            operation_id: Of a call on members. None: a new one.

        Raises:
            LookupError: A rank has not what it should bring.
        """
        faults = faults_in(step)
        late = delays(faults)
        timeout = step["timeout_ms"] / 1000 if "timeout_ms" in step else self.timeout
        at_once = step.get("wait") is False
        operation_id = operation_id or uuid.uuid4().hex
        if "call" in step:
            members = self.groups[step.get("group", "world")]
            calls = of_members(step, members, self.tensors, timeout, operation_id)
            agendas = [Agenda([it], late(it.rank), at_once) for it in calls]
        else:
            by_rank: dict[int, list[Called]] = {}
            for one in step["each"]:
                by_rank.setdefault(int(one["rank"]), []).append(of_one(one, self.tensors, timeout))
            agendas = [Agenda(each, late(rank), at_once) for rank, each in by_rank.items()]
        self.disturbed |= any("delay_ms" not in it for it in faults)
        expected = [it.calls[0] for it in agendas if it.delay == 0]
        injector = Injector(self.gang, faults, self._rng, operation_id, expected)
        injector.arm()
        begun = begin(self.gang.client, agendas)
        injector.begin()
        return Going(step, begun, injector)

    def end(self, going: Going) -> tuple[Happened, list[str]]:
        """Waits for the end of a step; gives what happened, and which faults did not."""
        calls = going.begun.ended()
        took = going.begun.took
        missed = going.injector.end() if calls else going.injector.done(self.timeout)
        happened = self.happened(calls, took)
        for call in calls:
            assert call.outcome is not None
            if call.outcome.error is not None:
                self.disturbed = True
            elif call.result_name:
                self.tensors.name(call.result_name, call.rank, call.outcome.value)
        return happened, missed

    def settle(self, happened: Happened) -> None:
        """Forgets elements that a step has changed, or may have."""
        for call in happened.calls:
            error = call.outcome.error if call.outcome else None
            in_place = call.options.get("in_place") or call.operation == "call_function"
            changes = in_place or "expected" in call.options
            if changes and (error is None or error.indefinite):
                for name in call.names:
                    self.tensors.forget(name, call.rank)

    def form(self, timeout: float) -> Happened:
        """Forms the next generation. A failure is in what it gives."""
        started = time.monotonic()
        error: RankBridgeError | None = None
        try:
            self.gang.client.form(timeout=timeout)
        except RankBridgeError as failed:
            error = failed
        took = time.monotonic() - started
        # The generation has a process that its report may come after.
        reports = self.gang.reports
        statuses = [] if error else self.gang.client.status()
        now = {it.rank: it.pid for it in statuses}
        reports.wait_until(lambda: not now.items() - reports.pids.items(), _QUICK_S)
        happened = self.happened([], took)
        happened.error = error
        for rank in happened.replaced:
            self.tensors.lost(rank)
        if error is None:
            self._pids = self.gang.pids
            self.disturbed = False
        return happened

    def happened(self, calls: Sequence[Called], took: float) -> Happened:
        """Makes what happened of calls that have ended."""
        now = self.gang.pids
        replaced = [rank for rank, pid in self._pids.items() if now.get(rank) != pid]
        return Happened(calls, took, self.groups, self.tensors, replaced)

    def close(self) -> None:
        """Leaves the gang as it was: its ranks run, nothing is pending, the groups are gone.

        Raises:
            NoGang: It cannot be made whole again.
        """
        send(list(self.gang.pids.values()), signal.SIGCONT)
        try:
            if self.disturbed or self._pending():
                self.gang.client.form(timeout=FORM_TIMEOUT_S)
            made = [name for name in self.groups if name != "world"]
            self.gang.client.destroy_groups(made, timeout=FORM_TIMEOUT_S)
        except RankBridgeError as error:
            raise NoGang(f"the gang cannot be made whole again: {error}") from error

    def _pending(self) -> bool:
        return any(it.operations for it in self.gang.client.pending())


@contextmanager
def opened(gang: RunningGang, timeout: float, seed: int) -> Iterator[Session]:
    """Opens a session on a gang, and leaves the gang as it was.

    Raises:
        NoGang: It cannot be made whole again.
    """
    with gang.client.session():
        session = Session(gang, timeout, seed)
        try:
            yield session
        finally:
            session.close()
