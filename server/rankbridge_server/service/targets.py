"""The kinds of gRPC targets."""

from __future__ import annotations


def is_unix(target: str) -> bool:
    """Whether a target is a unix socket, which is protected by its permissions and never uses TLS."""
    return target.startswith(("unix:", "unix-abstract:"))


def socket_path(target: str) -> str:
    """The path of a unix socket: "unix:relative", "unix:/absolute", "unix:///absolute". Empty: it has none."""
    return target.removeprefix("unix:").removeprefix("//") if target.startswith("unix:") else ""
