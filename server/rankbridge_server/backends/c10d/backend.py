"""Forming groups on somebody else's backend."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import torch

from ...core.coordinator import Coordinator, GroupDescription, Joining, ReduceOp
from ...core.dtype import Dtype
from ..bounded import bounded
from ..errors import forming_failed
from ..gloo.raw import make_store
from ..torch_tensors import TorchTensors
from .abilities import Abilities, abilities_of
from .coordinator import C10dCoordinator
from .creator import Creator
from .store import SharedStore

_ALONE_S = 30.0


class C10dBackend:
    """Process groups that `create` makes, on tensors in the host's memory.

    Makes a group of one member to see what it implements. Raises BACKEND_FAILED when that fails. `name`: what it is
    called. `hostname`: name or address at which the other ranks reach this one. `timeout`: seconds that `create` and
    each operation may take.
    """

    def __init__(self, name: str, create: Creator, hostname: str, timeout: float) -> None:
        # Ranks share their host's cores; torch's own thread pool would overload them.
        torch.set_num_threads(1)
        self.name = name
        self.tensors = TorchTensors()
        self._create = create
        self._hostname = hostname
        self._timeout = timedelta(seconds=timeout)
        self._abilities = self._look()

    @property
    def lacks(self) -> frozenset[str]:
        """The operations that the process group does not implement."""
        return self._abilities.lacks

    def reduces(self, op: ReduceOp, dtype: Dtype) -> bool:
        """Whether the process group does not say that it has no such reduction."""
        return (op, dtype) in self._abilities.reductions

    def join(self, group: GroupDescription, rank_in_group: int, generation: int) -> Joining:
        """Serves the group's store as rank 0 in it."""
        return _C10dJoining(
            self._create,
            SharedStore(self._hostname, rank_in_group == 0 and len(group.ranks) > 1, self._timeout),
            f"{generation}/{group.name}",
            rank_in_group,
            len(group.ranks),
            self._timeout,
            self._abilities.has,
        )

    def _look(self) -> Abilities:
        def look() -> Abilities:
            return abilities_of(self._create(make_store(self._timeout), 0, 1, self._timeout))

        try:
            return bounded(look, _ALONE_S, "c10d")
        except Exception as error:
            reason = f"a group of one member cannot be made and called: {type(error).__name__}: {error}"
            raise forming_failed(f"The backend {self.name}", reason) from error


class _C10dJoining:
    """A member whose process group is made when all have given their addresses."""

    def __init__(
        self,
        create: Creator,
        store: SharedStore,
        prefix: str,
        rank_in_group: int,
        size: int,
        timeout: timedelta,
        has: frozenset[str],
    ) -> None:
        self._create = create
        self._store: SharedStore | None = store
        self._prefix = prefix
        self._rank_in_group = rank_in_group
        self._size = size
        self._timeout = timeout
        self._has = has
        self.address = store.address

    def connect(self, addresses: Sequence[bytes], timeout: float) -> Coordinator:
        """Calls the author's function."""
        shared = self._store
        assert shared is not None, "it was abandoned"

        def make() -> Coordinator:
            alone = self._size == 1
            store = make_store(self._timeout) if alone else shared.connected(addresses[0], self._prefix)
            group = self._create(store, self._rank_in_group, self._size, self._timeout)
            return C10dCoordinator(group, self._rank_in_group, self._size, self._has, store)

        try:
            return bounded(make, timeout, "c10d")
        except Exception as error:
            raise forming_failed("The c10d backend", f"{type(error).__name__}: {error}") from error

    def abandon(self) -> None:
        """Leaves the store."""
        self._store = None
