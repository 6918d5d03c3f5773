"""``aconnect``: a gang for asyncio, by ``await`` or by ``async with``."""

from __future__ import annotations

import functools
from collections.abc import Callable, Coroutine, Generator
from types import TracebackType
from typing import Any, ParamSpec

from rankbridge._async import gang
from rankbridge._async.gang import AsyncGang

P = ParamSpec("P")


class Connecting(Coroutine[Any, Any, AsyncGang]):
    """A gang that is being connected: awaited, or entered by ``async with``, which closes it at the end. Once."""

    def __init__(self, connecting: Coroutine[Any, Any, AsyncGang]) -> None:
        """Does not begin: that is done by who awaits it."""
        self._connecting = connecting
        self._gang: AsyncGang | None = None

    def __await__(self) -> Generator[Any, Any, AsyncGang]:
        """Gives the gang, which the caller closes."""
        return self._connecting.__await__()

    def send(self, value: Any) -> Any:
        """As of any coroutine, so that it can be a task."""
        return self._connecting.send(value)

    def throw(self, *failure: Any) -> Any:
        """As of any coroutine."""
        return self._connecting.throw(*failure)

    def close(self) -> None:
        """As of any coroutine."""
        self._connecting.close()

    async def __aenter__(self) -> AsyncGang:
        """Gives the gang."""
        self._gang = await self
        return self._gang

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Closes the gang."""
        if self._gang is not None:
            await self._gang.close()


def _opened(connect: Callable[P, Coroutine[Any, Any, AsyncGang]]) -> Callable[P, Connecting]:
    @functools.wraps(connect)
    def begin(*args: P.args, **kwargs: P.kwargs) -> Connecting:
        return Connecting(connect(*args, **kwargs))

    return begin


aconnect = _opened(gang.aconnect)
