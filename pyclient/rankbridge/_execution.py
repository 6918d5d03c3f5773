"""A stream of gang calls to one rank, over grpcio's blocking front: sent one after another, answered in that order."""

from __future__ import annotations

import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from google.protobuf.message import DecodeError

from rankbridge._failures import error_from_wire
from rankbridge.errors import ProtocolError, RankBridgeError
from rankbridge.v1 import gang_service_pb2 as gang_pb

__all__ = ["Answer", "Execution", "ExecutionOver", "calling", "unasked", "withdrawing"]


class ExecutionOver(Exception):
    """The stream has ended as the rank wanted it, without an answer: the call was not begun."""


def calling(request: bytes) -> bytes:
    """Makes an ``ExecuteRequest`` of a ``CallRequest``."""
    message = gang_pb.ExecuteRequest()
    message.call.MergeFromString(request)
    return message.SerializeToString()


def withdrawing(operation_id: str) -> bytes:
    """Makes an ``ExecuteRequest`` that withdraws a call."""
    return gang_pb.ExecuteRequest(withdraw=operation_id).SerializeToString()


def unasked(response: bytes) -> RankBridgeError:
    """Makes the exception of an answer that comes before any call was sent: the rank has refused the stream."""
    try:
        message = gang_pb.ExecuteResponse.FromString(response)
    except DecodeError:
        message = gang_pb.ExecuteResponse()
    if message.HasField("error"):
        return error_from_wire(message.error)
    return ProtocolError("a rank has answered what it was not asked")


class Answer:
    """What one call will be answered: the bytes of an ``ExecuteResponse``, written as ``CallResponse`` is."""

    __slots__ = ("_bytes", "_done", "_error", "_pending", "_sent")

    def __init__(self) -> None:
        """Nothing has come; the call is sent now."""
        self._sent = time.monotonic()
        self._pending = threading.Lock()
        self._pending.acquire()
        self._done = False
        self._bytes = b""
        self._error: BaseException | None = None

    def done(self) -> bool:
        """Says whether it has come, or never will."""
        return self._done

    def wait(self, timeout: float) -> bytes:
        """Waits for it, until so many seconds after the call was sent. Any number of threads may.

        Raises:
            TimeoutError: It has not come.
            grpc.RpcError: The stream broke.
            ExecutionOver: The stream has ended, and the call was not begun.
            RankBridgeError: The rank has refused the stream.
        """
        if not self._done:
            left = self._sent + timeout - time.monotonic()
            if self._pending.acquire(timeout=max(0.0, left)):
                self._pending.release()
            if not self._done:
                raise TimeoutError
        if self._error is not None:
            raise self._error
        return self._bytes

    def _come(self, response: bytes, error: BaseException | None = None) -> None:
        self._bytes, self._error = response, error
        self._done = True
        self._pending.release()


class Execution:
    """One stream. Thread-safe, also where a signal interrupts the thread that sends."""

    def __init__(self, opened: Callable[..., Any]) -> None:
        """Opens it. It ends, for good, when it is closed or breaks.

        Args:
            opened: Given the requests, gives the responses, as grpcio's callable for ``GangService.Execute`` does.
        """
        # What is to be sent, and where its answer goes; None: there is no more. One step puts both there, so that
        # nothing comes between: answers are told apart by their order alone.
        self._requests: queue.SimpleQueue[tuple[bytes, Answer | None] | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._answers: deque[Answer] = deque()
        self._last: Answer | None = None
        self._closed = False
        self._error: BaseException | None = None
        self._responses = opened(self._sending())
        # It begins with the first call: a stream that is new takes one, whatever becomes of it.
        self._reader: threading.Thread | None = None

    @property
    def closed(self) -> bool:
        """Whether it takes no more calls."""
        return self._closed

    def send(self, request: bytes, *, alone: bool = False) -> Answer | None:
        """Sends a call, a ``CallRequest``.

        Args:
            request: The call.
            alone: Only if no other is under way.

        Returns:
            Its answer to come. None: it was not sent; the stream is closed or over, or others are under way.
        """
        message, answer = calling(request), Answer()
        with self._lock:
            if self._closed or (alone and self._last is not None and not self._last.done()):
                return None
            if self._reader is None:
                self._reader = threading.Thread(target=self._read, name="rankbridge-execution", daemon=True)
                self._reader.start()
            self._requests.put((message, answer))
            self._last = answer
            return answer

    def withdraw(self, operation_id: str) -> None:
        """Withdraws a call wherever it was not admitted; it is answered all the same."""
        self._requests.put((withdrawing(operation_id), None))

    def close(self) -> None:
        """Sends nothing more. What was sent is answered."""
        with self._lock:
            self._closed = True
            self._requests.put(None)

    def _sending(self) -> Iterator[bytes]:
        """In a thread of grpcio's."""
        while (item := self._requests.get()) is not None:
            message, answer = item
            if answer is not None:
                with self._lock:
                    error = self._error
                    if error is None:
                        self._answers.append(answer)
                if error is not None:
                    answer._come(b"", error)
            yield message

    def _read(self) -> None:
        error: BaseException = ExecutionOver()
        try:
            for response in self._responses:
                if not self._answers:
                    self._responses.cancel()
                    raise unasked(response)
                self._answers.popleft()._come(response)
        except Exception as broken:
            error = broken
        with self._lock:
            self._closed = True
            self._error = error
        while self._answers:
            self._answers.popleft()._come(b"", error)
        while not self._requests.empty():
            item = self._next_unsent()
            if item is not None and item[1] is not None:
                item[1]._come(b"", error)
        # Lets go of who sends.
        self._requests.put(None)

    def _next_unsent(self) -> tuple[bytes, Answer | None] | None:
        try:
            return self._requests.get_nowait()
        except queue.Empty:
            return None
