"""What several ranks say on their streams, read by a thread for each."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Sequence
from typing import Any

from rankbridge._plan.calls import Call
from rankbridge._plan.events import AHEAD, Said
from rankbridge._transport.threads.channels import Channels
from rankbridge.errors import RankBridgeError

_JOIN_TIMEOUT_S = 5.0


class Readings:
    """The responses of one stream of each rank, in one queue that holds up to ``AHEAD`` of them."""

    def __init__(self, channels: Channels, calls: Sequence[Call[Any]]) -> None:
        """Sends every call, and begins to read."""
        self._channels = channels
        self._changed = threading.Condition()
        self._said: deque[Said] = deque()
        self._closed = False
        self._streams: dict[int, Any] = {}
        self._threads: list[threading.Thread] = []
        try:
            for call in calls:
                stream = self._streams[call.rank] = channels.stream(call)
                reader = threading.Thread(
                    target=self._read, args=(call, stream), name="rankbridge-events", daemon=True
                )
                reader.start()
                self._threads.append(reader)
        except BaseException:
            self.close()
            raise

    def next(self, until: float | None = None) -> Said | None:
        """Waits for what a rank says next. None: it is closed.

        Args:
            until: Longest time to wait, by ``time.monotonic``.

        Raises:
            TimeoutError: No rank has said anything.
        """
        timeout = None if until is None else until - time.monotonic()
        with self._changed:
            if not self._changed.wait_for(lambda: self._said or self._closed, timeout):
                raise TimeoutError
            if self._closed:
                return None
            self._changed.notify_all()
            return self._said.popleft()

    def cancel(self, rank: int) -> None:
        """Ends the stream of one rank."""
        self._streams[rank].cancel()

    def close(self) -> None:
        """Ends every stream. Whoever waits gets None, now and later."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        for stream in self._streams.values():
            stream.cancel()
        for reader in self._threads:
            reader.join(_JOIN_TIMEOUT_S)

    def _read(self, call: Call[Any], stream: Any) -> None:
        ended: RankBridgeError | None = None
        try:
            for what in self._channels.read(call, stream):
                self._say(call.rank, what)
        except RankBridgeError as error:
            ended = error
        self._say(call.rank, ended)

    def _say(self, rank: int, what: Any) -> None:
        with self._changed:
            self._changed.wait_for(lambda: len(self._said) < AHEAD or self._closed)
            self._said.append(Said(rank, what))
            self._changed.notify_all()
