"""The browsers that look: what each is sent, and when the source is asked at all."""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Iterator

from .model import Model, Row
from .source import Source

MOST = 16
"""Browsers at a time."""
INTERVAL_S = 0.25
HEARTBEAT_S = 5.0
"""Sends a comment after so long without a message: so a dead connection is noticed."""
MOST_WAITING = 40
MOST_WAITING_BYTES = 16 * 1024 * 1024
"""What may wait for a browser. One that is slower is cut off; it begins anew with all that there is."""


class TooMany(Exception):
    """The page serves as many browsers as it may already."""


class Browser:
    """What waits to be sent to one browser. One thread reads; another writes."""

    def __init__(self) -> None:
        self.is_new = True
        self._changed = threading.Condition()
        self._waiting: deque[bytes] = deque()
        self._bytes = 0
        self._open = True

    def send(self, message: bytes) -> None:
        """Adds a message, or cuts the browser off if too much waits for it already."""
        with self._changed:
            self._waiting.append(message)
            self._bytes += len(message)
            if len(self._waiting) > MOST_WAITING or (
                self._bytes > MOST_WAITING_BYTES and len(self._waiting) > 1
            ):
                self._waiting.clear()
                self._open = False
            self._changed.notify_all()

    def close(self) -> None:
        """Ends the stream after the messages that wait."""
        with self._changed:
            self._open = False
            self._changed.notify_all()

    def messages(self) -> Iterator[bytes]:
        """Gives messages to send as they come, and comments between; ends when the browser is closed or cut off."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or not self._open, HEARTBEAT_S)
                if not self._waiting and not self._open:
                    return
                message = self._waiting.popleft() if self._waiting else b": still here\n\n"
                self._bytes = sum(map(len, self._waiting))
            yield message


class Browsers:
    """All browsers. The source looks while there is one, and not otherwise."""

    def __init__(self, model: Model, source: Source) -> None:
        self._model = model
        self._source = source
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._all: list[Browser] = []
        self._closed = False
        self._thread = threading.Thread(target=self._broadcast, name="page-browsers", daemon=True)
        self._thread.start()

    def __len__(self) -> int:
        """How many browsers look now."""
        return len(self._all)

    def add(self) -> Browser:
        """Adds a browser. Its first message has all that there is. Raises TooMany."""
        with self._changed:
            if len(self._all) >= MOST:
                raise TooMany
            self._all.append(browser := Browser())
            self._changed.notify_all()
        return browser

    def remove(self, browser: Browser) -> None:
        """Forgets a browser that is gone."""
        browser.close()
        with self._changed:
            if browser in self._all:
                self._all.remove(browser)
            self._changed.notify_all()

    def close(self) -> None:
        """Ends every browser's stream."""
        with self._changed:
            self._closed = True
            for it in self._all:
                it.close()
            self._changed.notify_all()
        self._thread.join()

    def _broadcast(self) -> None:
        looking = False
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._closed, INTERVAL_S if looking else 0)
                if not looking:
                    self._changed.wait_for(lambda: self._all or self._closed)
                browsers, closed = list(self._all), self._closed
            if closed or not browsers:
                if looking:
                    self._source.stop()
                looking = False
                if closed:
                    return
                continue
            if not looking:
                self._source.start()
                looking = True
            self._send(browsers)

    def _send(self, browsers: list[Browser]) -> None:
        changes = self._model.changes()
        known, new = [it for it in browsers if not it.is_new], [it for it in browsers if it.is_new]
        if changes is not None and known:
            message = _packed(changes)
            for it in known:
                it.send(message)
        if new:
            message = _packed(self._model.whole())
            for it in new:
                it.is_new = False
                it.send(message)


def _packed(message: Row) -> bytes:
    """An event of `text/event-stream`. JSON has no line ends of its own."""
    return f"data: {json.dumps(message, separators=(',', ':'))}\n\n".encode()
