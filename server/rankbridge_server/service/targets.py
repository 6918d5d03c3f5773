"""What a gRPC target says about how it is reached."""

from __future__ import annotations


def is_unix(target: str) -> bool:
    """Whether it is a unix socket, which is guarded by its permissions and never speaks TLS."""
    return target.startswith(("unix:", "unix-abstract:"))


def socket_path(target: str) -> str:
    """The path of a unix socket: of "unix:relative", "unix:/absolute", "unix:///absolute". "": it has none."""
    return target.removeprefix("unix:").removeprefix("//") if target.startswith("unix:") else ""
