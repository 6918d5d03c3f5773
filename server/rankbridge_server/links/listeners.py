"""The listener of one generation's links: it accepts and dials connections."""

from __future__ import annotations

import select
import socket
import time
from pathlib import Path
from typing import Protocol

from ..core.address import Address
from ..core.peer_user import is_trusted
from .link import dial, listen
from .tls import LinkTls


class Listener(Protocol):
    """One sidecar's listener. It listens from the start."""

    @property
    def address(self) -> str:
        """The address to which the others connect."""

    def fileno(self) -> int:
        """A file descriptor that is readable when a connection waits to be accepted."""

    def accept(self) -> socket.socket:
        """The next connection, as a stream socket. Never waits. Raises OSError when there is none."""

    def dial(self, address: str, timeout: float) -> socket.socket:
        """Connects to another sidecar's address, in `timeout` seconds. Raises OSError."""

    def close(self) -> None:
        """Closes the listener. Later connections are refused."""


class SocketListener:
    """Listens at "unix:/path", or at "host:port" with port 0 for any. Raises OSError.

    `advertise`: the host to which others connect, if not that of `address`. `tls`: for connections over TCP.
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
        """The next connection. Raises PermissionError for one of another user."""
        sock, _ = self._socket.accept()
        if not is_trusted(sock):
            sock.close()
            raise PermissionError("the connection is another user's")
        return self._tls.accepted(sock) if self._tls else sock

    def dial(self, address: str, timeout: float) -> socket.socket:
        """Connects, with a TLS handshake if there is TLS."""
        deadline = time.monotonic() + timeout
        sock = dial(address, timeout)
        if not is_trusted(sock):
            sock.close()
            raise PermissionError(f"{address} is another user's")
        return self._tls.dialled(sock, address, deadline - time.monotonic()) if self._tls else sock

    def close(self) -> None:
        """Closes the listener and removes its unix socket."""
        self._socket.close()
        if self._path:
            Path(self._path).unlink(missing_ok=True)


class HostAndNetworkListener:
    """Listens on a unix socket, for ranks of this host, and over TCP, for others.

    Its address is both, the unix socket's first, with a blank between. `silence`: seconds after which a connection over
    TCP ends whose other host acknowledges nothing.
    """

    def __init__(self, host: SocketListener, network: SocketListener, silence: float) -> None:
        self._host, self._network = host, network
        self._silence = silence
        self.address = f"{host.address} {network.address}"
        # Is readable when either is.
        self._either = select.epoll()
        for listener in (host, network):
            self._either.register(listener.fileno(), select.EPOLLIN)

    def fileno(self) -> int:
        """That of both."""
        return self._either.fileno()

    def accept(self) -> socket.socket:
        """The next connection of either."""
        try:
            return self._host.accept()
        except BlockingIOError:
            return self._watched(self._network.accept())

    def dial(self, address: str, timeout: float) -> socket.socket:
        """Connects to one address, of either kind."""
        return self._watched(self._network.dial(address, timeout))

    def close(self) -> None:
        """Closes both."""
        self._either.close()
        self._host.close()
        self._network.close()

    def _watched(self, sock: socket.socket) -> socket.socket:
        if sock.family != socket.AF_UNIX:
            # A host that is gone closes no connection.
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, round(self._silence * 1000))
        return sock
