"""Admission over control links alone: what agreeing costs an operation, without gRPC and without a backend."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version

from bench.links import TIMEOUT_S, admission, idle, ignore
from bench.looping import Place, looping
from bench.subject import Timed, Ways, serve, timed


def enter(place: Place) -> Mapping[str, Timed]:
    """Becomes a sidecar as far as its links go. They end with the process."""
    from rankbridge_server.links.heartbeat import Heartbeat
    from rankbridge_server.links.listeners import SocketListener
    from rankbridge_server.links.sockets import SocketLinks

    listener = SocketListener(f"unix:{place.directory}/{place.rank}")
    links = SocketLinks(1, place.rank, listener, Heartbeat(interval=1.0))
    links.start(dict(enumerate(place.meet(links.address))), b"secret", ignore, ignore, ignore, idle)
    links.add_group("world", list(range(place.size)), TIMEOUT_S)
    place.meet("linked")
    return {"admission": timed(admission(links))}


@contextmanager
def started(size: int) -> Iterator[Ways]:
    """Starts the ranks."""
    preload = ["rankbridge_server.links.sockets"]
    with looping(size, ["admission"], enter, preload) as operations:
        yield Ways({"rankbridge": version("rankbridge")}, {"links": operations}, {})


if __name__ == "__main__":
    from bench.subjects import admission as here

    serve(here.started)
