"""Types for the part of torch's private Gloo bindings that this backend uses; torch's stubs lack most of it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, cast

from torch._C import _distributed_c10d as c10d

from ..cpu_coordinator import CpuGroup
from .yielding import yielding

Store = c10d.Store


def make_store(timeout: timedelta) -> Store:
    """A store within this process, whose `get` waits for the key. It raises RuntimeError after the timeout."""
    store = c10d.HashStore()
    store.set_timeout(timeout)
    return store


def make_group(
    store: Store, rank_in_group: int, size: int, hostname: str, threads: int, timeout: timedelta
) -> CpuGroup:
    """A ProcessGroupGloo; blocks until all members' addresses are in the store. Raises RuntimeError."""
    gloo: Any = c10d.ProcessGroupGloo
    options = gloo._Options()
    options._timeout = timeout
    options._threads = threads
    with yielding():
        options._devices = [gloo.create_device(hostname=hostname)]
    return cast(CpuGroup, gloo(store, rank_in_group, size, options))
