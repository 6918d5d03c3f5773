"""Where ranks on other hosts reach this one: on the interface that torch takes for the job's data."""

from __future__ import annotations

import ipaddress
import os
import socket

from ...core.address import Address
from ..interfaces import address_of, address_towards, interfaces


def network_address(size: int, store_host: str) -> str:
    """This host's address, in brackets where it is IPv6. Empty: all ranks are on this host, or nobody reaches it.

    `size`: of the job. `store_host`: where its store is; empty: not known.
    """
    if os.environ.get("LOCAL_WORLD_SIZE") == str(size):
        return ""
    named = os.environ.get("GLOO_SOCKET_IFNAME") or os.environ.get("NCCL_SOCKET_IFNAME")
    found = _on_named(named) if named else ""
    try:
        found = found or address_towards(store_host or socket.gethostname(), None)
    except OSError:
        return ""
    return "" if ipaddress.ip_address(found.partition("%")[0]).is_loopback else str(Address(found))


def _on_named(named: str) -> str:
    """The address on the first of the interfaces that are named as Gloo and NCCL take them; empty: there is none.

    Gloo takes names with commas between, NCCL beginnings of names, or "=" and names. NCCL's "^" excludes some.
    """
    if named.startswith("^"):
        return ""
    exactly = named.startswith("=")
    for name in named.removeprefix("=").split(","):
        known = [it for it in interfaces() if it == name or (it.startswith(name) and not exactly)]
        for interface in sorted(known, key=lambda it: it != name):
            if found := address_of(interface):
                return found
    return ""
