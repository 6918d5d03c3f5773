"""Many sidecars in one process, on the fake backend, with real gRPC and real control links: how cost grows with ranks.

A gang as large as one machine bears, because its ranks share a process, and one interpreter's lock. What its ranks send
each other over control links is counted, without the signs of life, which go by the clock.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import rankbridge
from bench.subject import Ways, serve, timed
from rankbridge_server.backends.fake import FakeBackend, FakeHub
from rankbridge_server.core.limits import Limits
from rankbridge_server.core.rank import Identity
from rankbridge_server.links.heartbeat import Heartbeat
from rankbridge_server.links.link import Link
from rankbridge_server.links.sockets import SocketLinkMaker
from rankbridge_server.links.wire import BEAT
from rankbridge_server.sidecar.settings import RankSettings
from rankbridge_server.sidecar.sidecar import Sidecar

# So many ranks in one process are late at times; none of them is to be lost for that.
_HEARTBEAT = Heartbeat(interval=5.0, misses=12)
_FORM_S = 120.0


class Traffic:
    """Counts what is sent over the control links of this process."""

    def __init__(self) -> None:
        self.nbytes = 0
        self.messages = 0
        send = Link.send

        def counting(link: Link, data: bytes) -> None:
            if data != BEAT:
                self.nbytes += len(data)
                self.messages += 1
            send(link, data)

        Link.send = counting  # type: ignore[method-assign, assignment]


def sidecars(size: int, directory: Path) -> list[Sidecar]:
    """Ranks that serve; they are not formed yet."""
    hub = FakeHub()

    def sidecar(rank: int) -> Sidecar:
        settings = RankSettings(
            listen=(f"unix:{directory}/rank-{rank}",),
            links=f"unix:{directory}/links-{rank}",
            limits=Limits(),
            heartbeat=_HEARTBEAT,
            share_memory=False,
        )
        identity = Identity(rank, size, local_rank=rank)
        links = SocketLinkMaker(settings.links, heartbeat=settings.heartbeat)
        return Sidecar(identity, FakeBackend(hub), links, settings)

    return [sidecar(rank) for rank in range(size)]


@contextmanager
def started(size: int) -> Iterator[Ways]:
    """Starts and forms them, and connects to them from this process."""
    traffic = Traffic()
    with TemporaryDirectory(prefix="rankbridge-bench-") as directory:
        ranks = sidecars(size, Path(directory))
        targets = [rank.endpoints[0] for rank in ranks]
        ranks[0].form(targets, _FORM_S)
        with rankbridge.connect(targets, timeout=60) as gang:
            yield Ways({"rankbridge": version("rankbridge")}, _timed(gang, traffic), {})
    # Ranks that are stopped one after the other tell each other of it for long.
    os._exit(0)


def _timed(gang: Any, traffic: Traffic) -> dict[str, Any]:
    def counted(call: Callable[[], object], what: str) -> Callable[[int], list[float]]:
        """Not seconds: what was sent meanwhile to or from each follower, on average of the calls."""

        def run(count: int) -> list[float]:
            before = getattr(traffic, what)
            for _ in range(count):
                call()
            return [(getattr(traffic, what) - before) / count / (len(gang) - 1)]

        return run

    ways: dict[str, Any] = {}
    for way in ("ranks", "gang"):

        def barrier(way: Any = way) -> None:
            gang.barrier(calls=way)

        ways[way] = {
            "barrier": timed(barrier),
            "control_bytes_per_follower": counted(barrier, "nbytes"),
            "control_messages_per_follower": counted(barrier, "messages"),
        }
    return ways


if __name__ == "__main__":
    serve(started)
