"""torch.distributed on a rank: the default group and named groups of one generation after another."""

from __future__ import annotations

import hashlib
import inspect
import os
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

import torch.distributed as dist
from torch.distributed import distributed_c10d as c10d

from ..backends.gloo.connections import Connections
from ..core import engine_threads
from ..core.errors import BridgeError, unknown_group
from ..core.generation import Generation
from ..core.groups.group import WORLD
from .causes import Causes
from .dispatch import counts
from .torch_store import TIMEOUT, TorchStore

_IFNAME = "GLOO_SOCKET_IFNAME"
_IN_ORDER: dict[str, Any] = (
    {"sort_ranks": False} if "sort_ranks" in inspect.signature(dist.new_group).parameters else {}
)
"""Torch sorts a group's ranks otherwise; before 2.13 it always does."""


class TorchWorld:
    """Groups beside those of the lanes: each has connections of its own. Thread-safe.

    `interface`: the network interface of those connections; empty: the one that torch chooses. `device`: "cpu" for Gloo
    alone, "cuda" for NCCL as well.
    """

    def __init__(self, interface: str, device: str) -> None:
        self._interface = interface
        self._backend = "gloo" if device == "cpu" else "cpu:gloo,cuda:nccl"
        self._lock = threading.Lock()
        self._groups: dict[str, dist.ProcessGroup] = {}
        self._connections = Connections()
        # Set when nothing waits in the groups of `_connections` any more.
        self._is_left = threading.Event()
        self._causes = Causes()
        self._store: TorchStore | None = None
        # How often a group of each name was made in this generation, beside those of its forming.
        self._made: dict[str, int] = {}

    def enter(self, generation: Generation) -> None:
        """Leaves the last generation's groups, and makes this one's. Called while no function runs.

        Raises what torch raises when the generation ends meanwhile.
        """
        self._leave()
        connections, is_left = Connections(), threading.Event()
        with self._lock:
            self._connections, self._is_left = connections, is_left
            self._causes.begin()
        if self._interface:
            os.environ[_IFNAME] = self._interface
        generation.await_end(self, partial(self._shut, connections, is_left))
        # Torch's own stores keep what is C++ of it, and need what is Python's.
        self._store = TorchStore(generation.store, connections.seen)
        # Torch wraps it once more for each default group.
        hook = sys.excepthook
        dist.init_process_group(
            self._backend,
            store=self._store,
            rank=generation.rank,
            world_size=generation.world_size,
            timeout=TIMEOUT,
        )
        sys.excepthook = hook
        made = {WORLD: dist.group.WORLD}
        for view in generation.views():
            if view.name != WORLD:
                # Every rank calls it, in the order of names, as torch demands.
                made[view.name] = dist.new_group(
                    list(view.ranks), timeout=TIMEOUT, group_desc=view.name, **_IN_ORDER
                )
        connections.close_listeners()
        with self._lock:
            self._groups = {name: it for name, it in made.items() if isinstance(it, dist.ProcessGroup)}

    def group(self, name: str, generation: Generation) -> dist.ProcessGroup:
        """The process group of a named group.

        Of one that a controller has made after the forming, it is made when it is first asked for, and all members must
        ask for it, as for a collective. Raises UNKNOWN_GROUP for a group of which this rank is no member.
        """
        with self._lock:
            if (known := self._groups.get(name)) is not None:
                return known
        group = generation.find(name)
        if group.membership is None:
            raise unknown_group(name)
        ranks = list(group.description.ranks)
        with self._lock:
            self._made[name] = count = self._made.get(name, 0) + 1
        with _named(f"{name}/{ranks}/{count}"):
            made = dist.new_group(
                ranks, timeout=TIMEOUT, use_local_synchronization=True, group_desc=name, **_IN_ORDER
            )
        with self._lock:
            return self._groups.setdefault(name, made)

    def counts(self) -> Mapping[str, int]:
        """How many collectives this rank has begun in each group, by torch's name; C++ callers count, too."""
        return counts()

    def explain(self, error: BaseException) -> None:
        """Gives an exception that has left the user's code its cause: why the generation is over, if it is."""
        self._causes.explain(error)

    def waited(self) -> float:
        """How long this rank has waited so far for others to make a group, in seconds; 0: it does not."""
        return self._store.waited() if self._store is not None else 0.0

    def _shut(self, connections: Connections, is_left: threading.Event, error: BridgeError) -> None:
        """Lets every call raise that waits in the groups of a generation that is over, whose connections these are."""
        with self._lock:
            # The next generation may be there already: the other ranks have shut what this one waited for.
            if self._connections is connections:
                self._causes.end(error)
        # Others are waiting for this thread, to hear of the end.
        engine_threads.start("shutting", lambda: connections.stop(is_left))

    def _leave(self) -> None:
        with self._lock:
            self._groups, self._made = {}, {}
            self._is_left.set()
        if dist.is_initialized():
            # A group whose connections are shut says so when it is destroyed.
            with suppress(RuntimeError):
                dist.destroy_process_group()
        # Names of groups count from here, and are equal on all ranks: also where the last generation ended before its
        # default group was there.
        c10d._world.group_count = 0


_OURS = threading.local()
_hash_of_ranks = c10d._hash_ranks_to_str


def _name_of_ranks(ranks: list[int]) -> str:
    """Stands for torch's function, which names a group that its members alone make."""
    return getattr(_OURS, "name", "") or str(_hash_of_ranks(ranks))


c10d._hash_ranks_to_str = _name_of_ranks


@contextmanager
def _named(name: str) -> Iterator[None]:
    """Lets this thread's next group have this name, which is equal on all of its members.

    Torch's own name of a group that its members alone make counts the groups of the rank, which differ.
    """
    _OURS.name = hashlib.sha1(name.encode(), usedforsecurity=False).hexdigest()
    try:
        yield
    finally:
        _OURS.name = ""
