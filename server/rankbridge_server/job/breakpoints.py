"""Holding a rank at the collectives that the user's code calls."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace

from torch._C._distributed_c10d import ProcessGroup

from ..core.caller import Caller
from ..core.errors import ErrorCode
from ..core.hold.breakpoint import Ended, SeenCall
from ..core.hold.holds import Action, Holds
from .contracts import contract_of, flat
from .dispatch import begun, hook
from .guard.errors import GuardError
from .watch.next_call import NextCall

_TORCHS_MISMATCH = "Detected mismatch between collectives"


class BreakpointError(RuntimeError):
    """A collective was held at a breakpoint, and the controller has let it fail. It was not entered on this rank."""


def begin(holds: Holds) -> Callable[[], None]:
    """Lets the collectives of this process come to the breakpoints of its rank. Returns what ends that."""
    end: Callable[[], None] = hook().call_before(lambda call: _hold(holds, call))
    return end


def _hold(holds: Holds, call: NextCall) -> None:
    if not holds.active:
        return
    group = ProcessGroup.unbox(call.argument("process_group"))
    contract = contract_of(call)
    seen = SeenCall(
        caller=Caller.SCRIPT,
        operation=call.kind,
        group=call.group,
        number=begun(group) + 1,
        contract=contract,
        site=call.site,
        inputs=lambda: flat(call.inputs()),
        thread=threading.get_ident(),
    )
    release = holds.before(seen)
    if release.action is Action.SKIP:
        call.skip()
    elif release.action is Action.FAIL:
        said = f": {release.message}" if release.message else ""
        raise BreakpointError(f"{call.kind} on {call.group} was held at a breakpoint, and failed there{said}")
    elif holds.looks_after:
        began = time.monotonic()
        call.then(lambda error: _hold_after(holds, seen, time.monotonic() - began, error))


def _hold_after(holds: Holds, call: SeenCall, took: float, error: BaseException | None) -> None:
    # What its members did not agree on has no number. Who waits may be another thread than who has called.
    number = call.number if error is None else 0
    ended = Ended(took, None if error is None else code_of(error))
    holds.after(replace(call, number=number, thread=threading.get_ident()), ended)


def code_of(error: BaseException) -> ErrorCode:
    """How a call of torch.distributed that has raised this has failed."""
    if isinstance(error, BreakpointError):
        return ErrorCode.ABORTED
    if isinstance(error, GuardError):
        return ErrorCode[error.code]
    # With TORCH_DISTRIBUTED_DEBUG=DETAIL torch compares calls, and says so in words alone.
    return ErrorCode.MISMATCH if _TORCHS_MISMATCH in str(error) else ErrorCode.BACKEND_FAILED
