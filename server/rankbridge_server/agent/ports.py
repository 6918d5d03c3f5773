"""TCP ports of ranks, which stay theirs while no process listens there."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from ..core.address import Address

_HOST = "127.0.0.1"


class HeldPort:
    """A port of this host that is bound, and never listened on: connections to it are refused until a rank listens.

    Once a rank's process has ended, the system could give its port to whoever asks for any, to listen or to connect,
    and the rank's next process could not have it. A port that is bound goes to nobody.
    """

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        # Whoever sets it, as gRPC does, may bind to the port and listen; the next one who listens is refused.
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._socket.bind((_HOST, 0))
        self.address = Address(_HOST, self._socket.getsockname()[1])

    def close(self) -> None:
        """Gives the port up, as far as this process holds it; the process that it was forked from still does."""
        self._socket.close()


@contextmanager
def held_ports(count: int) -> Iterator[list[HeldPort]]:
    """Holds so many ports, until it is left."""
    with ExitStack() as stack:
        ports: list[HeldPort] = []
        for _ in range(count):
            ports.append(HeldPort())
            stack.callback(ports[-1].close)
        yield ports
