"""Guests: callers who do not own the gang. Each has names of its own, and at most a part of the rank's limits."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from hashlib import blake2b
from urllib.parse import quote

from .errors import exhausted

SHARE = 4
"""A guest may use one part in so many of what a rank has: pending operations, sessions, refs, bytes."""
LEASE_S = 6.0
"""A guest's sessions are closed when it has had no call under way for so long, or for their lease if it is shorter."""
MAX_CALLS = 256
"""Calls of one guest that may be under way on a rank."""
MAX_STREAMS = 16
"""Of these, calls of one method that streams."""
MAX_GROUPS = 64
"""Groups of a generation that one guest has made."""
MAX_QUEUES = 64
"""Queues of a group that one guest has made."""
MAX_GRAPHS = 64
"""Graphs of one guest."""
_MAX_NAME = 48


def home(name: str) -> str:
    """What the ids of a guest's sessions, operations and queues begin with; as a whole, the id of its own session."""
    quoted = quote(name, safe="@:.")
    if len(quoted) > _MAX_NAME:
        quoted = blake2b(name.encode(), digest_size=16).hexdigest()
    return f"~{quoted}/"


def home_of(name: str) -> str:
    """The home in which an id is; empty: it is the owner's."""
    if not name.startswith("~"):
        return ""
    guest, slash, _ = name.partition("/")
    return guest + slash if slash else ""


def check_share(guest: str, what: str, held: int, more: int, most: int) -> None:
    """Raises RESOURCE_EXHAUSTED when a guest would have more than it may."""
    if held + more > most:
        raise exhausted(
            f"too many {what} of guest {guest[1:-1]!r} on this rank",
            most=str(most),
            got=f"{held} held and {more} more",
        )


class Guests:
    """The calls of guests that are under way on one rank. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._calls: Counter[str] = Counter()
        self._streams: Counter[tuple[str, str]] = Counter()
        self._ended: dict[str, float] = {}

    def begin(self, guest: str, stream: str = "") -> Callable[[], None]:
        """Counts a call of the guest with this home. `stream`: the method, if it streams. Returns what ends the call.

        Raises RESOURCE_EXHAUSTED.
        """
        with self._lock:
            check_share(guest, "calls", self._calls[guest], 1, MAX_CALLS)
            if stream:
                check_share(guest, "streams", self._streams[guest, stream], 1, MAX_STREAMS)
                self._streams[guest, stream] += 1
            self._calls[guest] += 1

        def end() -> None:
            with self._lock:
                self._calls[guest] -= 1
                self._ended[guest] = time.monotonic()
                if stream:
                    self._streams[guest, stream] -= 1

        return end

    def last_seen(self, guest: str) -> float:
        """When the guest last had a call under way, by the monotonic clock. 0.0: never."""
        with self._lock:
            return time.monotonic() if self._calls[guest] else self._ended.get(guest, 0.0)
