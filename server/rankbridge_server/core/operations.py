"""Every operation, declared once: its name, and what is checked, agreed on, and run.

To add one: write its arguments and a function from site and arguments to a plan beside those of its kind, and declare
it below. The wire's side of it is one line in `service/operations.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from .all_to_all import AllToAll, plan_all_to_all
from .group_operations import DestroyGroup, NewGroup, plan_destroy_group, plan_new_group
from .moves import (
    AllGather,
    Broadcast,
    Gather,
    Scatter,
    plan_all_gather,
    plan_broadcast,
    plan_gather,
    plan_scatter,
)
from .operation import Plan, Site, TensorPlan
from .reductions import (
    AllReduce,
    Reduce,
    ReduceScatter,
    plan_all_reduce,
    plan_reduce,
    plan_reduce_scatter,
)

__all__ = [
    "ALL_GATHER",
    "ALL_REDUCE",
    "ALL_TO_ALL",
    "BARRIER",
    "BROADCAST",
    "DESTROY_GROUP",
    "GATHER",
    "NEW_GROUP",
    "REDUCE",
    "REDUCE_SCATTER",
    "SCATTER",
    "AllGather",
    "AllReduce",
    "AllToAll",
    "Barrier",
    "Broadcast",
    "DestroyGroup",
    "Gather",
    "NewGroup",
    "Operation",
    "Reduce",
    "ReduceScatter",
    "Scatter",
]

Args = TypeVar("Args")


@dataclass(frozen=True, slots=True)
class Operation(Generic[Args]):
    """One operation. `plan` raises BridgeError when the arguments are wrong; then nothing has happened."""

    name: str
    plan: Callable[[Site, Args], Plan]


@dataclass(frozen=True, slots=True)
class Barrier:
    """Wait for all members."""


def plan_barrier(site: Site, args: Barrier) -> Plan:
    """Nothing to agree on but that it is one."""
    return TensorPlan(site, "", lambda entry: entry.coordinator.barrier(entry.timeout))


BARRIER: Operation[Barrier] = Operation("barrier", plan_barrier)
BROADCAST: Operation[Broadcast] = Operation("broadcast", plan_broadcast)
SCATTER: Operation[Scatter] = Operation("scatter", plan_scatter)
GATHER: Operation[Gather] = Operation("gather", plan_gather)
ALL_GATHER: Operation[AllGather] = Operation("all_gather", plan_all_gather)
ALL_TO_ALL: Operation[AllToAll] = Operation("all_to_all", plan_all_to_all)
REDUCE: Operation[Reduce] = Operation("reduce", plan_reduce)
ALL_REDUCE: Operation[AllReduce] = Operation("all_reduce", plan_all_reduce)
REDUCE_SCATTER: Operation[ReduceScatter] = Operation("reduce_scatter", plan_reduce_scatter)
NEW_GROUP: Operation[NewGroup] = Operation("new_group", plan_new_group)
DESTROY_GROUP: Operation[DestroyGroup] = Operation("destroy_group", plan_destroy_group)
