"""A stream to one rank, over grpcio's asyncio front."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import Any

from rankbridge._transport.aio.stream import AsyncAnswer
from rankbridge._transport.framing import StreamOver, unasked, withdrawing

__all__ = ["AsyncGrpcStream"]


class AsyncGrpcStream:
    """An ``AsyncRankStream`` over grpcio."""

    def __init__(self, opened: Callable[..., Any]) -> None:
        """Opens it. It ends, for good, when it is closed or breaks.

        Args:
            opened: Given the requests, gives the responses, as grpcio's callable for ``GangService.Execute`` does.
        """
        self._requests: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._answers: deque[AsyncAnswer] = deque()
        self._closed = False
        self._responses = opened(self._sending())
        self._reader = asyncio.create_task(self._read(), name="rankbridge-execution")

    @property
    def closed(self) -> bool:
        """Whether it takes no more calls."""
        return self._closed

    def send_alone(self, message: bytes) -> AsyncAnswer | None:
        """As ``RankStream.send_alone``."""
        return self.send(message, alone=True)

    def send(self, message: bytes, *, alone: bool = False) -> AsyncAnswer | None:
        """As ``RankStream.send``."""
        if self._closed or (alone and self._answers):
            return None
        answer = AsyncAnswer()
        self._answers.append(answer)
        self._requests.put_nowait(message)
        return answer

    def withdraw(self, operation_id: str) -> None:
        """Withdraws a call wherever it was not admitted; it is answered all the same."""
        self._requests.put_nowait(withdrawing(operation_id))

    def close(self) -> None:
        """Sends nothing more. What was sent is answered."""
        self._closed = True
        self._requests.put_nowait(None)

    async def _sending(self) -> AsyncIterator[bytes]:
        while (message := await self._requests.get()) is not None:
            yield message

    async def _read(self) -> None:
        error: BaseException | None = StreamOver()
        try:
            async for response in self._responses:
                if not self._answers:
                    self._responses.cancel()
                    raise unasked(response)
                self._answers.popleft()._come(response)
        except asyncio.CancelledError:
            # As grpcio tells of a channel that is closed; or the event loop ends.
            error = None
        except Exception as broken:
            error = broken
        self._closed = True
        while self._answers:
            self._answers.popleft()._fail(error)
        # Lets go of who sends.
        self._requests.put_nowait(None)
