"""Every kind of fault."""

from __future__ import annotations

from tests.chaos.faults.calls import Cancel, Mismatch, Missing
from tests.chaos.faults.controllers import DeadController
from tests.chaos.faults.fault import Fault
from tests.chaos.faults.limits import FullQueue, FullSession
from tests.chaos.faults.ranks import Blink, CloseLink, Kill, Stop

FAULTS: tuple[type[Fault], ...] = (
    Kill,
    Stop,
    Blink,
    CloseLink,
    Mismatch,
    Missing,
    Cancel,
    DeadController,
    FullSession,
    FullQueue,
)
