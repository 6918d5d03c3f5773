"""Ranks that an MPI launcher has started."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from typing import TYPE_CHECKING

from .environment import Launched, LaunchError

if TYPE_CHECKING:
    from ..backends.mpi import MpiWorld


class NoMpi(Exception):
    """MPI is not installed, or cannot be loaded; says how to get it."""


def import_mpi() -> None:
    """Import the backend, and with it mpi4py and MPI's library. Raises NoMpi."""
    try:
        from ..backends import mpi  # noqa: F401
    except (ImportError, RuntimeError) as error:
        # mpi4py raises RuntimeError when it finds no library.
        raise NoMpi(
            f"the backend mpi needs mpi4py and an MPI library: pip install 'rankbridge[server,mpi]' ({error})"
        ) from error


def begin(rank: int | None, size: int | None, timeout: float) -> tuple[MpiWorld, Launched, str]:
    """Begin MPI in a process that mpirun, or anything like it, has started.

    Gives the rank's place, which is MPI's, and the name by which ranks on other hosts reach this one, on one host the
    loopback address. `rank` and `size`: what the command line says. `timeout` in seconds for ranks to answer once they
    have begun. Raises NoMpi, LaunchError or BridgeError.
    """
    import_mpi()
    from ..backends.mpi import MpiWorld

    world = MpiWorld.start(one_host=on_one_host(os.environ), timeout=timeout)
    if rank not in (None, world.rank) or size not in (None, world.size):
        raise LaunchError(
            f"MPI has started this as rank {world.rank} of {world.size}, which --rank and --size cannot change"
        )
    hosts = world.exchange(socket.gethostname(), timeout)
    launched = Launched(
        rank=world.rank,
        world_size=world.size,
        local_rank=hosts[: world.rank].count(hosts[world.rank]),
        master=None,
        agent_store=False,
        attempt=0,
    )
    return world, launched, "127.0.0.1" if len(set(hosts)) == 1 else hosts[world.rank]


def on_one_host(environ: Mapping[str, str]) -> bool:
    """Whether the launcher's variables say that all ranks are on this host."""
    return any(
        all_of in environ and environ[all_of] == environ.get(here)
        for all_of, here in (
            ("PMI_SIZE", "MPI_LOCALNRANKS"),
            ("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"),
        )
    )
