"""Where ranks say that they are at a point, and wait until they may go on."""

from __future__ import annotations

import contextlib
import itertools
import json
import shutil
import socket
import struct
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rankbridge.harness.points import Point

VARIABLE = "RANKBRIDGE_POINTS"
"""In the environment of ranks: the path of the socket."""

_CREDENTIALS = struct.Struct("3i")
_ANSWER_S = 10.0


class Armed:
    """A point at which one rank waits when it comes there.

    Attributes:
        point: The point.
        reached: Set when the rank waits there, or is gone.
    """

    def __init__(self, point: Point, key: int, rank: _RankConnection) -> None:
        """Made by `PointServer.arm`."""
        self.point = point
        self.reached = threading.Event()
        self._ready = threading.Event()
        self._key = key
        self._rank = rank

    def go(self, change: Mapping[str, Any] | None = None) -> None:
        """Lets the rank go on, or never wait there. `change`: what it asks for instead."""
        self._rank.say({"go": self._key, "change": change or {}})

    def arm(self) -> None:
        """Tells the rank, and waits until it knows.

        Raises:
            LookupError: It does not answer.
        """
        point = self.point
        message = {"arm": self._key, "call": point.call, "group": point.group, "number": point.number}
        self._rank.armed[self._key] = self
        self._rank.say(message)
        if not self._ready.wait(_ANSWER_S) or self._rank.gone:
            raise LookupError(f"process {self._rank.pid} does not answer where it is to wait: {point.text}")

    def take(self, message: Mapping[str, Any]) -> None:
        """Takes what the rank says, or that it is gone."""
        self._ready.set()
        if "armed" not in message:
            self.reached.set()


class _RankConnection:
    """The connection of one rank's process, and a thread that reads what it says."""

    def __init__(self, connection: socket.socket) -> None:
        self.armed: dict[int, Armed] = {}
        self.gone = False
        self._connection = connection
        given = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        self.pid: int = _CREDENTIALS.unpack(given)[0]
        threading.Thread(target=self._read, daemon=True).start()

    def say(self, message: Mapping[str, Any]) -> None:
        with contextlib.suppress(OSError):
            self._connection.sendall(json.dumps(message).encode() + b"\n")

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)

    def _read(self) -> None:
        with self._connection, contextlib.suppress(OSError), self._connection.makefile("rb") as lines:
            for line in lines:
                message = json.loads(line)
                self.armed[message.get("at", message.get("armed"))].take(message)
        self.gone = True
        for armed in list(self.armed.values()):
            armed.take({})


class PointServer:
    """The harness's end: one for each gang that has points.

    Attributes:
        path: Path of the socket to which ranks connect.
    """

    def __init__(self) -> None:
        """Listens in a folder of its own, which others may not enter."""
        self._folder = tempfile.mkdtemp(prefix="rankbridge-points-")
        self.path = str(Path(self._folder) / "points")
        self._keys = itertools.count()
        self._changed = threading.Condition()
        self._ranks: dict[int, _RankConnection] = {}
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(self.path)
        self._listener.listen(256)
        threading.Thread(target=self._accept, daemon=True).start()

    def arm(self, pid: int, point: Point) -> Armed:
        """Prepares a point on the rank with this process.

        Raises:
            LookupError: It has none, or does not answer.
        """
        with self._changed:
            if not self._changed.wait_for(lambda: pid in self._ranks, _ANSWER_S):
                raise LookupError(f"process {pid} has no points: it has loaded no module")
            rank = self._ranks[pid]
        armed = Armed(point, next(self._keys), rank)
        armed.arm()
        return armed

    def close(self) -> None:
        """Lets every rank go on, and takes no more."""
        # Wakes the thread that accepts.
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        for rank in list(self._ranks.values()):
            rank.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _accept(self) -> None:
        with self._listener, contextlib.suppress(OSError):
            while True:
                rank = _RankConnection(self._listener.accept()[0])
                with self._changed:
                    self._ranks[rank.pid] = rank
                    self._changed.notify_all()
