"""A stream to one rank of this host, without gRPC, for callers that block."""

from __future__ import annotations

import contextlib
import io
import select
import socket
import threading
from collections import deque
from typing import TYPE_CHECKING, Any

from rankbridge._transport.framing import StreamLost, StreamOver
from rankbridge._transport.local import LENGTH, framed, length_of
from rankbridge._transport.streams import Awaiting, RankStream
from rankbridge._transport.threads.uninterrupted import begin_thread

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_BUFFER_BYTES = 64 * 1024
_NOT_WAITING = (socket.MSG_DONTWAIT,)


class LocalStream(RankStream):
    """A ``RankStream`` that is a connection of its own. Thread-safe.

    Who sends writes, as far as nobody has to wait for the rank; a thread reads. An interruption may come between any
    two steps of writing: each leaves a state from which whoever comes next goes on.
    """

    def __init__(self, sock: socket.socket) -> None:
        """Takes a connection that ``dial`` has made."""
        super().__init__()
        self._sock = sock
        self._lock = threading.Lock()
        self._outgoing: deque[_Outgoing] = deque()
        # Whether anything was sent, from which on a thread reads.
        self._begun = False
        self._over = False
        # Whether a thread writes, and all else waits for its turn.
        self._writing = False

    @property
    def under_way(self) -> int:
        """How many requests are not answered yet."""
        return len(self._answers) + len(self._outgoing)

    @property
    def over(self) -> bool:
        """Whether the connection has ended."""
        return self._over

    def close(self) -> None:
        """As ``RankStream.close``."""
        with self._lock:
            self._closed = True
            if self._begun:
                # What has no bytes is the end of requests.
                self._write_soon(_Outgoing(b""))
            else:
                self._shut()

    def hang_up(self) -> None:
        """Ends the connection: what was sent fails, and is withdrawn where it was not admitted."""
        with self._lock:
            self._closed = True
            self._shut()

    def _put(self, data: bytes, number: int = 0, awaiting: Awaiting | None = None) -> bool:
        outgoing = _Outgoing(framed(data), number, awaiting)
        with self._lock:
            if awaiting is not None:
                if self._closed:
                    return False
                if not self._begun:
                    self._begun = True
                    begin_thread(self._read)
            self._write_soon(outgoing)
        return True

    def _write_soon(self, outgoing: _Outgoing) -> None:
        """Writes, or has a thread write what cannot be written yet; with the lock held."""
        if self._over:
            return
        try:
            self._outgoing.append(outgoing)
            if self._writing or self._write():
                return
        except BaseException:
            # It was interrupted.
            begin_thread(self._write_all)
            raise
        begin_thread(self._write_all)

    def _write(self) -> bool:
        """Writes what can be written without waiting; False: not all could. With the lock held."""
        while self._outgoing:
            it = self._outgoing[0]
            # Its answer is waited for from before its first byte on.
            if it.awaiting is not None and not it.written:
                self._answers[it.number] = it.awaiting
            try:
                while rest := it.rest:
                    # One step, as signals see it: what was written is known.
                    it.written.extend(map(self._sock.send, (rest,), _NOT_WAITING))
                if not it.data:
                    self._sock.shutdown(socket.SHUT_WR)
            except BlockingIOError:
                return False
            except OSError:
                # The connection has ended, as who reads it sees, too.
                return True
            self._outgoing.popleft()
        return True

    def _write_all(self) -> None:
        poll = select.poll()
        with self._lock:
            if self._writing or self._over:
                return
            self._writing = True
            poll.register(self._sock, select.POLLOUT)
        while not self._has_written():
            poll.poll()

    def _has_written(self) -> bool:
        with self._lock:
            if not self._over and not self._write():
                return False
            self._writing = False
            if self._over:
                self._sock.close()
            return True

    def _read(self) -> None:
        error: BaseException = StreamOver()
        with self._lock:
            # The first is written: a rank's refusal, which comes unasked, is the answer to it.
            pass
        try:
            self._read_answers()
        except Exception as broken:
            error = broken
        with self._lock:
            self._closed = self._over = True
            # One that is being written is in both.
            self._answers.update((it.number, it.awaiting) for it in self._outgoing if it.awaiting is not None)
            self._outgoing.clear()
            self._shut()
            if not self._writing:
                self._sock.close()
        self._fail_all(error)

    def _read_answers(self) -> None:
        """Until the rank has ended the stream."""
        incoming = io.BufferedReader(_Polled(self._sock), _BUFFER_BYTES)
        while length := length_of(_whole(incoming, LENGTH)):
            self._answered(_whole(incoming, length))

    def _shut(self) -> None:
        """Ends the connection for all who use it; with the lock held."""
        with contextlib.suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)
        if not self._begun:
            self._over = True
            self._sock.close()


class _Outgoing:
    """A message, and for a request its number and who waits for its answer. `written`: how many bytes, step by step."""

    __slots__ = ("awaiting", "data", "number", "written")

    def __init__(self, data: bytes, number: int = 0, awaiting: Awaiting | None = None) -> None:
        self.data = memoryview(data)
        self.number = number
        self.awaiting = awaiting
        self.written: deque[int] = deque()

    @property
    def rest(self) -> memoryview:
        return self.data[sum(self.written) :]


class _Polled(io.RawIOBase):
    """Reads a socket for which it waits by polling.

    Who sleeps in ``recv`` on a unix socket is woken whenever the other side reads; who polls is not.
    """

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._poll = select.poll()
        self._poll.register(sock, select.POLLIN)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        self._poll.poll()
        return self._sock.recv_into(buffer)


def _whole(incoming: io.BufferedReader[Any], length: int) -> bytes:
    try:
        data = incoming.read(length)
    except OSError as error:
        raise StreamLost(str(error)) from None
    if len(data) < length:
        raise StreamLost("the connection has ended")
    return data
