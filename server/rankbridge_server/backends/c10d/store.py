"""The store that the members of a group share: what torch.distributed gives to a backend."""

from __future__ import annotations

import socket
from datetime import timedelta

from torch._C import _distributed_c10d as c10d

from ...core.address import Address
from ..errors import forming_failed

_MARK = "c10d:"


class SharedStore:
    """Served by the member of rank 0 in the group, at an address of `hostname` alone.

    `address`: what other members need; without a port, of those that serve none.
    """

    def __init__(self, hostname: str, serves: bool, timeout: timedelta) -> None:
        self._timeout = timeout
        self._served: c10d.Store | None = None
        self.address = _MARK.encode()
        if serves:
            self._served, at = _serve(hostname, timeout)
            self.address += str(at).encode()

    def connected(self, first: bytes, prefix: str) -> c10d.Store:
        """The store of the member of rank 0, whose address this is. Raises BACKEND_FAILED."""
        if self._served is not None:
            return c10d.PrefixStore(prefix, self._served)
        try:
            host, port = Address.parse(first.decode().removeprefix(_MARK))
            if not first.decode().startswith(_MARK) or port is None:
                raise ValueError("not of a c10d backend")
        except ValueError as error:
            raise forming_failed(
                "The c10d backend", "no store", expected="an address", got=repr(first)
            ) from error
        store = c10d.TCPStore(host, port, None, False, self._timeout, wait_for_workers=False)
        return c10d.PrefixStore(prefix, store)


def _serve(hostname: str, timeout: timedelta) -> tuple[c10d.Store, Address]:
    family, kind, *_, where = socket.getaddrinfo(hostname, 0, type=socket.SOCK_STREAM)[0]
    # Torch itself would listen on every interface.
    listener = socket.socket(family, kind)
    try:
        listener.bind(where)
        listener.listen()
        port = listener.getsockname()[1]
        store = c10d.TCPStore(
            hostname,
            port,
            None,
            True,
            timeout,
            wait_for_workers=False,
            master_listen_fd=listener.fileno(),
        )
    except (OSError, RuntimeError) as error:
        listener.close()
        raise forming_failed("The c10d backend", f"no store on host {hostname!r}: {error}") from error
    # The store closes it.
    listener.detach()
    return store, Address(hostname, port)
