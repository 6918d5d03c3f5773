"""Points inside functions: a test harness lets a rank wait before a collective that a function calls.

Only where the harness has asked for it: RANKBRIDGE_POINTS names the socket on which it waits for the ranks.
"""

from __future__ import annotations

import itertools
import json
import os
import socket
import threading
from collections.abc import Mapping
from typing import Any

from .dispatch import hook
from .watch.next_call import NextCall

VARIABLE = "RANKBRIDGE_POINTS"


def begin() -> None:
    """Makes collectives of this process points, if the harness has asked for it.

    Raises OSError: there is nobody at the socket.
    """
    if path := os.environ.get(VARIABLE):
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(path)
        hook().call_before(Points(connection).before)


class _Armed:
    """A point at which the rank waits. `count`: calls of it so far."""

    def __init__(self, message: Mapping[str, Any]) -> None:
        self.call: str = message["call"]
        self.group: str = message["group"]
        self.number: int = message["number"]
        self.count = itertools.count(1)
        self.may_go = threading.Event()
        self.change: Mapping[str, Any] = {}

    def is_reached(self, call: NextCall) -> bool:
        """Counts a call; returns whether it is the one."""
        alike = self.call == call.kind and self.group in ("", call.group)
        return alike and next(self.count) == self.number


class Points:
    """The points of this process, as the harness at the other end of a socket says. Thread-safe."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._armed: dict[int, _Armed] = {}
        self._lock = threading.Lock()
        threading.Thread(target=self._read, name="points", daemon=True).start()

    def before(self, call: NextCall) -> None:
        """Lets the calling thread wait at each point that this call is."""
        with self._lock:
            reached = {key: it for key, it in self._armed.items() if it.is_reached(call)}
        for key, armed in reached.items():
            self._say({"at": key})
            armed.may_go.wait()
            call.change(armed.change)

    def _read(self) -> None:
        with self._connection.makefile("rb") as lines:
            for line in lines:
                self._take(json.loads(line))
        # The harness is gone: nobody else would let them go.
        with self._lock:
            for armed in self._armed.values():
                armed.may_go.set()
            self._armed.clear()

    def _take(self, message: Mapping[str, Any]) -> None:
        with self._lock:
            if "arm" in message:
                self._armed[message["arm"]] = _Armed(message)
            elif (armed := self._armed.pop(message["go"], None)) is not None:
                armed.change = message.get("change", {})
                armed.may_go.set()
        if "arm" in message:
            self._say({"armed": message["arm"]})

    def _say(self, message: Mapping[str, Any]) -> None:
        try:
            self._connection.sendall(json.dumps(message).encode() + b"\n")
        except OSError:
            # The reading thread sees that end, too.
            return
