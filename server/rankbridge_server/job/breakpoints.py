"""Holding a rank at the collectives that the user's code calls."""

from __future__ import annotations

import threading

from torch._C._distributed_c10d import ProcessGroup

from ..core.hold.breakpoint import Caller, SeenCall
from ..core.hold.holds import Action, Holds
from .contracts import contract_of, flat
from .dispatch import begun, hook
from .watch.next_call import NextCall


class BreakpointError(RuntimeError):
    """A collective was held at a breakpoint, and the controller has let it fail. It was not entered on this rank."""


def begin(holds: Holds) -> None:
    """Lets the collectives of this process come to the breakpoints of its rank."""
    hook().call_before(lambda call: _hold(holds, call))


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
