"""Addresses of TCP: "host:port", and "[host]:port" where the host is an IPv6 address."""

from __future__ import annotations

from typing import NamedTuple


class Address(NamedTuple):
    """A host, without brackets, and a port; None: none was given."""

    host: str
    port: int | None = None

    @classmethod
    def parse(cls, text: str) -> Address:
        """Reads "host", "host:port", "[v6]", "[v6]:port" or "v6". Raises ValueError for anything else."""
        if text.startswith("["):
            host, bracket, rest = text[1:].partition("]")
            if not bracket or (rest and not rest.startswith(":")):
                raise ValueError(f"{text!r} is no address")
            port = rest[1:] if rest else None
        elif text.count(":") > 1:
            host, port = text, None
        else:
            host, colon, rest = text.partition(":")
            port = rest if colon else None
        if not host or (port is not None and not (port.isascii() and port.isdigit() and int(port) < 1 << 16)):
            raise ValueError(f"{text!r} is no address")
        return cls(host, None if port is None else int(port))

    def __str__(self) -> str:
        """Gives it as it is parsed, and as gRPC takes it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port is None else f"{host}:{self.port}"
