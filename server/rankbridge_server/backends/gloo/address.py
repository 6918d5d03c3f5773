"""Gloo's addresses, as torch 2.13 writes them into the store. Torch trusts what it reads there."""

from __future__ import annotations

import socket
import struct

from ...core.errors import BridgeError, ErrorCode, Phase

# A host name and an address, each behind its length; then the number of a pair for each member.
_LENGTH = struct.Struct("<Q")
_SOCKADDR = 128
_SEQUENCE = struct.Struct("<q")
_ADDRESS = _SOCKADDR + _SEQUENCE.size
_MAX_HOST = 255
# What of a sockaddr means something; the rest is whatever was in memory.
_MEANT: dict[int, int] = {socket.AF_INET: 8, socket.AF_INET6: 28}


def cleaned(address: bytes, size: int) -> bytes:
    """Gives an address of a member of a group of `size` with zeros where it means nothing.

    Raises FORMING_FAILED for what is no address: Gloo would read beyond its end, and crash.
    """
    where = _sockaddr(address, size)
    if where is None:
        raise BridgeError.of(
            ErrorCode.FORMING_FAILED,
            "a member's address is not one of Gloo: are all ranks on the backend gloo, with one torch?",
            phase=Phase.FORMING,
            expected=f"an address for a group of {size}",
            got=repr(address[:80]),
        )
    start, meant = where
    end = start + _SOCKADDR
    return address[: start + meant] + bytes(_SOCKADDR - meant) + address[end:]


def port_of(address: bytes, size: int) -> int | None:
    """The port of an address. None: another torch has written it, in a way that is not known here."""
    where = _sockaddr(address, size)
    return None if where is None else int.from_bytes(address[where[0] + 2 : where[0] + 4], "big")


def endpoint_of(address: bytes, size: int) -> tuple[str, int] | None:
    """The numeric host and the port of an address; None as of `port_of`."""
    where = _sockaddr(address, size)
    if where is None:
        return None
    start = where[0]
    port = int.from_bytes(address[start + 2 : start + 4], "big")
    if int.from_bytes(address[start : start + 2], "little") == socket.AF_INET:
        return socket.inet_ntop(socket.AF_INET, address[start + 4 : start + 8]), port
    return socket.inet_ntop(socket.AF_INET6, address[start + 8 : start + 24]), port


def _sockaddr(address: bytes, size: int) -> tuple[int, int] | None:
    """Where the sockaddr begins, and how many of its bytes mean something. None: this is no address."""
    if len(address) < _LENGTH.size:
        return None
    (host,) = _LENGTH.unpack_from(address)
    start = 2 * _LENGTH.size + host
    if host > _MAX_HOST or len(address) != start + _ADDRESS + size * _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack_from(address, start - _LENGTH.size)
    family = int.from_bytes(address[start : start + 2], "little")
    (sequence,) = _SEQUENCE.unpack_from(address, start + _SOCKADDR)
    pairs = struct.unpack_from(f"<{size}Q", address, start + _ADDRESS)
    port = address[start + 2 : start + 4]
    if length != _ADDRESS or sequence != -1 or pairs != tuple(range(size)) or port == b"\0\0":
        return None
    return (start, _MEANT[family]) if family in _MEANT else None
