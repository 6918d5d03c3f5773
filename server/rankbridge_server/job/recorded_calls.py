"""Writing the collectives that the user's code calls into the record of its rank."""

from __future__ import annotations

import time
from collections.abc import Callable

from torch._C._distributed_c10d import ProcessGroup

from ..core.errors import BridgeError, ErrorCode
from ..core.logger import LOGGER
from ..core.record.script_calls import CoordinatorGroup, ScriptCalls
from .breakpoints import code_of
from .contracts import contract_of, contract_of_coordinator, post_of
from .dispatch import begun, hook
from .watch.coordinator_call import CoordinatorCall
from .watch.next_call import NextCall
from .watch.recorder import KnownGroup


def begin(calls: ScriptCalls) -> Callable[[], None]:
    """Writes the collectives, sends and receives of this process from now on, and calls of coordinators' methods.

    Returns what ends that.
    """
    written = _Written(calls)
    ends: list[Callable[[], None]] = [
        hook().call_before(written.note),
        hook().write_coordinators(written),
    ]

    def end() -> None:
        for it in ends:
            it()

    return end


class _Written:
    """What is written, and what cannot be: that must fail no job."""

    def __init__(self, calls: ScriptCalls) -> None:
        self._calls = calls
        self._coordinators: dict[str, KnownGroup] = {}
        self._complained = False

    def note(self, call: NextCall) -> None:
        """Writes a call of torch.distributed."""
        try:
            _record(self._calls, call)
        except Exception:
            self._complain(call.kind)

    def begin(self, call: CoordinatorCall) -> Callable[[BaseException | None], None] | None:
        """Writes a call of a coordinator's method; gives what ends it."""
        try:
            group = call.group
            if self._coordinators.get(group.name) is not group:
                self._coordinators[group.name] = group
                self._calls.coordinators[group.name] = CoordinatorGroup(group.ranks, time.monotonic())
            return _record_coordinator(self._calls, call)
        except Exception:
            self._complain(call.kind)
            return None

    def _complain(self, kind: str) -> None:
        if not self._complained:
            self._complained = True
            LOGGER.warning("a call of %s is not recorded", kind, exc_info=True)


def _record(calls: ScriptCalls, call: NextCall) -> None:
    if call.is_post:
        number, operation_id, contract = 0, "", post_of(call)
    else:
        number = begun(ProcessGroup.unbox(call.argument("process_group"))) + 1
        operation_id, contract = f"{call.key} {number}", contract_of(call)

    def over(error: BaseException | None) -> None:
        if call.is_skipped:
            failed: BridgeError | None = BridgeError.of(ErrorCode.CANCELLED, "it was skipped at a breakpoint")
        else:
            failed = None if error is None else BridgeError.of(code_of(error), _said(error))
        calls.end(recorded, failed)

    def look() -> None:
        is_done, error = call.outcome()
        if is_done:
            over(error)

    recorded = calls.begin(call.kind, call.group, operation_id, number, contract, call.site, look)
    call.then(over)
    call.if_forgotten(lambda: calls.forget(recorded))


def _record_coordinator(calls: ScriptCalls, call: CoordinatorCall) -> Callable[[BaseException | None], None]:
    group = call.group
    operation_id = f"{group.key} {call.number}" if call.peer < 0 else ""
    contract = contract_of_coordinator(call)
    # Nobody but its own thread can tell that it is over.
    recorded = calls.begin(
        call.kind, group.name, operation_id, call.number, contract, call.site.text, lambda: None
    )
    return lambda error: calls.end(
        recorded, None if error is None else BridgeError.of(code_of(error), _said(error))
    )


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
