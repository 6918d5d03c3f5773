"""Room for results whose size is known only when all members have sent theirs."""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import BridgeError, ErrorCode, failed_on
from ..refs.refs import Refill, Slot
from ..refs.tensors import TensorSpec
from .operation import Entry, Site


def reserve(site: Site, specs: Sequence[TensorSpec]) -> list[Slot | Refill]:
    """Room for all of them on this rank, or for none. Raises RESOURCE_EXHAUSTED or UNKNOWN_SESSION."""
    slots: list[Slot | Refill] = []
    try:
        for spec in specs:
            slots.append(site.reserve(spec))
    except BridgeError:
        give_back(slots)
        raise
    return slots


def reserve_on_all(site: Site, entry: Entry, specs: Sequence[TensorSpec]) -> list[Slot | Refill]:
    """The same on every member, or on none: they agree once more. Raises RESOURCE_EXHAUSTED on all alike."""
    slots: list[Slot | Refill] = []
    trouble = ""
    try:
        slots = reserve(site, specs)
    except BridgeError as error:
        trouble = str(error)
    try:
        reports = entry.agree("room for what comes", trouble.encode())
        if any(reports):
            troubles = [report.decode() for report in reports]
            ranks = site.group.description.ranks
            raise failed_on(ErrorCode.RESOURCE_EXHAUSTED, "no room for what comes", ranks, troubles)
    except BridgeError:
        give_back(slots)
        raise
    return slots


def give_back(slots: Sequence[Slot | Refill]) -> None:
    """Free what was not filled."""
    for slot in slots:
        slot.give_back()
