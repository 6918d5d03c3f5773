"""Types for the part of torch's private NCCL bindings that this backend uses; torch's stubs lack most of it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Protocol, cast

import torch
from torch._C import _distributed_c10d as c10d
from torch._C._distributed_c10d import (
    AllgatherOptions,
    AllreduceOptions,
    AllToAllOptions,
    BroadcastOptions,
    ReduceOp,
    ReduceOptions,
    ReduceScatterOptions,
    Work,
)

__all__ = [
    "AllToAllOptions",
    "AllgatherOptions",
    "AllreduceOptions",
    "BroadcastOptions",
    "NcclGroup",
    "ReduceOp",
    "ReduceOptions",
    "ReduceScatterOptions",
    "Store",
    "Work",
    "make_group",
]

Tensors = Sequence[torch.Tensor]
Store = c10d.Store


class NcclGroup(Protocol):
    """What is used of a ProcessGroupNCCL. Its operations run on a stream of its own, after the current one."""

    def eager_connect_single_device(self, device: torch.device) -> None:
        """Make the communicator of all members; returns when it is there."""
        ...

    def allreduce(self, tensors: Tensors, opts: AllreduceOptions) -> Work:
        """Reduce in place."""
        ...

    def reduce(self, tensors: Tensors, opts: ReduceOptions) -> Work:
        """Reduce at the root, in place."""
        ...

    def broadcast(self, tensors: Tensors, opts: BroadcastOptions) -> Work | None:
        """Broadcast in place. None between `_start_coalescing` and `_end_coalescing`, or a work of no use."""
        ...

    def _allgather_base(self, output: torch.Tensor, input: torch.Tensor, opts: AllgatherOptions) -> Work:
        """Gather equal tensors side by side into `output` everywhere."""
        ...

    def _reduce_scatter_base(
        self, outputTensor: torch.Tensor, inputTensor: torch.Tensor, opts: ReduceScatterOptions
    ) -> Work:
        """Reduce, and give each member its equal part."""
        ...

    def alltoall_base(
        self,
        output: torch.Tensor,
        input: torch.Tensor,
        output_split_sizes: Sequence[int],
        input_split_sizes: Sequence[int],
        opts: AllToAllOptions,
    ) -> Work:
        """Send each member its part of `input`, grouped sends and receives; sizes along dimension 0."""
        ...

    def send(self, tensors: Tensors, dstRank: int, tag: int) -> Work | None:
        """Send one tensor; NCCL knows no tags. As `broadcast` between `_start_coalescing` and `_end_coalescing`."""
        ...

    def recv(self, tensors: Tensors, srcRank: int, tag: int) -> Work | None:
        """Receive into one tensor."""
        ...

    def _start_coalescing(self) -> None:
        """Begin what this thread starts together, on the communicator of all members."""
        ...

    def _end_coalescing(self) -> Work | None:
        """Start it. None when there was nothing."""
        ...

    def abort(self) -> None:
        """End whatever runs, and free the communicator, in the group's timeout."""
        ...


def make_group(store: Store, rank_in_group: int, size: int, timeout: timedelta) -> NcclGroup:
    """A ProcessGroupNCCL without a communicator yet. `timeout`: that of `abort`."""
    nccl: Any = cast(Any, c10d).ProcessGroupNCCL
    options = nccl.Options()
    options._timeout = timeout
    return cast(NcclGroup, nccl(store, rank_in_group, size, options))
