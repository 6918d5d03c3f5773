"""What somebody else's process group implements."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch._C._distributed_c10d import ProcessGroup

from ...core.coordinator import ReduceOp
from ...core.dtype import Dtype
from ...core.errors import BridgeError
from ..basics import MESSAGES, lacking
from ..cpu_coordinator import CpuGroup
from ..reductions import reduces_on_gloo
from ..torch_tensors import TORCH
from .coordinator import C10dCoordinator

_UNSUPPORTED = re.compile(
    "NotImplementedError|not (yet )?(supported|implemented)|does not (support|implement)|unsupported"
    "|invalid scalar type|no backend type associated",
    re.IGNORECASE,
)
"""What torch's own engines, and those that follow them, say of what they have not."""

_PATIENCE_S = 1.0

_METHODS = (
    "broadcast",
    "scatter",
    "gather",
    "allgather",
    "reduce",
    "allreduce",
    "reduce_scatter",
    "alltoall_base",
    "barrier",
    "send",
    "recv",
)
"""Those of a process group that a coordinator calls."""

_NEEDS: Mapping[str, frozenset[str]] = {
    "broadcast": frozenset({"broadcast"}),
    "scatter": frozenset({"scatter", "alltoall_base"}),
    "gather": frozenset({"gather", "alltoall_base"}),
    "all_gather": frozenset({"allgather", "broadcast"}),
    "all_to_all": frozenset({"alltoall_base"}),
    "reduce": frozenset({"reduce"}),
    "all_reduce": frozenset({"allreduce"}),
    "reduce_scatter": frozenset({"allreduce"}),
    **dict.fromkeys(MESSAGES, MESSAGES),
}
"""What each basic operation calls, for parts of different sizes, too. A group needs a barrier, or it is not formed."""


@dataclass(frozen=True)
class Abilities:
    """Of a process group.

    Attributes:
        has: The methods that it implements.
        reductions: Ops and dtypes of its reductions.
    """

    has: frozenset[str]
    reductions: frozenset[tuple[ReduceOp, Dtype]]

    @property
    def lacks(self) -> frozenset[str]:
        """The operations that it cannot do. Of a scan there is none in torch."""
        return lacking({"barrier", *(name for name, needs in _NEEDS.items() if needs <= self.has)})


def abilities_of(group: CpuGroup) -> Abilities:
    """Calls the methods of a group of one member, but for send and receive, which need another one.

    What says that it is not supported is lacking. Any other failure is one of a method that is there, and shows where
    it is called in earnest.
    """
    has = frozenset(it for it in _METHODS if _defines(group, it))
    alone = C10dCoordinator(group, 0, 1, has)
    some = torch.zeros(2)
    tries: dict[str, Callable[[], object]] = {
        "broadcast": lambda: alone.broadcast(some, 0, _PATIENCE_S),
        "scatter": lambda: alone.scatter(some, 0, 0, [2], _PATIENCE_S),
        "gather": lambda: alone.gather(some, 0, 0, [2], _PATIENCE_S),
        "allgather": lambda: alone.all_gather(some, 0, [2], _PATIENCE_S),
        "reduce": lambda: alone.reduce(some, ReduceOp.SUM, 0, _PATIENCE_S),
        "allreduce": lambda: alone.all_reduce(some, ReduceOp.SUM, _PATIENCE_S),
        "reduce_scatter": lambda: alone.reduce_scatter(some, ReduceOp.SUM, 0, [2], _PATIENCE_S),
        "alltoall_base": lambda: alone.all_to_all(some, 0, [[2]], _PATIENCE_S),
        "barrier": lambda: alone.barrier(_PATIENCE_S),
    }
    has -= {name for name, call in tries.items() if name in has and not alone.stuck and _refused(call)}
    reductions = _reductions(alone, has)
    alone.close()
    return Abilities(has, reductions)


def _reductions(alone: C10dCoordinator, has: frozenset[str]) -> frozenset[tuple[ReduceOp, Dtype]]:
    """Tries every reduction that Gloo has."""

    def call(op: ReduceOp, dtype: Dtype) -> object:
        one = torch.zeros(2, dtype=TORCH[dtype])
        if "allreduce" in has:
            return alone.all_reduce(one, op, _PATIENCE_S)
        return alone.reduce(one, op, 0, _PATIENCE_S)

    every = [(op, dtype) for op in ReduceOp for dtype in TORCH if reduces_on_gloo(op, dtype)]
    # After a call that does not return, nothing more is known.
    return frozenset(it for it in every if alone.stuck or not _refused(lambda it=it: call(*it)))  # type: ignore[misc]


def _defines(group: CpuGroup, name: str) -> bool:
    """Whether it has the method, other than the one that every process group inherits, which looks for another."""
    method = getattr(type(group), name, None)
    return method is not None and method is not getattr(ProcessGroup, name, None)


def _refused(call: Callable[[], object]) -> bool:
    try:
        call()
    except BridgeError as error:
        return _UNSUPPORTED.search(str(error)) is not None
    return False
