"""One member of a group on a process group of torch, Gloo's or NCCL's, in what the two have in common."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial
from typing import Generic, Protocol, TypeVar

import torch
from torch._C import _distributed_c10d as c10d
from torch._C._distributed_c10d import (
    AllreduceOptions,
    AllToAllOptions,
    BroadcastOptions,
    ReduceOptions,
    Work,
)

from ..core.coordinator import ReduceOp
from .bytes_coordinator import BytesCoordinator
from .pieces import copied

Tensors = Sequence[torch.Tensor]
TorchReduceOp = c10d.ReduceOp

OPS: dict[ReduceOp, TorchReduceOp] = {op: getattr(TorchReduceOp, op.name) for op in ReduceOp}
"""torch's reductions for those of the core."""


class ProcessGroup(Protocol):
    """The operations that this module uses. torch's stubs lack most of them."""

    def allreduce(self, tensors: Tensors, opts: AllreduceOptions, /) -> Work:
        """Reduces in place."""

    def reduce(self, tensors: Tensors, opts: ReduceOptions, /) -> Work:
        """Reduces at the root, in place. Gloo leaves partial results in the others' tensors."""

    def broadcast(self, tensors: Tensors, opts: BroadcastOptions, /) -> Work | None:
        """Broadcasts in place. NCCL returns None, or a work of no use, for an operation that is to be coalesced."""

    def alltoall_base(
        self,
        output: torch.Tensor,
        input: torch.Tensor,
        output_split_sizes: Sequence[int],
        input_split_sizes: Sequence[int],
        opts: AllToAllOptions,
        /,
    ) -> Work:
        """Sends each member its part of `input`; sizes along dimension 0, empty for equal ones."""

    def send(self, tensors: Tensors, dst: int, tag: int, /) -> Work | None:
        """Sends one tensor to a member that receives it with the same tag. NCCL has no tags. Result as `broadcast`."""

    def recv(self, tensors: Tensors, src: int, tag: int, /) -> Work | None:
        """Receives into one tensor."""


Group = TypeVar("Group", bound=ProcessGroup)
Options = TypeVar("Options")


class ProcessGroupCoordinator(BytesCoordinator, Generic[Group]):
    """A coordinator on a process group, which a subclass runs operations on."""

    def reduce(self, tensor: object, op: ReduceOp, dst_rank_in_group: int, timeout: float) -> object | None:
        """The engine's reduce, on a copy."""
        with self._inside():
            result = copied(tensor)
            if result.numel():
                values, its = self._numbers(result, op)
                chosen = options(ReduceOptions, timeout, reduceOp=its, rootRank=dst_rank_in_group)
                self._run(lambda group: group.reduce([values], chosen), timeout)
        return result if self._rank_in_group == dst_rank_in_group else None

    def all_reduce(self, tensor: object, op: ReduceOp, timeout: float) -> object:
        """The engine's all_reduce, on a copy."""
        with self._inside():
            return self._all_reduced(tensor, op, timeout)

    def reduce_scatter(
        self, tensor: object, op: ReduceOp, dim: int, sizes: Sequence[int], timeout: float
    ) -> object:
        """A part of the engine's all_reduce."""
        with self._inside():
            whole = self._all_reduced(tensor, op, timeout)
            # A copy, which does not keep the whole tensor's memory for one part.
            return copied(torch.split(whole, list(sizes), dim)[self._rank_in_group])

    @abstractmethod
    def _run(self, start: Callable[[Group], Work | None], timeout: float) -> None:
        """Starts an operation and waits for it. Raises BACKEND_FAILED."""

    @abstractmethod
    def _run_together(self, starts: Sequence[Callable[[Group], Work | None]], timeout: float) -> None:
        """Starts several operations, none of which waits for another, and waits for all. Raises BACKEND_FAILED."""

    @abstractmethod
    def _numbers(self, tensor: torch.Tensor, op: ReduceOp) -> tuple[torch.Tensor, TorchReduceOp]:
        """A contiguous tensor as the engine reduces it, in the same memory, and the engine's reduction."""

    def _reducing(self, its: TorchReduceOp, timeout: float) -> AllreduceOptions:
        return options(AllreduceOptions, timeout, reduceOp=its)

    def _all_reduced(self, tensor: object, op: ReduceOp, timeout: float) -> torch.Tensor:
        result = copied(tensor)
        if result.numel():
            values, its = self._numbers(result, op)
            chosen = self._reducing(its, timeout)
            self._run(lambda group: group.allreduce([values], chosen), timeout)
        return result

    def _broadcast(self, data: torch.Tensor, src_rank_in_group: int, timeout: float) -> None:
        self._run(partial(_broadcast, data, src_rank_in_group, timeout), timeout)

    def _all_gather(
        self, part: torch.Tensor, parts: torch.Tensor, counts: Sequence[int], timeout: float
    ) -> None:
        """The engine's broadcasts."""
        places = torch.split(parts, list(counts))
        places[self._rank_in_group].copy_(part)
        starts = [partial(_broadcast, it, rank, timeout) for rank, it in enumerate(places) if it.numel()]
        self._run_together(starts, timeout)

    def _exchange(
        self,
        given: torch.Tensor,
        result: torch.Tensor,
        sent: Sequence[int],
        received: Sequence[int],
        timeout: float,
    ) -> None:
        chosen = options(AllToAllOptions, timeout)
        self._run(lambda group: group.alltoall_base(result, given, received, sent, chosen), timeout)


def options(kind: Callable[[], Options], timeout: float, **others: object) -> Options:
    """Options of an operation. `timeout` in seconds."""
    made = kind()
    for name, value in {"timeout": timedelta(seconds=timeout), **others}.items():
        setattr(made, name, value)
    return made


def _broadcast(
    tensor: torch.Tensor, src_rank_in_group: int, timeout: float, group: ProcessGroup
) -> Work | None:
    chosen = options(BroadcastOptions, timeout, rootRank=src_rank_in_group, rootTensor=0)
    return group.broadcast([tensor], chosen)
