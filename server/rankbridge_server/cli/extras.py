"""What a rank needs beyond what the client does."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

_OF_SERVER = {"grpc_health", "grpc_reflection", "torch"}


class NoServer(Exception):
    """The extra `server` is not installed; says what is missing and how to install it."""


@contextmanager
def server_extra() -> Iterator[None]:
    """Imports modules of the extra `server` within its block. Raises NoServer if one is not there."""
    try:
        yield
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in _OF_SERVER:
            raise
        raise NoServer(
            f"a rank needs {missing}, which is not installed: pip install 'rankbridge[server]'"
        ) from None
