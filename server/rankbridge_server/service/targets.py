"""What a gRPC target says about how it is reached."""

from __future__ import annotations


def is_unix(target: str) -> bool:
    """Whether it is a unix socket, which is guarded by its permissions and never speaks TLS."""
    return target.startswith(("unix:", "unix-abstract:"))
