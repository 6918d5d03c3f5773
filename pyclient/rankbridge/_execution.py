"""A stream to one rank, over grpcio's blocking front: what is sent is answered in the order in which it was."""

from __future__ import annotations

import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from rankbridge._aside import begin_thread
from rankbridge._bell import Bell
from rankbridge._execute import ExecutionOver, unasked, withdrawing

__all__ = ["Answer", "Execution"]


class Answer:
    """What will be answered to one call or part: the bytes of an ``ExecuteResponse``."""

    __slots__ = ("_bell", "_bytes", "_error", "_here", "_lock", "_sent", "_told")

    def __init__(self) -> None:
        """Nothing has come; the call is sent now."""
        self._sent = time.monotonic()
        self._bell = Bell()
        self._lock = threading.Lock()
        self._told: Callable[[], None] | None = None
        self._here = False
        self._bytes = b""
        self._error: BaseException | None = None

    def then(self, told: Callable[[], None]) -> None:
        """Has `told` called, once, when it has come or never will, before those who wait go on; at once if it has."""
        with self._lock:
            if not self._here:
                self._told = told
                return
        told()

    def done(self) -> bool:
        """Says whether it has come, or never will."""
        return self._bell.rung

    def wait(self, timeout: float) -> bytes:
        """Waits for it, until so many seconds after the call was sent. Any number of threads may.

        Raises:
            TimeoutError: It has not come.
            grpc.RpcError: The stream broke.
            ExecutionOver: The stream has ended, and the call was not begun.
            RankBridgeError: The rank has refused the stream.
        """
        if not self._bell.wait(self._sent + timeout - time.monotonic()):
            raise TimeoutError
        return self.response()

    def response(self) -> bytes:
        """What has come. Raises as `wait` why nothing has."""
        if self._error is not None:
            raise self._error
        return self._bytes

    def _come(self, response: bytes, error: BaseException | None = None) -> None:
        self._bytes, self._error = response, error
        with self._lock:
            self._here = True
        if self._told is not None:
            self._told()
        self._bell.ring()


class Execution:
    """One stream. Thread-safe, also where a signal interrupts the thread that sends.

    Only threads of its own enter grpcio: an interruption in there, between two steps of taking a lock, leaves the whole
    channel locked for good.
    """

    def __init__(self, opened: Callable[..., Any]) -> None:
        """Opens it with the first that is sent. It ends, for good, when it is closed or breaks.

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
        self._opened = opened
        # It begins with the first call: a stream that is new takes one, whatever becomes of it.
        self._begun = False

    @property
    def closed(self) -> bool:
        """Whether it takes no more calls."""
        return self._closed

    def send_alone(self, message: bytes) -> Answer | None:
        """Sends an ``ExecuteRequest`` as `send` does, but only if nothing is under way."""
        return self.send(message, alone=True)

    def send(self, message: bytes, *, alone: bool = False) -> Answer | None:
        """Sends an ``ExecuteRequest`` that is answered.

        Args:
            message: The request.
            alone: Only if nothing else is under way.

        Returns:
            Its answer to come. None: it was not sent; the stream is closed or over, or others are under way.
        """
        answer = Answer()
        with self._lock:
            if self._closed or (alone and self._last is not None and not self._last.done()):
                return None
            if not self._begun:
                self._begun = True
                begin_thread(self._read)
            self._requests.put((message, answer))
            self._last = answer
            return answer

    def withdraw(self, operation_id: str) -> None:
        """Withdraws what was sent wherever it was not admitted; it is answered all the same."""
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
            responses = self._opened(self._sending())
            for response in responses:
                if not self._answers:
                    responses.cancel()
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
