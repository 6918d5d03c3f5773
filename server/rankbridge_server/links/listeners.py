"""How the links of one generation are made: where a sidecar is called, and how it calls others."""

from __future__ import annotations

import socket
import time
from pathlib import Path
from typing import Protocol

from ..core.address import Address
from .link import dial, listen
from .tls import LinkTls


class Listener(Protocol):
    """One sidecar's end of all connections. Listens from the start."""

    @property
    def address(self) -> str:
        """Where the others connect to."""
        ...

    def fileno(self) -> int:
        """There is something to read here when somebody calls."""
        ...

    def accept(self) -> socket.socket:
        """A connected stream socket to whoever called first. Never waits. Raises OSError when nobody does."""
        ...

    def dial(self, address: str, timeout: float) -> socket.socket:
        """Connect to another's address, in `timeout` seconds. Raises OSError."""
        ...

    def close(self) -> None:
        """Give everything back. Whoever calls later is refused."""
        ...


class SocketListener:
    """Listens at "unix:/path", or at "host:port" with port 0 for any. Raises OSError.

    `advertise`: the host that others connect to, when it is not the one of `address`. With `tls`, what goes over TCP
    is sealed.
    """

    def __init__(self, address: str, advertise: str = "", tls: LinkTls | None = None) -> None:
        self._socket, bound = listen(address)
        self._socket.setblocking(False)
        self._path = bound.removeprefix("unix:") if bound.startswith("unix:") else ""
        self._tls = tls
        if advertise and not self._path:
            bound = str(Address(advertise, Address.parse(bound).port))
        self.address = bound

    def fileno(self) -> int:
        """The listening socket's."""
        return self._socket.fileno()

    def accept(self) -> socket.socket:
        """The next connection."""
        sock, _ = self._socket.accept()
        return self._tls.accepted(sock) if self._tls else sock

    def dial(self, address: str, timeout: float) -> socket.socket:
        """Connect, and shake hands where TLS is spoken."""
        deadline = time.monotonic() + timeout
        sock = dial(address, timeout)
        return self._tls.dialled(sock, address, deadline - time.monotonic()) if self._tls else sock

    def close(self) -> None:
        """Listen no more, and leave no socket behind."""
        self._socket.close()
        if self._path:
            Path(self._path).unlink(missing_ok=True)
