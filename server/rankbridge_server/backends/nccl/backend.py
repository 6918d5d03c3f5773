"""Forming groups on NCCL without a store that others depend on."""

from __future__ import annotations

import torch

from ...core.coordinator import GroupDescription, Joining, ReduceOp
from ...core.dtype import Dtype
from .engine import CudaEngine, Engine
from .joining import NcclJoining
from .reductions import reduces


class NcclBackend:
    """NCCL on the device of a rank that is the `local_rank`th on its host.

    Begins CUDA in this process, unless it is given another `engine`. Raises BACKEND_FAILED when there is no device.
    `patience`: seconds in which NCCL must have begun. `torch_threads`: of torch's own pool in this process; 0: as many
    as it has.
    """

    name = "nccl"
    lacks = frozenset({"scan"})

    def __init__(
        self, local_rank: int, engine: Engine | None = None, patience: float = 30.0, torch_threads: int = 1
    ) -> None:
        self._engine = engine or CudaEngine.of_rank(local_rank)
        self._patience = patience
        self.tensors = self._engine.tensors
        if torch_threads:
            # Ranks share their host's cores; torch's own thread pool would overload them.
            torch.set_num_threads(torch_threads)

    @property
    def memory(self) -> int:
        """Bytes of the device's memory."""
        return self._engine.memory

    def join(self, group: GroupDescription, rank_in_group: int, generation: int) -> Joining:
        """Makes an address from the device, and, as rank 0 in the group, from the ids of its communicators."""
        return NcclJoining(self._engine, rank_in_group, len(group.ranks), self._patience)

    def reduces(self, op: ReduceOp, dtype: Dtype) -> bool:
        """Whether NCCL's reductions support `op` on `dtype`."""
        return reduces(op, dtype)
