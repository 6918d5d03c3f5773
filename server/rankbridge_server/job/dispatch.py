"""What this process calls of torch.distributed: the hook at its dispatcher, one in each process, and how often."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from torch.distributed import ProcessGroup

_LOADED_BY_PATH = "_rankbridge_watch.hook"
_carried: WeakKeyDictionary[ProcessGroup, int] = WeakKeyDictionary()
"""Collectives of each group that guard has carried: they have not entered its backend, which does not count them."""


def hook() -> Any:
    """The module `watch.hook`: that of `rankbridge watch`, which has loaded it by its path, if there is one."""
    from .watch import hook as own

    return sys.modules.get(_LOADED_BY_PATH, own)


def counts() -> Mapping[str, int]:
    """How many collectives this rank has begun in each group of torch's, by torch's name."""
    from torch.distributed import distributed_c10d as c10d

    names = c10d._world.pg_names
    return {names[group]: begun(group) for group in list(c10d._world.pg_map) if group in names}


def begun(group: ProcessGroup) -> int:
    """How many collectives this rank has begun in a group of torch's; those that C++ calls count, too."""
    types = group._device_types
    entered = max([_sequence(group, it) for it in _devices() if it in types], default=0)
    return entered + _carried.get(group, 0)


def count_carried(group: ProcessGroup) -> None:
    """Counts one that has not entered the group's backend."""
    _carried[group] = _carried.get(group, 0) + 1


@cache
def _devices() -> tuple[Any, ...]:
    import torch

    return tuple(torch.device(it) for it in ("cpu", "cuda"))


def _sequence(group: ProcessGroup, device: Any) -> int:
    backend: Any = group._get_backend(device)
    return int(backend._get_sequence_number_for_group())
