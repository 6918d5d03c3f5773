"""Forming groups on Gloo without a shared store."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, TimeoutError as FutureTimeoutError
from datetime import timedelta

import torch

from ...core import engine_threads
from ...core.coordinator import Coordinator, GroupDescription, Joining, ReduceOp
from ...core.dtype import Dtype
from ..cpu_coordinator import CpuGroup
from ..errors import forming_failed
from ..reductions import reduces
from ..torch_tensors import TorchTensors
from .address import cleaned, endpoint_of
from .coordinator import GlooCoordinator
from .raw import make_group, make_store
from .sockets import GroupSockets

# Threads of torch behind each group; more of them only add hand-overs.
_THREADS = 2


class GlooBackend:
    """Gloo over TCP.

    `hostname`: name or address at which the other ranks reach this one. `connect_timeout`: seconds that a new group
    waits for the others' addresses, and for each of them to answer. `torch_threads`: of torch's own pool in this
    process; 0: as many as it has.
    """

    name = "gloo"
    lacks: frozenset[str] = frozenset()

    def __init__(
        self, hostname: str = "127.0.0.1", connect_timeout: float = 10.0, torch_threads: int = 1
    ) -> None:
        self.tensors = TorchTensors()
        self._hostname = hostname
        self._connect_timeout = connect_timeout
        if torch_threads:
            # Ranks share their host's cores; torch's own thread pool would overload them.
            torch.set_num_threads(torch_threads)

    def join(self, group: GroupDescription, rank_in_group: int, generation: int) -> Joining:
        """Opens a Gloo device, whose address it reads from a store within this process."""
        return _GlooJoining(
            self._hostname, rank_in_group, len(group.ranks), timedelta(seconds=self._connect_timeout)
        )

    def reduces(self, op: ReduceOp, dtype: Dtype) -> bool:
        """Whether there is `op` on `dtype`: Gloo's, or one in steps of our own."""
        return reduces(op, dtype)


class _GlooJoining:
    """A ProcessGroupGloo whose constructor waits, on its own thread, for the others' addresses."""

    def __init__(self, hostname: str, rank_in_group: int, size: int, timeout: timedelta) -> None:
        self._hostname = hostname
        self._rank_in_group = rank_in_group
        self._size = size
        self._timeout = timeout
        self._store = make_store(timeout)
        self._made: Future[CpuGroup] = Future()
        engine_threads.start("gloo-joining", self._make)
        self.address = self._own_address()
        # None: another torch has written the address, in a way that is not known here.
        self._endpoint = endpoint_of(self.address, size)
        if self._endpoint is not None:
            self.address = cleaned(self.address, size)

    def connect(self, addresses: Sequence[bytes], timeout: float) -> Coordinator:
        """Passes the others' addresses to the constructor and waits for it."""
        if self._endpoint is not None:
            addresses = [cleaned(address, self._size) for address in addresses]
        for rank_in_group, address in enumerate(addresses):
            if rank_in_group != self._rank_in_group:
                self._give(rank_in_group, address)
        try:
            group = self._made.result(timeout)
        except (RuntimeError, FutureTimeoutError) as error:
            raise forming_failed("Gloo", str(error) or f"no answer in {timeout:.1f} s") from error
        return GlooCoordinator(group, self._rank_in_group, self._size, self._sockets(addresses))

    def abandon(self) -> None:
        """Leaves the constructor to its timeout: nothing else ends it, and a made-up address crashes it."""

    def _make(self) -> None:
        try:
            self._made.set_result(
                make_group(
                    self._store, self._rank_in_group, self._size, self._hostname, _THREADS, self._timeout
                )
            )
        except Exception as error:
            self._made.set_exception(error)
            # A waiting caller learns at once that there is no address.
            self._give(self._rank_in_group, b"")

    def _sockets(self, addresses: Sequence[bytes]) -> GroupSockets | None:
        """Lets nobody else connect, as all members are; gives the group's sockets here. None: they are not known."""
        if self._endpoint is None:
            return None
        peers = {endpoint_of(it, self._size) for it in addresses} - {self._endpoint, None}
        sockets = GroupSockets(self._endpoint, [it for it in peers if it is not None])
        sockets.close_listener()
        return sockets

    def _give(self, rank_in_group: int, address: bytes) -> None:
        # torch's stubs say str, and its binding takes both.
        self._store.set(self._key(rank_in_group), address)  # type: ignore[arg-type]

    def _own_address(self) -> bytes:
        address = bytes(self._store.get(self._key(self._rank_in_group)))
        if not address:
            error = self._made.exception()
            raise forming_failed("Gloo", f"no address on host {self._hostname!r}: {error}") from error
        return address

    @staticmethod
    def _key(rank_in_group: int) -> str:
        # Where ProcessGroupGloo of torch 2.13 puts and looks for the addresses of its first context.
        return f"0/{rank_in_group}"
