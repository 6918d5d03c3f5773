"""A stream of gang calls and parts over a unix socket, without gRPC.

A message is its length, 4 bytes in network order, and an `ExecuteRequest` or an `ExecuteResponse`.
"""

from __future__ import annotations

import io
import select
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from google.protobuf.message import DecodeError

from rankbridge.v1 import gang_service_pb2 as pb

from .executing import Streams
from .outbox import Outbox
from .stream import Answer, Stream

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

MAX_MESSAGE_BYTES = 256 * 1024 * 1024
_LENGTH = 4
END = bytes(_LENGTH)
"""The rank's last message, which is empty: a request without an answer by then was not begun."""
_BUFFER_BYTES = 64 * 1024
# How often a stream checks whether its caller has gone, while it cannot take the next request.
_LOOK_S = 0.1


class LocalStream:
    """One connection. A thread reads it (`serve`); the thread that finishes a call sends the answer.

    `over`: set when the last answer was sent.
    """

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._outbox = Outbox(sock)
        self._stream: Stream | None = None
        # Readable once both directions have ended, shut by the caller or by this side.
        self._hang_up = select.poll()
        self._hang_up.register(sock, 0)
        self.over = threading.Event()

    def serve(self, streams: Streams) -> None:
        """Serves requests until the caller has gone, the stream is cut, or all is answered after the last request.

        A caller ends its requests by shutting down its side of the connection. If it closes the connection, it is gone.
        """
        stream = streams.begin(self._ready)
        if isinstance(stream, pb.ExecuteResponse):
            self._send(stream, lambda: None)
            self._ready(None)
        else:
            self._stream = stream
            with suppress(OSError, _Nonsense):
                stream.read(self._requests(stream))
                self._hang_up.poll()
            stream.leave()
            streams.discard(stream)
        self._outbox.close()

    def cut(self) -> None:
        """Ends the connection."""
        self._outbox.shut()

    def _requests(self, stream: Stream) -> Iterator[pb.ExecuteRequest]:
        incoming = io.BufferedReader(_Polled(self._sock), _BUFFER_BYTES)
        while self._may_read(stream):
            head = incoming.read(_LENGTH)
            length = int.from_bytes(head, "big")
            if length > MAX_MESSAGE_BYTES:
                raise _Nonsense
            body = incoming.read(length)
            if len(head) < _LENGTH or len(body) < length:
                return
            try:
                request = pb.ExecuteRequest.FromString(body)
            except DecodeError as error:
                raise _Nonsense from error
            yield request

    def _may_read(self, stream: Stream) -> bool:
        """Waits until the stream can take a request. Returns False when the caller has gone meanwhile."""
        while not stream.wait_for_capacity(_LOOK_S):
            if self._hang_up.poll(0):
                return False
        return True

    def _ready(self, answer: Answer | None) -> None:
        """Sends an answer. Called for one answer after the other."""
        if answer is None:
            self._outbox.put(END, self._end)
        elif self._stream is not None:
            self._send(answer(), self._stream.answered)

    def _send(self, response: pb.ExecuteResponse, written: Callable[[], None]) -> None:
        body = response.SerializeToString()
        self._outbox.put(len(body).to_bytes(_LENGTH, "big") + body, written)

    def _end(self) -> None:
        self.over.set()
        self.cut()


class _Nonsense(Exception):
    """The caller sent something that is no request."""


class _Polled(io.RawIOBase):
    """Reads a socket after polling it.

    A thread in `recv` on a unix socket wakes whenever the other side reads; a thread that polls does not.
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
