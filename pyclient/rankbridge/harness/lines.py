"""Lines of JSON in and out, in bounded memory: too much is refused, and whoever does not read is waited for."""

from __future__ import annotations

import json
import os
import select
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

LONGEST_LINE = 4 << 20
"""Bytes of a line at most."""

PATIENCE_S = 10.0
"""How long a reader may take nothing after the input has ended."""

_CHUNK = 1 << 16
_QUOTED = 100
_MOST_EVENTS = 1000


@dataclass
class Malformed(Exception):
    """A line that is no request. Nothing after it is read.

    Attributes:
        line: Its number, 1 the first.
        text: Its begin.
        reason: What is wrong with it.
    """

    line: int
    text: str
    reason: str


def objects_of(fd: int) -> Iterator[dict[str, Any]]:
    """Reads JSON objects from a file descriptor, one a line, until its end. Empty lines are passed over.

    Raises:
        Malformed: A line is no object, or too long.
    """
    for number, line in enumerate(_lines_of(fd), 1):
        if not line.strip():
            continue
        try:
            read = json.loads(line, parse_constant=_refuse)
        except RecursionError:
            raise Malformed(number, quoted(line), "nested too deep") from None
        except ValueError as error:
            reason = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
            raise Malformed(number, quoted(line), f"no JSON: {reason}") from None
        if not isinstance(read, dict):
            raise Malformed(number, quoted(line), "no JSON object")
        yield read


def _refuse(constant: str) -> None:
    raise ValueError(f'{constant} is written as a text: "{constant}"')


def _lines_of(fd: int) -> Iterator[bytes]:
    kept = bytearray()
    number = 1
    while chunk := os.read(fd, _CHUNK):
        start = 0
        while (end := chunk.find(b"\n", start)) >= 0:
            kept += chunk[start:end]
            _check_length(kept, number)
            yield bytes(kept)
            kept.clear()
            number += 1
            start = end + 1
        kept += chunk[start:]
        _check_length(kept, number)
    if kept:
        yield bytes(kept)


def _check_length(line: bytearray, number: int) -> None:
    if len(line) > LONGEST_LINE:
        start = bytes(line[: 2 * _QUOTED])
        raise Malformed(
            number, quoted(start), f"longer than {LONGEST_LINE:,} bytes; larger tensors go by files"
        )


def quoted(line: bytes) -> str:
    """Gives the begin of a line as text."""
    text = line[: 4 * _QUOTED].decode(errors="replace")
    return text if len(text) <= _QUOTED and len(line) <= 4 * _QUOTED else f"{text[:_QUOTED]}..."


class Output:
    """Writes JSON objects to a file descriptor, one a line, from any thread.

    Answers are waited for until they are taken: so their number is bounded by that of whoever waits. Events wait in a
    queue of 1,000 instead; what is too much for it is counted, and the number is written.
    """

    def __init__(self, fd: int) -> None:
        """Begins a thread that writes events."""
        self._fd = fd
        self._lock = threading.Lock()
        self._stuck_since = 0.0
        self._events: deque[Mapping[str, Any]] = deque()
        self._dropped = 0
        self._some = threading.Condition()
        self._over = False
        self.broken = threading.Event()
        self._thread = threading.Thread(target=self._write_events, daemon=True)
        self._thread.start()

    def write(self, written: Mapping[str, Any]) -> None:
        """Writes an object, and waits until it is taken. Without a reader it is dropped."""
        data = memoryview(json.dumps(written, allow_nan=False).encode() + b"\n")
        with self._lock:
            try:
                while data and not self.broken.is_set():
                    self._stuck_since = time.monotonic()
                    data = data[os.write(self._fd, data[:_CHUNK]) :]
            except OSError:
                self.broken.set()
            finally:
                self._stuck_since = 0.0

    def event(self, written: Mapping[str, Any]) -> None:
        """Writes an object when there is room for it, and waits for nothing."""
        with self._some:
            if len(self._events) < _MOST_EVENTS:
                self._events.append(written)
            else:
                self._dropped += 1
            self._some.notify()

    def close(self) -> None:
        """Writes the events that are left."""
        with self._some:
            self._over = True
            self._some.notify()
        self._thread.join(PATIENCE_S)

    def stuck_for(self) -> float:
        """Gives for how many seconds a reader has taken nothing of what is written."""
        since = self._stuck_since
        return time.monotonic() - since if since else 0.0

    def _write_events(self) -> None:
        while True:
            with self._some:
                self._some.wait_for(lambda: self._events or self._dropped or self._over)
                if not self._events and not self._dropped:
                    return
                if self._events:
                    written = self._events.popleft()
                else:
                    written, self._dropped = {"event": "dropped", "events": self._dropped}, 0
            self.write(written)


def when_hung_up(fd: int, output: Output) -> threading.Thread:
    """Begins a thread that ends this process when its input has ended and its output is stuck, or has no reader."""

    def watch() -> None:
        poll = select.poll()
        poll.register(fd, 0)
        ended = False
        while not output.broken.is_set():
            ended = ended or bool(poll.poll(200))
            if ended:
                output.broken.wait(0.2)
            if ended and output.stuck_for() > PATIENCE_S:
                break
        # The kernel closes the gang's input with this process, and the gang ends.
        os._exit(0)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    return thread
