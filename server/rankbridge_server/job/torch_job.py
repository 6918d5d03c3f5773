"""What is seen of the job in this process: torch.distributed's default group, its store, and its groups.

Nothing of torch is changed. Tables that another thread may be changing are copied before they are read, which nothing
can interrupt.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any, cast

from ..core.groups.group import WORLD
from .board import Store
from .group_names import FoundGroup

_C10D = "torch.distributed.distributed_c10d"
# What torch calls groups to which nobody has given a name.
_NAMELESS = frozenset({"", "undefined", "default_pg", "mesh_default"})
_MESH = "mesh_"
_MODULES = ("vllm.distributed.parallel_state", "sglang.srt.distributed.parallel_state")
"""Modules that keep coordinators of groups in global variables, by the attributes that vLLM's GroupCoordinator has."""
_GROUPS_OF = ("device_group", "cpu_group", "process_group", "group", "pg")


class NotAGroup(ValueError):
    """An object in which no group can be found."""


class TorchJob:
    """The job of this process, whose default group exists."""

    def __init__(self) -> None:
        self._c10d: Any = sys.modules[_C10D]
        self.rank = int(self._c10d.get_rank())
        self.size = int(self._c10d.get_world_size())

    @property
    def store(self) -> Store:
        """The store by which the job's ranks have met. Raises ValueError if it has none."""
        store = self._c10d._get_default_store()
        if store is None:
            raise ValueError(
                "the job's default group has no store by which its ranks could meet: is it of the backend mpi?"
            )
        return cast(Store, store)

    @property
    def store_host(self) -> str:
        """The host of the job's store, MASTER_ADDR as a rule; empty: the store has none."""
        store: Any = self.store
        while hasattr(store, "underlying_store"):
            store = store.underlying_store
        return str(getattr(store, "host", "") or os.environ.get("MASTER_ADDR", ""))

    @property
    def device_index(self) -> int | None:
        """The CUDA device to which the job has bound this rank in init_process_group; None: it has not."""
        bound = getattr(self._c10d._get_default_group(), "bound_device_id", None)
        return bound.index if bound is not None and bound.type == "cuda" else None

    @property
    def default_group(self) -> object:
        """The default group; None: it was destroyed."""
        return self._c10d._world.default_pg

    def ranks_by_key(self) -> dict[str, tuple[int, ...]]:
        """Of the groups of this rank, the ranks in group order, by torch's name, which no other group has."""
        # Objects that name ranks alone have no such name.
        return {it.key: it.ranks for it in self.groups({}) if it.key}

    def mark(self) -> tuple[int, int]:
        """Changes when the job makes or ends a group."""
        world = self._c10d._world
        return int(world.group_count), len(world.pg_group_ranks)

    def groups(self, given: Mapping[str, object]) -> list[FoundGroup]:
        """The groups of this rank. `given`: by name, what `ranks_of` takes."""
        named = [(name, ranks_of(thing)) for name, thing in [*_coordinators(), *given.items()]]
        found = [FoundGroup("", name, ranks) for name, ranks in named if self.rank in ranks]
        tables = self._c10d._world
        group_names = tables.pg_names.copy()
        for group, places in tables.pg_group_ranks.copy().items():
            ranks = tuple(sorted(places, key=places.__getitem__))
            name = _name_of(getattr(group, "group_desc", ""))
            if self.rank in ranks:
                found.append(FoundGroup(str(group_names.get(group, "")), name, ranks))
        return found


def default_group_exists() -> bool:
    """Whether the job has called init_process_group. Imports nothing."""
    c10d = sys.modules.get(_C10D)
    return c10d is not None and hasattr(c10d, "is_initialized") and bool(c10d.is_initialized())


def ranks_of(thing: object) -> tuple[int, ...]:
    """The ranks of a group: a process group, a list of ranks, or an object that has either, as coordinators do.

    Raises NotAGroup.
    """
    if (ranks := _ranks_of_group(thing)) is not None:
        return ranks
    if (ranks := _numbers(thing)) is not None or (
        ranks := _numbers(getattr(thing, "ranks", None))
    ) is not None:
        return ranks
    for name in _GROUPS_OF:
        if (ranks := _ranks_of_group(getattr(thing, name, None))) is not None:
            return ranks
    raise NotAGroup(
        f"a {type(thing).__name__} is no group: give a ProcessGroup, a list of ranks, or an object with `ranks` or one "
        f"of {', '.join(_GROUPS_OF)}"
    )


def local_rank(hosts: Sequence[str], rank: int) -> tuple[int, int]:
    """The rank's place on its host, and how many ranks are there. `hosts`: by rank."""
    here = [it for it, host in enumerate(hosts) if host == hosts[rank]]
    given = os.environ.get("LOCAL_RANK", "")
    return int(given) if given.isdecimal() and int(given) < len(here) else here.index(rank), len(here)


def _ranks_of_group(thing: object) -> tuple[int, ...] | None:
    c10d: Any = sys.modules.get(_C10D)
    if c10d is None or not isinstance(thing, c10d.ProcessGroup):
        return None
    return tuple(c10d.get_process_group_ranks(thing))


def _numbers(thing: object) -> tuple[int, ...] | None:
    if not isinstance(thing, list | tuple) or not thing:
        return None
    return tuple(thing) if all(type(it) is int for it in thing) else None


def _coordinators() -> list[tuple[str, object]]:
    """Coordinators in variables of well-known modules, with their names."""
    found: list[tuple[str, object]] = []
    for module in filter(None, map(sys.modules.get, _MODULES)):
        for thing in list(vars(module).copy().values()):
            name = getattr(thing, "unique_name", None)
            if isinstance(name, str) and _numbers(getattr(thing, "ranks", None)):
                # "tp:0": vLLM numbers the coordinators that one process has made under a name.
                found.append((name.partition(":")[0], thing))
    return found


def _name_of(description: str) -> str:
    if description in _NAMELESS:
        return ""
    # Meshes say so of each of their dimensions.
    name = description.removeprefix(_MESH)
    return "" if name == WORLD else name
