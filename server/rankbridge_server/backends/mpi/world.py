"""This process's place in its MPI job, which it keeps for life."""

from __future__ import annotations

import os
import secrets
import time
from pathlib import Path

from ..errors import forming_failed
from .binding import MPI
from .waiting import ends


class MpiWorld:
    """MPI_COMM_WORLD. Start it once in a process: MPI cannot be started again.

    `id` is the job's, the same on all its ranks and on no others; `rank` and `size` are MPI's. Groups of any
    generation are formed among these ranks; whoever is not among them cannot be reached by MPI.
    """

    def __init__(self, comm: MPI.Intracomm, job: str) -> None:
        """Use `start`."""
        self.comm = comm
        self.id = job
        self.rank = comm.Get_rank()
        self.size = comm.Get_size()
        self._tags = int(comm.Get_attr(MPI.TAG_UB) or 32767) + 1

    @classmethod
    def start(cls, *, one_host: bool, timeout: float) -> MpiWorld:
        """Begin MPI; returns when all ranks have. Raises BACKEND_FAILED, or ends the process if MPI cannot begin.

        `one_host`: all ranks are on this host, so no other shall be able to connect. `timeout`, in seconds, counts
        only from when all have called.
        """
        if one_host:
            os.environ.setdefault("UCX_TLS", "self,posix,cma")
        if not MPI.Is_initialized():
            MPI.Init_thread(MPI.THREAD_MULTIPLE)
        if MPI.Query_thread() < MPI.THREAD_MULTIPLE:
            raise forming_failed("MPI", "this MPI cannot be used by several threads (MPI_THREAD_MULTIPLE)")
        comm = MPI.COMM_WORLD
        comm.Set_errhandler(MPI.ERRORS_RETURN)
        world = cls(comm, "")
        world.id = world.exchange(secrets.token_hex(8), timeout)[0]
        _unlink_shared_memory()
        return world

    def exchange(self, mine: str, timeout: float) -> list[str]:
        """Exchanges data between all ranks; returns it by rank in MPI. Raises BACKEND_FAILED after the timeout."""
        deadline = time.monotonic() + timeout
        given = mine.encode()
        lengths = [0] * self.size
        packed = bytearray(8 * self.size)
        length = bytearray(len(given).to_bytes(8, "little"))
        self._wait(self.comm.Iallgather([length, MPI.BYTE], [packed, 8, MPI.BYTE]), deadline)
        for rank in range(self.size):
            lengths[rank] = int.from_bytes(packed[8 * rank : 8 * rank + 8], "little")
        texts = bytearray(sum(lengths))
        self._wait(self.comm.Iallgatherv([given, MPI.BYTE], [texts, lengths, MPI.BYTE]), deadline)
        starts = [sum(lengths[:rank]) for rank in range(self.size)]
        return [texts[start : start + count].decode() for start, count in zip(starts, lengths, strict=True)]

    def tag(self, number: int) -> int:
        """A valid MPI tag for a number of 0 or more. Consecutive numbers have different tags."""
        return number % self._tags

    def _wait(self, request: MPI.Request, deadline: float) -> None:
        if not ends(request, deadline):
            raise forming_failed("MPI", f"not all of the {self.size} ranks of the job came in time")


def _unlink_shared_memory() -> None:
    """Removes the name of MPICH's shared memory, which all ranks have mapped: it would outlive killed ranks."""
    mapped = {
        line.split(maxsplit=5)[5]
        for line in Path("/proc/self/maps").read_text().splitlines()
        if "/dev/shm/mpich_" in line
    }
    for name in mapped:
        Path(name.removesuffix(" (deleted)")).unlink(missing_ok=True)
