"""Types for the part of torch's private NCCL bindings that this backend uses; torch's stubs lack most of it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any, Protocol, cast

import torch
from torch._C import _distributed_c10d as c10d
from torch._C._distributed_c10d import AllgatherOptions, ReduceScatterOptions, Work

from ..process_group import ProcessGroup

__all__ = ["AllgatherOptions", "ReduceScatterOptions", "Work"]

Store = c10d.Store

ENGINE_ERRORS = (RuntimeError, ValueError, TypeError)
"""What torch raises when NCCL or CUDA fails, or when it refuses a tensor."""


def let_stream_follow(work: Work) -> None:
    """Lets the current stream go on when the work is done. Returns at once."""
    # Of later versions of torch, `synchronize` warns, and this has taken its place.
    follow: Callable[[], None] = getattr(work, "block_current_stream", work.synchronize)
    follow()


class NcclGroup(ProcessGroup, Protocol):
    """What is used of a ProcessGroupNCCL. Its operations run on a stream of its own, after the current one."""

    def eager_connect_single_device(self, device: torch.device) -> None:
        """Make the communicator of all members; returns when it is there."""

    def _allgather_base(self, output: torch.Tensor, input: torch.Tensor, opts: AllgatherOptions, /) -> Work:
        """Gather equal tensors side by side into `output` everywhere."""

    def _reduce_scatter_base(
        self, output: torch.Tensor, input: torch.Tensor, opts: ReduceScatterOptions, /
    ) -> Work:
        """Reduce, and give each member its equal part."""

    def _start_coalescing(self) -> None:
        """Begin what this thread starts together, on the communicator of all members."""

    def _end_coalescing(self) -> Work | None:
        """Start it. None when there was nothing."""

    def abort(self) -> None:
        """End whatever runs, and free the communicator, in the group's timeout."""


def make_group(store: Store, rank_in_group: int, size: int, timeout: timedelta) -> NcclGroup:
    """A ProcessGroupNCCL without a communicator yet. `timeout`: that of `abort`."""
    nccl: Any = cast(Any, c10d).ProcessGroupNCCL
    options = nccl.Options()
    options._timeout = timeout
    return cast(NcclGroup, nccl(store, rank_in_group, size, options))
