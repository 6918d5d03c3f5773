"""A stream to one rank, for asyncio: what is sent is answered in the order in which it was."""

from __future__ import annotations

import asyncio
from typing import Protocol

from rankbridge._transport.framing import StreamOver

__all__ = ["AsyncAnswer", "AsyncRankStream"]


class AsyncAnswer:
    """What one call will be answered: the bytes of an ``ExecuteResponse``, written as ``CallResponse`` is."""

    __slots__ = ("_future", "_sent")

    def __init__(self) -> None:
        """Nothing has come; the call is sent now."""
        loop = asyncio.get_running_loop()
        self._sent = loop.time()
        self._future: asyncio.Future[bytes] = loop.create_future()
        # An error that nobody asks for is nobody's: asyncio would log it.
        self._future.add_done_callback(lambda ended: ended.cancelled() or ended.exception())

    def done(self) -> bool:
        """Says whether it has come, or never will."""
        return self._future.done()

    async def wait(self, timeout: float) -> bytes:
        """Waits for it, until so many seconds after the call was sent. Any number of tasks may.

        Raises:
            TimeoutError: It has not come.
            grpc.RpcError: The stream broke.
            StreamLost: Likewise, of one without gRPC.
            asyncio.CancelledError: The channel was closed.
            StreamOver: The stream has ended, and the call was not begun.
        """
        if not self._future.done():
            left = self._sent + timeout - asyncio.get_running_loop().time()
            await asyncio.wait([self._future], timeout=max(0.0, left))
        if not self._future.done():
            raise TimeoutError
        return self._future.result()

    def response(self) -> bytes:
        """What has come. Raises as `wait` why nothing has; ``StreamOver`` if the channel was closed."""
        try:
            return self._future.result()
        except asyncio.CancelledError:
            raise StreamOver from None

    def _come(self, response: bytes) -> None:
        self._future.set_result(response)

    def _fail(self, error: BaseException | None) -> None:
        if error is None:
            self._future.cancel()
        else:
            self._future.set_exception(error)


class AsyncRankStream(Protocol):
    """One stream, made and used in one event loop, as ``RankStream`` is in threads."""

    @property
    def closed(self) -> bool:
        """Whether it takes no more calls."""
        ...

    def send_alone(self, message: bytes) -> AsyncAnswer | None:
        """As ``RankStream.send_alone``."""
        ...

    def send(self, message: bytes, *, alone: bool = False) -> AsyncAnswer | None:
        """As ``RankStream.send``."""
        ...

    def withdraw(self, operation_id: str) -> None:
        """As ``RankStream.withdraw``."""
        ...

    def close(self) -> None:
        """Sends nothing more. What was sent is answered."""
        ...
