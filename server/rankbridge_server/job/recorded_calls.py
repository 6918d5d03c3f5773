"""Writing the collectives that the user's code calls into the record of its rank."""

from __future__ import annotations

from collections.abc import Callable

from torch._C._distributed_c10d import ProcessGroup

from ..core.errors import BridgeError, ErrorCode
from ..core.logger import LOGGER
from ..core.record.script_calls import ScriptCalls
from .breakpoints import code_of
from .contracts import contract_of, post_of
from .dispatch import begun, hook
from .watch.next_call import NextCall


def begin(calls: ScriptCalls) -> Callable[[], None]:
    """Writes the collectives, sends and receives of this process from now on. Returns what ends that."""
    complained = False

    def record(call: NextCall) -> None:
        nonlocal complained
        try:
            _record(calls, call)
        except Exception:
            # What is recorded or not must fail no job.
            if not complained:
                complained = True
                LOGGER.warning("a call of %s is not recorded", call.kind, exc_info=True)

    end: Callable[[], None] = hook().call_before(record)
    return end


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


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
