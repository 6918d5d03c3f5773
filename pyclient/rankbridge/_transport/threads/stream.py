"""A stream to one rank, for callers that block: what is sent is answered in the order in which it was."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Protocol

from rankbridge._transport.threads.bell import Bell

__all__ = ["Answer", "RankStream"]


class Answer:
    """What will be answered to one call or part: the bytes of an ``ExecuteResponse``."""

    __slots__ = ("_bell", "_bytes", "_callback", "_error", "_here", "_lock", "_sent")

    def __init__(self) -> None:
        """Nothing has come; the call is sent now."""
        self._sent = time.monotonic()
        self._bell = Bell()
        self._lock = threading.Lock()
        self._callback: Callable[[], None] | None = None
        self._here = False
        self._bytes = b""
        self._error: BaseException | None = None

    def then(self, callback: Callable[[], None]) -> None:
        """Calls `callback` once, when it has come or never will, before waiters wake; at once if it has."""
        with self._lock:
            if not self._here:
                self._callback = callback
                return
        callback()

    def done(self) -> bool:
        """Says whether it has come, or never will."""
        return self._bell.rung

    def wait(self, timeout: float) -> bytes:
        """Waits for it, until so many seconds after the call was sent. Any number of threads may.

        Raises:
            TimeoutError: It has not come.
            grpc.RpcError: The stream broke.
            StreamLost: Likewise, of one without gRPC.
            StreamOver: The stream has ended, and the call was not begun.
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
        if self._callback is not None:
            self._callback()
        self._bell.ring()


class RankStream(Protocol):
    """One stream, which ends, for good, when it is closed or breaks.

    Thread-safe, also where a signal interrupts the thread that sends.
    """

    @property
    def closed(self) -> bool:
        """Whether it takes no more calls."""
        ...

    def send_alone(self, message: bytes) -> Answer | None:
        """Sends an ``ExecuteRequest`` as `send` does, but only if nothing is under way."""
        ...

    def send(self, message: bytes, *, alone: bool = False) -> Answer | None:
        """Sends an ``ExecuteRequest`` that is answered.

        Args:
            message: The request.
            alone: Only if nothing else is under way.

        Returns:
            Its answer to come. None: it was not sent; the stream is closed or over, or others are under way.
        """
        ...

    def withdraw(self, operation_id: str) -> None:
        """Withdraws what was sent wherever it was not admitted; it is answered all the same."""
        ...

    def close(self) -> None:
        """Sends nothing more. What was sent is answered."""
        ...
