"""Several collectives of one group as one operation."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..errors import BridgeError, invalid
from ..operations.operation import Entry, Errand, Operation, Plan, Site, Transfer
from ..operations.outcome import Outcome

_LENGTH = struct.Struct("<I")


@dataclass(frozen=True, slots=True)
class Coalesce:
    """Do them in this order, admitted at once; none sees what another gives."""

    operations: tuple[tuple[Operation[Any], Any], ...]


def plan_coalesce(site: Site, args: Coalesce) -> Plan:
    """What each of them agrees on."""
    if not args.operations:
        raise invalid("nothing to coalesce", expected="one operation or more", got="none")
    return CoalescedPlan([(site, operation, its) for operation, its in args.operations])


class CoalescedPlan:
    """Contracts and payloads side by side; results are committed together, when all are there."""

    def __init__(self, parts: Sequence[tuple[Site, Operation[Any], Any]]) -> None:
        """Plan each on its site. Raises what a plan raises, and says which it was; none is left then."""
        self._plans: list[Plan] = []
        try:
            for number, part in enumerate(parts):
                self._plans.append(_planned(number, *part))
        except BridgeError:
            self.abandon()
            raise
        names = [operation.name for _, operation, _ in parts]
        both = zip(names, self._plans, strict=True)
        self.terms = f"{len(names)}: " + "; ".join(f"{name} {plan.terms}".rstrip() for name, plan in both)

    def payload(self) -> bytes:
        """The payloads of all, if any has one."""
        payloads = [plan.payload() for plan in self._plans]
        return joined(payloads) if any(payloads) else b""

    def run(self, entry: Entry) -> Callable[[], Outcome]:
        """Run each."""
        members = [apart(payload, len(self._plans)) for payload in entry.payloads]
        commits = [
            plan.run(replace(entry, payloads=[payloads[number] for payloads in members]))
            for number, plan in enumerate(self._plans)
        ]
        return lambda: [commit() for commit in commits]

    def abandon(self) -> None:
        """Let go of what each set aside."""
        for plan in self._plans:
            plan.abandon()


def _planned(number: int, site: Site, operation: Operation[Any], args: Any) -> Plan:
    try:
        plan = operation.plan(site, args)
        if isinstance(plan, Transfer | Errand):
            raise invalid("it is no collective", expected="a collective", got=operation.name)
        return plan
    except BridgeError as error:
        failure = error.failure
        message = f"operation {number}, {operation.name}: {failure.message}"
        raise BridgeError(replace(failure, message=message)) from error


def joined(payloads: Sequence[bytes]) -> bytes:
    """Payloads side by side."""
    return b"".join(_LENGTH.pack(len(payload)) + payload for payload in payloads)


def apart(whole: bytes, count: int) -> list[bytes]:
    """What `joined` was given: `count` payloads; all are empty if `whole` is."""
    if not whole:
        return [b""] * count
    payloads: list[bytes] = []
    start = 0
    while start < len(whole):
        (length,) = _LENGTH.unpack_from(whole, start)
        start += _LENGTH.size
        payloads.append(whole[start : start + length])
        start += length
    return payloads
