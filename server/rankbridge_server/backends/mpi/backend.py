"""Forming groups among the ranks of an MPI job."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future, TimeoutError as FutureTimeoutError

import torch

from ...core.coordinator import Coordinator, GroupDescription, Joining, ReduceOp
from ...core.dtype import Dtype
from ..errors import forming_failed
from ..reductions import reduces
from ..torch_tensors import TorchTensors
from .address import Address, key_of
from .binding import MPI
from .channel import Channel, sweep
from .coordinator import MpiCoordinator
from .retired import Retired
from .waiting import ends
from .world import MpiWorld


class MpiBackend:
    """One rank of an MPI job. Every group of every generation has a communicator of its own.

    `retired`: those of groups that are over, and that MPI does not have back yet.
    """

    name = "mpi"
    lacks = frozenset[str]()

    def __init__(self, world: MpiWorld) -> None:
        self.tensors = TorchTensors()
        self._world = world
        self.retired = Retired()
        # Ranks share their host's cores; torch's own thread pool would overload them.
        torch.set_num_threads(1)

    def join(self, group: GroupDescription, rank_in_group: int, generation: int) -> Joining:
        """Makes an address from this rank and its job."""
        sweep()
        return _MpiJoining(self._world, self.retired, rank_in_group)

    def reduces(self, op: ReduceOp, dtype: Dtype) -> bool:
        """The reductions of Gloo, so that a program works on both backends."""
        return reduces(op, dtype)


class _MpiJoining:
    """A member before it connects."""

    def __init__(self, world: MpiWorld, retired: Retired, rank_in_group: int) -> None:
        self._world = world
        self._retired = retired
        self._rank_in_group = rank_in_group
        self.address = Address.new(world.id, world.rank, retired.counts()).encoded()

    def connect(self, addresses: Sequence[bytes], timeout: float) -> Coordinator:
        """Make the communicator, once all members have come.

        Raises BACKEND_FAILED, also for a member that is of another job: MPI has no way to it.
        """
        deadline = time.monotonic() + timeout
        members = [Address.decoded(address) for address in addresses]
        self._check(members)
        self._retired.free({member.rank: member.counts for member in members})
        ranks = tuple(member.rank for member in members)
        key = key_of(addresses)
        try:
            self._meet(ranks, key, deadline)
            comm = self._make(ranks, key, deadline)
        except MPI.Exception as error:
            raise forming_failed("MPI", f"no communicator of {len(ranks)} members: {error}") from error
        return MpiCoordinator(
            Channel(comm, key, ranks), self._rank_in_group, self._world.tag, self._retired.add
        )

    def abandon(self) -> None:
        """Does nothing: no resource is open."""

    def _check(self, members: Sequence[Address]) -> None:
        for rank_in_group, member in enumerate(members):
            if member.job != self._world.id:
                raise forming_failed(
                    "MPI",
                    f"the member of rank {rank_in_group} in the group is not in this rank's MPI job, and MPI cannot "
                    "take in a process that was not there when the job began: form a gang of the ranks that are "
                    "left, or start a new one",
                    expected=f"job {self._world.id}",
                    got=f"job {member.job}",
                )

    def _meet(self, ranks: Sequence[int], key: str, deadline: float) -> None:
        """A barrier of the members, with a deadline: making the communicator has none, and waits for all of them."""
        comm, size, tag = self._world.comm, len(ranks), self._world.tag(int(key, 16))
        for distance in (2**it for it in range(math.ceil(math.log2(size)))):
            after = ranks[(self._rank_in_group + distance) % size]
            before = ranks[(self._rank_in_group - distance) % size]
            coming = comm.Irecv([bytearray(0), MPI.BYTE], source=before, tag=tag)
            going = comm.Isend([b"", MPI.BYTE], dest=after, tag=tag)
            if not (ends(coming, deadline) and ends(going, deadline)):
                coming.Cancel()
                raise forming_failed("MPI", f"not all {size} members came in time")

    def _make(self, ranks: Sequence[int], key: str, deadline: float) -> MPI.Intracomm:
        comm = self._world.comm
        made: Future[MPI.Intracomm] = Future()

        def make() -> None:
            try:
                new = comm.Create_group(comm.Get_group().Incl(list(ranks)), self._world.tag(int(key, 16)))
                new.Set_errhandler(MPI.ERRORS_RETURN)
                made.set_result(new)
            except Exception as error:
                made.set_exception(error)

        # Never returns if a member is lost now.
        threading.Thread(target=make, name="mpi-joining", daemon=True).start()
        try:
            return made.result(max(0.0, deadline - time.monotonic()))
        except FutureTimeoutError as error:
            raise forming_failed("MPI", f"no communicator of {len(ranks)} members in time") from error
