"""Network interfaces and the addresses that they have."""

from __future__ import annotations

import fcntl
import socket
import struct
from contextlib import suppress
from pathlib import Path

_SIOCGIFADDR = 0x8915
_OF_A_LINK = b"\xfe\x80"
_ANY_PORT = 9
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


def address_of(interface: str) -> str:
    """The address of an interface: IPv4 if it has one, else IPv6. Empty: it has none, or does not exist."""
    for family, known in ((socket.AF_INET, _ipv4), (socket.AF_INET6, _ipv6)):
        for packed, name in known().items():
            # One of a single link has no meaning to others without the name of their own interface.
            if name == interface and not packed.startswith(_OF_A_LINK):
                return socket.inet_ntop(family, packed)
    return ""


def address_towards(host: str, port: int | None) -> str:
    """This host's address on the way to another. Raises OSError: there is no way."""
    # Sends no packet: the system only chooses the interface.
    family, kind, *_, address = socket.getaddrinfo(host, port or _ANY_PORT, type=socket.SOCK_DGRAM)[0]
    with socket.socket(family, kind) as probe:
        probe.connect(address)
        return str(probe.getsockname()[0])


def interfaces() -> list[str]:
    """Names of this host's interfaces, in the system's order."""
    return [name for _, name in socket.if_nameindex()]


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
