"""Types for the part of torch's private Gloo bindings that this backend uses; torch's stubs lack most of it."""

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
    GatherOptions,
    ReduceOp,
    ReduceOptions,
    ScatterOptions,
    Work,
)

from .yielding import yielding

__all__ = [
    "AllToAllOptions",
    "AllgatherOptions",
    "AllreduceOptions",
    "BroadcastOptions",
    "GatherOptions",
    "GlooGroup",
    "ReduceOp",
    "ReduceOptions",
    "ScatterOptions",
    "Store",
    "Work",
    "make_group",
    "make_store",
]

Tensors = Sequence[torch.Tensor]


class GlooGroup(Protocol):
    """The collectives of a ProcessGroupGloo."""

    def allreduce(self, tensors: Tensors, opts: AllreduceOptions) -> Work:
        """Reduce in place."""
        ...

    def reduce(self, tensors: Tensors, opts: ReduceOptions) -> Work:
        """Reduce at the root, in place; elsewhere the tensors are left with anything."""
        ...

    def broadcast(self, tensors: Tensors, opts: BroadcastOptions) -> Work:
        """Broadcast in place."""
        ...

    def scatter(self, outputs: Tensors, inputs: Sequence[Tensors], opts: ScatterOptions) -> Work:
        """Scatter `inputs`, empty except at the root, into `outputs`."""
        ...

    def gather(self, outputs: Sequence[Tensors], inputs: Tensors, opts: GatherOptions) -> Work:
        """Gather into `outputs`, empty except at the root."""
        ...

    def alltoall_base(
        self,
        output: torch.Tensor,
        input: torch.Tensor,
        output_split_sizes: Sequence[int],
        input_split_sizes: Sequence[int],
        opts: AllToAllOptions,
    ) -> Work:
        """Send each member its part of `input`; sizes along dimension 0, empty for equal ones."""
        ...

    def send(self, tensors: Tensors, dst: int, tag: int) -> Work:
        """Send one tensor to a member that receives it with the same tag."""
        ...

    def recv(self, tensors: Tensors, src: int, tag: int) -> Work:
        """Receive into one tensor."""
        ...

    def allgather(self, outputs: Sequence[Tensors], inputs: Tensors, opts: AllgatherOptions) -> Work:
        """Gather into `outputs` everywhere."""
        ...


class Store(Protocol):
    """A key-value store whose `get` waits for the key."""

    def get(self, key: str) -> bytes:
        """The value, once it is there. Raises RuntimeError after the store's timeout."""
        ...

    def set(self, key: str, value: bytes) -> None:
        """Set a value."""
        ...


def make_store(timeout: timedelta) -> Store:
    """A store within this process."""
    store: Any = c10d.HashStore()
    store.set_timeout(timeout)
    return cast(Store, store)


def make_group(
    store: Store, rank_in_group: int, size: int, hostname: str, threads: int, timeout: timedelta
) -> GlooGroup:
    """A ProcessGroupGloo; blocks until all members' addresses are in the store. Raises RuntimeError."""
    gloo: Any = c10d.ProcessGroupGloo
    options = gloo._Options()
    options._timeout = timeout
    options._threads = threads
    with yielding():
        options._devices = [gloo.create_device(hostname=hostname)]
    return cast(GlooGroup, gloo(store, rank_in_group, size, options))
