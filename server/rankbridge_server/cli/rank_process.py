"""The processes that an agent forks."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from ..agent.messages import Began, Failed, Form, Formed, Line, Ping, Pong, Ready, Suspect
from ..core.coordinator import Backend
from ..core.errors import BridgeError
from ..core.limits import Limits
from ..core.rank import Identity
from ..job.loading import LoadError
from ..job.outside import stacks
from ..links.pairs import PairLinkMaker
from ..links.sockets import SocketLinkMaker
from ..sidecar.logs import begin as begin_logs
from ..sidecar.settings import RankSettings
from ..sidecar.sidecar import Sidecar
from . import others
from .loaded import loaded
from .logs import OfRank
from .nccl import limits_on

MPI_TIMEOUT_S = 60.0


def run_gloo_rank(identity: Identity, settings: RankSettings, line: Line) -> None:
    """Serve one rank on Gloo until the agent is gone."""
    from ..backends.gloo import GlooBackend

    _run_rank(identity, settings, line, lambda: (GlooBackend(), settings.limits))


def run_nccl_rank(identity: Identity, settings: RankSettings, max_bytes: int, line: Line) -> None:
    """Serve one rank on NCCL until the agent is gone. `max_bytes`: of tensors, 0 for half of the device's memory."""
    from ..backends.nccl import NcclBackend

    def made() -> tuple[Backend, Limits]:
        backend = NcclBackend(identity.local_rank)
        return backend, limits_on(backend, settings.limits, max_bytes)

    _run_rank(identity, settings, line, made)


def run_others_rank(identity: Identity, settings: RankSettings, backend: str, line: Line) -> None:
    """Serve one rank on an engine that somebody else wrote until the agent is gone."""
    _run_rank(
        identity,
        settings,
        line,
        lambda: (others.begin(backend, "127.0.0.1", settings.data_timeout), settings.limits),
    )


def run_mpi_rank(identity: Identity, settings: RankSettings, line: Line) -> None:
    """Serve one rank on MPI, which has its launcher in the environment, until the agent is gone."""
    from ..backends.mpi import MpiBackend, MpiWorld

    def made() -> tuple[Backend, Limits]:
        return MpiBackend(MpiWorld.start(one_host=True, timeout=MPI_TIMEOUT_S)), settings.limits

    _run_rank(identity, settings, line, made)


def run_fake_gang(size: int, settings: Callable[[int], RankSettings], line: Line) -> None:
    """Serve all ranks of a gang on the fake backend until the agent is gone."""
    from ..backends.fake import FakeBackend, FakeHub

    hub, links = FakeHub(), PairLinkMaker(settings(0).straggler_after)

    begin_logs(settings(0).logs)

    def sidecar(rank: int) -> Sidecar:
        identity = Identity(rank, size, local_rank=rank, fs_local_rank=rank, local_world_size=size)
        backend = FakeBackend(hub)
        functions, hook, _ = loaded(settings(rank).load, backend, "")
        return Sidecar(
            identity, backend, links, settings(rank), formed=_report(line), functions=functions, hook=hook
        )

    _serve(lambda: [sidecar(rank) for rank in range(size)], line)


def _run_rank(
    identity: Identity, settings: RankSettings, line: Line, make: Callable[[], tuple[Backend, Limits]]
) -> None:
    links = SocketLinkMaker(settings.links, heartbeat=settings.heartbeat, patience=settings.straggler_after)
    links.sweep()
    begin_logs(settings.logs)
    sys.stdout = OfRank(sys.stdout, identity.rank)
    sys.stderr = OfRank(sys.stderr, identity.rank)

    def sidecar() -> Sidecar:
        backend, limits = make()
        lost = partial(line.try_send, Suspect())
        functions, hook, record_calls = loaded(settings.load, backend, "127.0.0.1")
        ours = replace(settings, limits=limits)
        return Sidecar(
            identity,
            backend,
            links,
            ours,
            lost,
            _report(line),
            functions,
            hook,
            stacks.threads,
            record_calls if settings.record_calls else None,
        )

    _serve(lambda: [sidecar()], line)


def _report(line: Line) -> Callable[[int], object]:
    return lambda generation: line.try_send(Began(generation))


def _serve(make: Callable[[], list[Sidecar]], line: Line) -> None:
    # A thread of gRPC or Gloo that took the signal could not wake this one, which waits for the agent. All threads
    # inherit that it is blocked, and one waits for it.
    signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGTERM,))
    try:
        sidecars = make()
    except Exception as error:
        says_all = isinstance(error, (BridgeError, LoadError))
        line.send(Failed(str(error) if says_all else f"{type(error).__name__}: {error}"))
        raise
    threading.Thread(target=_end_on_sigterm, args=(sidecars,), name="ending", daemon=True).start()
    _obey(sidecars, line)


def _end_on_sigterm(sidecars: list[Sidecar]) -> None:
    signal.sigwait((signal.SIGTERM,))
    for sidecar in sidecars:
        sidecar.stop()
    os._exit(0)


def _obey(sidecars: Sequence[Sidecar], line: Line) -> None:
    """Serves these ranks and follows the agent's messages until the agent is gone."""
    line.send(Ready([target for sidecar in sidecars for target in sidecar.endpoints]))
    while isinstance(message := line.receive(), Form | Ping):
        if isinstance(message, Ping):
            line.send(Pong())
            continue
        # A process with several ranks forms all of them: the agent knows only one.
        targets = message.endpoints if len(sidecars) == 1 else [it.endpoints[0] for it in sidecars]
        try:
            formed = sidecars[0].form(targets, message.timeout)
            line.send(Formed(formed.generation, formed.took))
        except BridgeError as error:
            line.send(Failed(str(error)))
