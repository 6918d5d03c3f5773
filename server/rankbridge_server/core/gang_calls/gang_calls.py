"""The gang calls of one rank: those that it leads, and its parts of those that others lead."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Protocol

from ..admission.admission import Ruling, Verdict
from ..alarms import Alarms
from ..errors import BridgeError, ErrorCode, Failure, RankDetail, RankState, invalid, shown
from ..generation import Generation
from ..operations.outcome import Outcome
from ..task import GOES_ON, VERDICT_GRACE, Task, cancelled, failure_of, late
from .gang_call import GangCall
from .messages import MAX_PART, MAX_RESULT, Command, Relay, Release, Report
from .relayed_calls import BegunCall, RelayedCalls
from .route import Route

Results = Future[Sequence[bytes]]
"""A future for every member's result, in group order."""


class Parts(Protocol):
    """How parts, their outcomes and whole calls are read and written; the service layer implements it."""

    def begin(self, part: bytes, first: bool) -> Task:
        """Submits this rank's part. `first`: the caller is the group's lane, and runs the part next.

        Raises BridgeError when the part is refused; nothing has happened then.
        """

    def result(self, outcome: Outcome) -> bytes:
        """The serialized result of an operation that has succeeded."""

    def failure(self, failure: Failure) -> bytes:
        """The serialized result of an operation that has failed."""

    def same(self, one: bytes, other: bytes) -> bool:
        """Whether two parts with the same operation id are equal except for their timeouts."""

    def call(self, request: bytes) -> BegunCall:
        """Begins a gang call that another rank has relayed to this leader."""


