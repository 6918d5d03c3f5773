"""A stream of gang calls to one rank, over grpcio's blocking front: sent one after another, answered in that order."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from queue import SimpleQueue
from typing import Any

import grpc

from rankbridge.errors import ProtocolError
from rankbridge.v1 import gang_service_pb2 as gang_pb

__all__ = ["Answer", "Execution", "ExecutionOver"]


class ExecutionOver(Exception):
    """The stream has ended without an answer, as the rank wanted it: it stops."""


class Answer:
    """What one call will be answered: the bytes of a ``CallResponse``."""

    __slots__ = ("_bytes", "_error", "_pending")

    def __init__(self) -> None:
        """Nothing has come."""
        self._pending = threading.Lock()
        self._pending.acquire()
        self._bytes = b""
        self._error: BaseException | None = None

    def done(self) -> bool:
        """Says whether it has come, or never will."""
        return not self._pending.locked()

    def wait(self, timeout: float) -> bytes:
        """Waits for it, so many seconds. Any number of threads may.

        Raises:
            TimeoutError: It has not come.
            grpc.RpcError: The stream broke.
            ExecutionOver: The stream has ended.
        """
        if not self._pending.acquire(timeout=max(0.0, timeout)):
            raise TimeoutError
        self._pending.release()
        if self._error is not None:
            raise self._error
        return self._bytes

    def _come(self, response: bytes, error: BaseException | None = None) -> None:
        self._bytes, self._error = response, error
        self._pending.release()


class Execution:
    """One stream. Thread-safe."""

    def __init__(self, opened: Callable[[Iterator[bytes]], Any]) -> None:
        """Opens it.

        Args:
            opened: Given the requests, gives the responses, as grpcio's callable for ``GangService.Execute`` does.
        """
        self._requests: SimpleQueue[bytes | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._answers: deque[Answer] = deque()
        self._over = False
        self._responses = opened(iter(self._requests.get, None))
        threading.Thread(target=self._read, name="rankbridge-execution", daemon=True).start()

    def send(self, request: bytes) -> Answer | None:
        """Sends a call, a ``CallRequest``; gives its answer to come. None: the stream is over, and it was not sent."""
        message = gang_pb.ExecuteRequest()
        message.call.MergeFromString(request)
        sent = message.SerializeToString()
        with self._lock:
            if self._over:
                return None
            answer = Answer()
            self._answers.append(answer)
            self._requests.put(sent)
            return answer

    def withdraw(self, operation_id: str) -> None:
        """Withdraws a call wherever it was not admitted; it is answered all the same."""
        self._requests.put(gang_pb.ExecuteRequest(withdraw=operation_id).SerializeToString())

    def close(self) -> None:
        """Sends nothing more. What was sent is answered."""
        self._requests.put(None)

    def _read(self) -> None:
        error: BaseException = ExecutionOver()
        try:
            for response in self._responses:
                if not self._answers:
                    error = ProtocolError("a rank has answered what it was not asked")
                    self._responses.cancel()
                    break
                self._answers.popleft()._come(response)
        except grpc.RpcError as broken:
            error = broken
        with self._lock:
            self._over = True
        # Lets go of who sends.
        self._requests.put(None)
        while self._answers:
            self._answers.popleft()._come(b"", error)
