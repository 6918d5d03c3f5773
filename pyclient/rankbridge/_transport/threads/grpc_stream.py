"""A stream to one rank, over grpcio's blocking front."""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from rankbridge._transport.framing import StreamOver, unasked, withdrawing
from rankbridge._transport.threads.stream import Answer
from rankbridge._transport.threads.uninterrupted import begin_thread

__all__ = ["GrpcStream"]


class GrpcStream:
    """An ``RankStream`` over grpcio.

    Only threads of its own enter grpcio: an interruption in there, between two steps of taking a lock, leaves the whole
    channel locked for good.
    """

    def __init__(self, opened: Callable[..., Any]) -> None:
        """Opens it with the first that is sent. It ends, for good, when it is closed or breaks.

        Args:
            opened: Given the requests, gives the responses, as grpcio's callable for ``GangService.Execute`` does.
        """
        # What is to be sent, and where its answer goes; None: there is no more. One step puts both there, so that
        # nothing comes between: only their order says which answer is whose.
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
        """As ``RankStream.send_alone``."""
        return self.send(message, alone=True)

    def send(self, message: bytes, *, alone: bool = False) -> Answer | None:
        """As ``RankStream.send``."""
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
        """As ``RankStream.withdraw``."""
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
        error: BaseException = StreamOver()
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
