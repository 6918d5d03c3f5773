"""The other end of streams without gRPC: what a rank would be, by a test's word."""

from __future__ import annotations

import contextlib
import io
import socket
from pathlib import Path

from tests.unit.client.answers import response
from tests.unit.client.sidecars import WAIT

from rankbridge.v1 import gang_service_pb2 as pb

END = bytes(4)


class LocalRank:
    """Listens where a rank does. `target`: gRPC's, at which nobody is."""

    def __init__(self, directory: Path) -> None:
        self.target = f"unix:{directory / 'rank'}"
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.settimeout(WAIT)
        self._listener.bind(str(directory / "rank.stream"))
        self._listener.listen(1)
        self._opened: list[Connection] = []

    def accept(self) -> Connection:
        """The next that has called."""
        sock, _ = self._listener.accept()
        sock.settimeout(WAIT)
        self._opened.append(Connection(sock))
        return self._opened[-1]

    def close(self) -> None:
        self._listener.close()
        for it in self._opened:
            it.close()


class Connection:
    """One stream."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._incoming = io.BufferedReader(socket.SocketIO(sock, "r"))

    def take(self) -> pb.ExecuteRequest | None:
        """The next request; None: there are no more."""
        head = self._incoming.read(4)
        if not head:
            return None
        length = int.from_bytes(head, "big")
        body = self._incoming.read(length)
        assert len(body) == length, "it broke off"
        return pb.ExecuteRequest.FromString(body)

    def taken(self) -> pb.ExecuteRequest:
        """The next request, which there is."""
        request = self.take()
        assert request is not None
        return request

    def taken_id(self) -> str:
        """Operation id of the next request."""
        request = self.taken()
        return request.withdraw or request.call.call.operation_id

    def answer(self, number: int, text: str) -> None:
        """Answers the request of that number; a text can be read there."""
        self.say_message(response(number, text))

    def say_message(self, body: bytes) -> None:
        self.say(len(body).to_bytes(4, "big") + body)

    def say(self, data: bytes) -> None:
        self._sock.sendall(data)

    def close(self) -> None:
        self._incoming.close()
        with contextlib.suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)
        self._sock.close()
