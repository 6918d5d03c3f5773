"""What takes the place of a lock in one event loop."""

from __future__ import annotations

import contextlib

__all__ = ["AsyncLock"]


class AsyncLock(contextlib.nullcontext[None]):
    """No lock: code without ``await`` runs undisturbed in its event loop."""
