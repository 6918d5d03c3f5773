"""How an author's module makes its process groups."""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import timedelta
from types import ModuleType
from typing import Any, cast

import torch.distributed as dist
from torch._C import _distributed_c10d as c10d

from ..cpu_coordinator import CpuGroup

Creator = Callable[[c10d.Store, int, int, timedelta], CpuGroup]
"""Makes one member: of a store that the members share, its rank and their number, and the timeout of operations."""


class NoCreator(Exception):
    """A module has no backend."""


def registered() -> frozenset[str]:
    """The names of the backends that modules have registered with torch."""
    return frozenset(dist.Backend._plugins)


def creator_of(module: ModuleType, before: Collection[str]) -> Creator:
    """The module's function `create`, or what it has registered with torch since `before`.

    If it has been imported earlier, what is registered at all. Raises NoCreator.
    """
    if (create := getattr(module, "create", None)) is not None:
        return cast(Creator, create)
    names = sorted(registered() - frozenset(before)) or sorted(registered())
    if len(names) != 1:
        found = f"registers {', '.join(names)}" if names else "registers none"
        raise NoCreator(
            f"{module.__name__} {found} with torch.distributed.Backend.register_backend, and has no function "
            "create(store, rank, size, timeout): it needs one of them"
        )
    plugin = dist.Backend._plugins[names[0]]
    return _extended(plugin.creator_fn) if plugin.extended_api else cast(Creator, plugin.creator_fn)


def _extended(make: Callable[[Any, Any], CpuGroup]) -> Creator:
    """Of a function of torch's extended interface, which takes an object with everything."""

    def create(store: c10d.Store, rank: int, size: int, timeout: timedelta) -> CpuGroup:
        given: Any = c10d._DistributedBackendOptions()
        given.store, given.group_rank, given.group_size, given.timeout = store, rank, size, timeout
        given.group_id, given.global_ranks_in_group = "rankbridge", list(range(size))
        return make(given, None)

    return create
