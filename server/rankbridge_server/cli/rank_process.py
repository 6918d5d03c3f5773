"""What the processes do that an agent forks."""

from __future__ import annotations

import signal
from collections.abc import Callable
from types import FrameType

from ..agent.messages import Line, Suspect
from ..core.rank import Identity
from ..links.local import LocalHub
from ..links.sockets import SocketLinkMaker
from .settings import RankSettings
from .sidecar import Sidecar, obey


class _Stopped(Exception):
    """SIGTERM: the agent wants this process to end."""


def _stop_on_sigterm() -> None:
    def stop(signum: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise _Stopped

    signal.signal(signal.SIGTERM, stop)


def run_gloo_rank(identity: Identity, settings: RankSettings, line: Line) -> None:
    """Serve one rank on Gloo until the agent says stop, or is gone."""
    from ..backends.gloo import GlooBackend

    links = SocketLinkMaker(settings.links, heartbeat=settings.heartbeat)
    links.sweep()
    sidecar = Sidecar(identity, GlooBackend(), links, settings, lost=lambda: _suspect(line))
    _stop_on_sigterm()
    try:
        obey([sidecar], line)
    except _Stopped:
        sidecar.stop()


def _suspect(line: Line) -> None:
    line.try_send(Suspect())


def run_fake_gang(size: int, settings: Callable[[int], RankSettings], line: Line) -> None:
    """Serve all ranks of a gang on the fake backend until the agent says stop, or is gone."""
    from ..backends.fake import FakeBackend, FakeHub

    hub, links = FakeHub(), LocalHub()
    sidecars = [
        Sidecar(
            Identity(rank=rank, world_size=size, local_rank=rank), FakeBackend(hub), links, settings(rank)
        )
        for rank in range(size)
    ]
    _stop_on_sigterm()
    try:
        obey(sidecars, line)
    except _Stopped:
        for sidecar in sidecars:
            sidecar.stop()
