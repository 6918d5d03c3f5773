"""What takes the place of a lock in one event loop."""

from __future__ import annotations

import contextlib


class AsyncLock(contextlib.nullcontext[None]):
    """No lock: code without ``await`` runs undisturbed in its event loop."""
