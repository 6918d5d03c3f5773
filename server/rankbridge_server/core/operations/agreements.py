"""The collectives that move nothing."""

from __future__ import annotations

from dataclasses import dataclass

from .operation import Plan, Site, operation, tensor_plan


@dataclass(frozen=True, slots=True)
class Barrier:
    """Wait for all members."""


@dataclass(frozen=True, slots=True)
class Ping:
    """Agree with all members, and do nothing else."""


@operation(recorded=True)
def barrier(site: Site, args: Barrier) -> Plan:
    """Nothing to agree on but that it is one."""
    return tensor_plan(site, "", lambda entry: entry.coordinator.barrier(entry.timeout))


@operation(agreement=True)
def ping(site: Site, args: Ping) -> Plan:
    """Nothing to agree on but that it is one; the backend is not entered."""
    return tensor_plan(site, "", lambda entry: None)
