"""Which ranks can share memory."""

from __future__ import annotations

import os
import uuid
from pathlib import Path

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_NETWORK = Path("/proc/self/ns/net")


def host_id() -> str:
    """An id that two processes share exactly if they can share memory: one kernel, network namespace and user.

    Abstract sockets have the same reach, also across containers. The id is unique where that is unknown, or where there
    are no such sockets.
    """
    try:
        if not hasattr(os, "memfd_create"):
            return alone()
        return f"{_BOOT_ID.read_text().strip()}/{os.readlink(_NETWORK)}/{os.geteuid()}"
    except OSError:
        return alone()


def alone() -> str:
    """A unique id, for a process that shares memory with no other."""
    return uuid.uuid4().hex
