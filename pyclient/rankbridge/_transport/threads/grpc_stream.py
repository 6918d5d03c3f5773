"""A stream to one rank, over grpcio's blocking front."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from typing import Any

from rankbridge._transport.framing import StreamOver
from rankbridge._transport.streams import Awaiting, RankStream
from rankbridge._transport.threads.uninterrupted import begin_thread


class GrpcStream(RankStream):
    """A ``RankStream`` over grpcio. Thread-safe.

    Only threads of its own enter grpcio: an interruption in there, between two steps of taking a lock, leaves the whole
    channel locked for good.
    """

    def __init__(self, opened: Callable[..., Any]) -> None:
        """Opens it with the first that is sent. It ends, for good, when it is closed or breaks.

        Args:
            opened: Given the requests, gives the responses, as grpcio's callable for ``GangService.Execute`` does.
        """
        super().__init__()
        # What is to be sent, its number, and who waits for its answer; None: there is no more. One step puts it there:
        # who is interrupted has sent all of it or nothing.
        self._requests: queue.SimpleQueue[tuple[bytes, int, Awaiting | None] | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._error: BaseException | None = None
        self._opened = opened
        # It begins with the first call: a stream that is new takes one, whatever becomes of it.
        self._begun = False

    @property
    def under_way(self) -> int:
        """How many requests are not answered yet."""
        return len(self._answers) + self._requests.qsize()

    def close(self) -> None:
        """Sends nothing more. What was sent is answered."""
        with self._lock:
            self._closed = True
            self._requests.put(None)

    def _put(self, data: bytes, number: int = 0, awaiting: Awaiting | None = None) -> bool:
        with self._lock:
            if awaiting is not None:
                if self._closed:
                    return False
                if not self._begun:
                    self._begun = True
                    begin_thread(self._read)
            self._requests.put((data, number, awaiting))
        return True

    def _sending(self) -> Iterator[bytes]:
        """In a thread of grpcio's."""
        while (item := self._requests.get()) is not None:
            data, number, awaiting = item
            if awaiting is not None:
                with self._lock:
                    error = self._error
                    if error is None:
                        self._answers[number] = awaiting
                if error is not None:
                    awaiting._fail(error)
            yield data

    def _read(self) -> None:
        error: BaseException = StreamOver()
        try:
            responses = self._opened(self._sending())
            try:
                for response in responses:
                    self._answered(response)
            except BaseException:
                responses.cancel()
                raise
        except Exception as broken:
            error = broken
        with self._lock:
            self._closed = True
            self._error = error
        self._fail_all(error)
        while not self._requests.empty():
            item = self._next_unsent()
            if item is not None and item[2] is not None:
                item[2]._fail(error)
        # Lets go of who sends.
        self._requests.put(None)

    def _next_unsent(self) -> tuple[bytes, int, Awaiting | None] | None:
        try:
            return self._requests.get_nowait()
        except queue.Empty:
            return None