class GangCalls:
    """Safe to call from any thread. `parts`: set by the service layer before the first generation."""

    def __init__(self) -> None:
        self.parts: Parts | None = None
        self._alarms = Alarms("gang-calls")
        self.relayed = RelayedCalls(lambda request: self._parts().call(request), self._alarms)
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._led: dict[int, GangCall] = {}
        self._by_id: dict[tuple[str, str], GangCall] = {}

    def lead(
        self, route: Route, operation_id: str, timeout: float, parts: Sequence[bytes], *, led: bool = False
    ) -> tuple[Results, Callable[[], None]]:
        """Begins a gang call in a group that this rank leads. Returns its future results, and what withdraws it.

        The results come within `timeout` seconds, and one more second when members do not report. `led`: this rank
        checks its own part before the others get theirs, and alone admits it. Raises BridgeError when no member got a
        part.
        """
        end = time.monotonic() + timeout
        for place, part in enumerate(parts):
            if len(part) > MAX_PART:
                raise invalid(
                    f"the part of rank_in_group {place} is too large for a gang call",
                    expected=f"at most {MAX_PART} bytes",
                    got=str(len(part)),
                )
        key = (route.group.name, operation_id)
        with self._lock:
            known = self._by_id.get(key)
            if known is None:
                call = GangCall(next(self._numbers), operation_id, parts, led)
                self._led[call.number] = self._by_id[key] = call
        if known is not None:
            return self._again(known, parts, end), lambda: None
        call.future.add_done_callback(lambda _: self._forget(route, call))
        self._begin_here(route, call, end)
        return call.future, lambda: self._withdraw(route, call)

    def receive(self, generation: Generation, message: Command | Report | Relay) -> None:
        """Acts on a message from another rank. The reader of the links calls it."""
        if isinstance(message, Command):
            self._begin_part(generation, message)
        elif isinstance(message, Report):
            call = self._led.get(message.number)
            if call is not None:
                call.set_result(message.rank_in_group, message.result)
        else:
            self.relayed.receive(generation, message)

    def _begin_here(self, route: Route, call: GangCall, end: float) -> None:
        membership = route.group.membership
        try:
            if membership is None:
                raise BridgeError.of(ErrorCode.INTERNAL, "the leader is no member of its group")
            route.generation.await_end(call, lambda error: self._fill(route, call, error.failure))
        except BridgeError:
            self._forget(route, call)
            raise
        self._alarms.set(call, end, lambda: self._late(route, call, end))
        # The lane sends the parts in the order of the group's operations, and runs its own part next.
        membership.lane.add(lambda: self._begin_all(route, call))

    def _forget(self, route: Route, call: GangCall) -> None:
        self._alarms.cancel(call)
        route.generation.forget_end(call)
        with self._lock:
            self._led.pop(call.number, None)
            self._by_id.pop((route.group.name, call.operation_id), None)

    def _begin_all(self, route: Route, call: GangCall) -> None:
        """Sends the members their parts, and begins this rank's own. Runs on the lane."""
        if call.done or not call.begin():
            return
        try:
            with call.beginning:
                self._begin_parts(route, call)
        except Exception as error:
            # A fault of rankbridge: the lane goes on, and the caller gets the error.
            self._fill(route, call, failure_of(error))

    def _begin_parts(self, route: Route, call: GangCall) -> None:
        if not call.led:
            self._command(route, call)
        begun = self._begin(route.generation, Command(route.group.name, call.number, call.parts[0]), 0)
        if isinstance(begun, Task):
            call.own = begun
        if call.led:
            self._command_unless_refused(route, call, begun)

    @staticmethod
    def _command(route: Route, call: GangCall) -> None:
        # Closed links end the generation, and that ends the call.
        with suppress(OSError):
            route.generation.links.group(route.group.name).command(call.number, call.parts)

    def _command_unless_refused(self, route: Route, call: GangCall, begun: Task | Failure) -> None:
        if isinstance(begun, Task):
            self._command(route, call)
            return
        detail = RankDetail(rank=route.leader, rank_in_group=0, state=RankState.FAILED, detail=str(begun))
        self._fill(route, call, replace(begun, ranks=(detail,)))

    def _late(self, route: Route, call: GangCall, end: float) -> None:
        """Acts on a timeout before all members have reported."""
        if call.give_up():
            error = late("the call was queued behind others, and no member got a part")
            self._fill(route, call, error.failure)
        elif not call.done:
            # The members that came get the leader's ruling.
            self._alarms.set(call, end + VERDICT_GRACE, lambda: self._too_late(route, call))
            if call.future.done():
                self._alarms.cancel(call)

    def _too_late(self, route: Route, call: GangCall) -> None:
        self._withdraw(route, call)
        self._fill(route, call, late("the rank has not reported the outcome of its part").failure)

    def _again(self, call: GangCall, parts: Sequence[bytes], end: float) -> Results:
        """Joins a repeated call to the first, which is under way. The timeout of one does not end the other."""
        if not all(map(self._parts().same, call.parts, parts)):
            raise invalid(
                f"operation id {call.operation_id!r} belongs to another gang call, which is under way",
                expected="an id of its own",
                got="another operation",
            )
        shared: Results = Future()

        def give_up() -> None:
            with suppress(InvalidStateError):
                shared.set_exception(late(GOES_ON))

        def share(first: Results) -> None:
            self._alarms.cancel(shared)
            with suppress(InvalidStateError):
                shared.set_result(first.result())

        self._alarms.set(shared, end, give_up)
        call.future.add_done_callback(share)
        return shared

    def _begin(self, generation: Generation, command: Command, place: int) -> Task | Failure:
        """Begins this rank's part, whose outcome is reported to the leader. Returns why when the part is refused."""
        parts = self._parts()
        try:
            task = parts.begin(command.part, first=not place)
        except BridgeError as error:
            self._refuse(generation, command, place, error.failure)
            return error.failure
        task.then(partial(self._report_outcome, generation, command, place))
        return task

    def _begin_part(self, generation: Generation, command: Command) -> None:
        group = generation.get(command.group)
        # A group that has ended here refuses the part; the leader knows the rank from the link.
        place = group.membership.rank_in_group if group and group.membership else -1
        self._begin(generation, command, place)

    def _refuse(self, generation: Generation, command: Command, place: int, failure: Failure) -> None:
        result = self._fitting(failure)
        self._report(generation, Report.of_refusal(command.group, place, failure, command.number, result))

    def _report_outcome(self, generation: Generation, command: Command, place: int, task: Task) -> None:
        if task.error is not None:
            # What a function has raised may be long, and stays on its rank then.
            failure, parts = task.error.failure, self._parts()
            result = parts.failure(failure) if failure.raised else self._fitting(failure)
            result = b"" if len(result) > MAX_RESULT else result
        elif task.agreement:
            # The leader knows from its own part that all members have agreed.
            if place == 0 and (call := self._led.get(command.number)) is not None:
                call.set_all(self._parts().result(task.outcome()))
            return
        else:
            result = self._parts().result(task.outcome())
            if len(result) > MAX_RESULT:
                result = b""
        operation_id = task.place.operation_id
        self._report(generation, Report(command.group, place, command.number, operation_id, result))

    def _report(self, generation: Generation, report: Report) -> None:
        leads = report.rank_in_group == 0
        if report.refusal or not leads:
            generation.report(report)
        if leads and (call := self._led.get(report.number)) is not None:
            call.set_result(0, report.result)

    def _fill(self, route: Route, call: GangCall, failure: Failure) -> None:
        """Fails the members that have not reported: indefinite, unless it is known that no member did anything."""
        nothing = call.give_up() or self._came_to_nothing(call)
        for place, result in enumerate(call.results):
            if result is None:
                rank = route.group.description.ranks[place]
                its = replace(failure, indefinite=not nothing, place=route.place(rank, call.operation_id))
                if not its.ranks:
                    state = RankDetail(rank=rank, rank_in_group=place, state=RankState.MISSING)
                    its = replace(its, ranks=(state,))
                call.set_result(place, self._fitting(its))

    @staticmethod
    def _came_to_nothing(call: GangCall) -> bool:
        """Whether it is known that the leader's own part, and so every part, was not admitted."""
        if call.own is None:
            # A part with a result but no task was refused.
            return call.results[0] is not None
        error = call.own.error
        return error is not None and not error.failure.indefinite

    def _withdraw(self, route: Route, call: GangCall) -> None:
        """Withdraws the parts that were not admitted."""
        if call.done:
            return
        if call.give_up():
            self._fill(route, call, cancelled("its caller has gone").failure)
            return
        with suppress(ConnectionError):
            links = route.generation.links.group(route.group.name)
            links.refuse(call.operation_id, Verdict(Ruling.WITHDRAWN))
        if call.led:
            with call.beginning:
                # From now on every member that gets a part has it.
                pass
            release = Release(route.group.name, call.operation_id, None, "its caller has gone")
            route.generation.send_release(release)
            route.generation.release(release)

    def _fitting(self, failure: Failure) -> bytes:
        result = self._parts().failure(failure)
        if len(result) > MAX_RESULT:
            short = replace(
                failure,
                message=shown(failure.message),
                expected=shown(failure.expected),
                got=shown(failure.got),
                ranks=(),
            )
            result = self._parts().failure(short)
        return result

    def _parts(self) -> Parts:
        if self.parts is None:
            raise BridgeError.of(ErrorCode.INTERNAL, "this rank has no service that takes gang calls")
        return self.parts
