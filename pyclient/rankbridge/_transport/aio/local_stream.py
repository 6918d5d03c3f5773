"""A stream to one rank of this host, without gRPC, for asyncio."""

from __future__ import annotations

import asyncio
import contextlib
import socket

from rankbridge._transport.framing import StreamLost, StreamOver
from rankbridge._transport.local import LENGTH, framed, length_of
from rankbridge._transport.streams import Awaiting, RankStream

_CHUNK_BYTES = 64 * 1024


class AsyncLocalStream(RankStream):
    """A ``RankStream`` that is a connection of its own, in one event loop."""

    def __init__(self, sock: socket.socket) -> None:
        """Takes a connection that ``dial`` has made."""
        super().__init__()
        self._sock = sock
        self._loop = asyncio.get_running_loop()
        self._received = bytearray()
        # What cannot be written yet.
        self._unsent = bytearray()
        self.over = False
        self._loop.add_reader(sock, self._read)

    def close(self) -> None:
        """As ``RankStream.close``."""
        self._closed = True
        if not self._unsent:
            self._end_requests()

    def hang_up(self) -> None:
        """As ``LocalStream.hang_up``."""
        self._end(StreamLost("it was closed"))

    def _put(self, data: bytes, number: int = 0, awaiting: Awaiting | None = None) -> bool:
        if self.over:
            return False
        if awaiting is not None:
            self._answers[number] = awaiting
        data = framed(data)
        if not self._unsent:
            data = data[self._written(data) :]
            if data:
                self._loop.add_writer(self._sock, self._write)
        self._unsent += data
        return True

    def _write(self) -> None:
        with memoryview(self._unsent) as unsent:
            written = self._written(unsent)
        del self._unsent[:written]
        if not self._unsent:
            self._loop.remove_writer(self._sock)
            if self._closed:
                self._end_requests()

    def _written(self, data: bytes | memoryview) -> int:
        try:
            return self._sock.send(data)
        except BlockingIOError:
            return 0
        except OSError:
            # The connection has ended; its reader finds that out.
            return len(data)

    def _end_requests(self) -> None:
        with contextlib.suppress(OSError):
            self._sock.shutdown(socket.SHUT_WR)

    def _read(self) -> None:
        try:
            received = self._sock.recv(_CHUNK_BYTES)
        except BlockingIOError:
            return
        except OSError as error:
            self._end(StreamLost(str(error)))
            return
        self._received += received
        try:
            ended = self._answer()
        except Exception as error:
            self._end(error)
            return
        if ended:
            self._end(StreamOver())
        elif not received:
            self._end(StreamLost("the connection has ended"))

    def _answer(self) -> bool:
        """Gives what has come to who waits for it. Tells whether the rank has ended the stream."""
        start = 0
        while len(self._received) - start >= LENGTH:
            begin = start + LENGTH
            end = begin + length_of(self._received[start:begin])
            if end > len(self._received):
                break
            if begin == end:
                return True
            self._answered(bytes(self._received[begin:end]))
            start = end
        del self._received[:start]
        return False

    def _end(self, error: Exception) -> None:
        if self.over:
            return
        self.over = True
        self._loop.remove_reader(self._sock)
        self._loop.remove_writer(self._sock)
        self._sock.close()
        self._fail_all(error)
