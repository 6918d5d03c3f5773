"""Types for the part of torch's private Gloo bindings that this backend uses; torch's stubs lack most of it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Protocol, cast

from torch._C import _distributed_c10d as c10d
from torch._C._distributed_c10d import AllgatherOptions, AllreduceOptions, GatherOptions, ScatterOptions, Work

from ..process_group import ProcessGroup, Tensors
from .yielding import yielding

Store = c10d.Store

__all__ = ["AllgatherOptions", "AllreduceOptions", "GatherOptions", "ScatterOptions", "Work"]


class GlooGroup(ProcessGroup, Protocol):
    """The collectives of a ProcessGroupGloo."""

    def scatter(self, outputs: Tensors, inputs: Sequence[Tensors], opts: ScatterOptions, /) -> Work:
        """Scatter `inputs`, empty except at the root, into `outputs`."""

    def gather(self, outputs: Sequence[Tensors], inputs: Tensors, opts: GatherOptions, /) -> Work:
        """Gather into `outputs`, empty except at the root."""

    def allgather(self, outputs: Sequence[Tensors], inputs: Tensors, opts: AllgatherOptions, /) -> Work:
        """Gather into `outputs` everywhere."""


def make_store(timeout: timedelta) -> Store:
    """A store within this process, whose `get` waits for the key. It raises RuntimeError after the timeout."""
    store = c10d.HashStore()
    store.set_timeout(timeout)
    return store


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
