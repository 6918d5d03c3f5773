"""A stream to one rank, over grpcio's asyncio front."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

from rankbridge._transport.framing import StreamLost, StreamOver
from rankbridge._transport.streams import Awaiting, RankStream


class AsyncGrpcStream(RankStream):
    """A ``RankStream`` over grpcio, in one event loop."""

    def __init__(self, opened: Callable[..., Any]) -> None:
        """Opens it. It ends, for good, when it is closed or breaks.

        Args:
            opened: Given the requests, gives the responses, as grpcio's callable for ``GangService.Execute`` does.
        """
        super().__init__()
        self._requests: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._responses = opened(self._sending())
        self._reader = asyncio.create_task(self._read(), name="rankbridge-execution")

    def close(self) -> None:
        """Sends nothing more. What was sent is answered."""
        self._closed = True
        self._requests.put_nowait(None)

    def _put(self, data: bytes, number: int = 0, awaiting: Awaiting | None = None) -> bool:
        if awaiting is not None:
            self._answers[number] = awaiting
        self._requests.put_nowait(data)
        return True

    async def _sending(self) -> AsyncIterator[bytes]:
        while (message := await self._requests.get()) is not None:
            yield message

    async def _read(self) -> None:
        error: BaseException = StreamOver()
        try:
            async for response in self._responses:
                self._answered(response)
        except asyncio.CancelledError:
            # As grpcio tells of a channel that is closed; or the event loop ends.
            error = StreamLost("it was closed")
        except Exception as broken:
            self._responses.cancel()
            error = broken
        self._fail_all(error)
        # Lets go of who sends.
        self._requests.put_nowait(None)
