"""Network interfaces by the addresses that they have."""

from __future__ import annotations

import fcntl
import socket
import struct
from contextlib import suppress
from pathlib import Path

_SIOCGIFADDR = 0x8915
_IFREQ = struct.Struct("256s")


def interface_of(hostname: str) -> str:
    """The interface with an address of this host; empty: none has it, or the name leads to none."""
    with suppress(OSError):
        for family, *_, address in socket.getaddrinfo(hostname, None, type=socket.SOCK_STREAM):
            known = _ipv4() if family == socket.AF_INET else _ipv6()
            packed = socket.inet_pton(family, str(address[0]).partition("%")[0])
            if found := known.get(packed):
                return found
    return ""


def _ipv4() -> dict[bytes, str]:
    found = {}
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        for _, name in socket.if_nameindex():
            with suppress(OSError):
                answer = fcntl.ioctl(probe.fileno(), _SIOCGIFADDR, _IFREQ.pack(name.encode()[:15]))
                found[answer[20:24]] = name
    return found


def _ipv6() -> dict[bytes, str]:
    # Each line: address, index, length of the prefix, scope, flags, name.
    try:
        lines = Path("/proc/net/if_inet6").read_text().splitlines()
    except OSError:
        return {}
    return {bytes.fromhex(words[0]): words[5] for words in map(str.split, lines)}
