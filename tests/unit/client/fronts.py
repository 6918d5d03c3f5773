"""Both fronts of the client behind one face, so that every test of a gang runs on both."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import importlib
import inspect
import types
from collections.abc import AsyncIterator, Iterator
from typing import Any

import rankbridge

_AWAITED = (
    rankbridge.AsyncPending,
    rankbridge.AsyncQueue,
    rankbridge.AsyncStreamed,
    rankbridge.AsyncSubmitted,
    rankbridge.AsyncWork,
)
"""What an asyncio front gives that has methods to be awaited itself."""


class Blocking:
    """An object of the asyncio front, used as one of the blocking front.

    Everything runs in one loop and one context, as it would in one task of a program.
    """

    def __init__(self, runner: asyncio.Runner, target: Any) -> None:
        """Wraps `target`."""
        self._runner = runner
        self._target = target

    def __getattr__(self, name: str) -> Any:
        """Gives a method that waits for its coroutine, or the attribute as the task sees it."""

        async def read() -> Any:
            return getattr(self._target, name)

        value = self._runner.run(read())
        return self._method(value) if callable(value) else value

    def __getitem__(self, rank: int) -> Any:
        """Gives one rank."""
        return Blocking(self._runner, self._target[rank])

    def __iter__(self) -> Iterator[Any]:
        """Gives every rank."""
        return (Blocking(self._runner, rank) for rank in self._target)

    def __len__(self) -> int:
        """Gives the number of ranks."""
        return len(self._target)

    def _method(self, method: Any) -> Any:
        def call(*args: Any, **options: Any) -> Any:
            given = [it._target if isinstance(it, Blocking) else it for it in args]

            async def run() -> Any:
                result = method(*given, **options)
                return await result if inspect.isawaitable(result) else result

            result = self._runner.run(run())
            if isinstance(result, list):
                return [Blocking(self._runner, it) if isinstance(it, _AWAITED) else it for it in result]
            if isinstance(result, _AWAITED):
                return Blocking(self._runner, result)
            if isinstance(result, contextlib.AbstractAsyncContextManager):
                return self._entered(result)
            if isinstance(result, AsyncIterator):
                return self._iterated(result)
            return result

        return call

    def _iterated(self, items: AsyncIterator[Any]) -> Iterator[Any]:
        async def following() -> Any:
            return await anext(items, None)

        while (item := self._runner.run(following())) is not None:
            yield item

    @contextlib.contextmanager
    def _entered(self, manager: Any) -> Iterator[Any]:
        value = self._runner.run(manager.__aenter__())
        try:
            yield Blocking(self._runner, value) if isinstance(value, rankbridge.AsyncGangStream) else value
        except BaseException as error:
            if not self._runner.run(manager.__aexit__(type(error), error, error.__traceback__)):
                raise
        else:
            self._runner.run(manager.__aexit__(None, None, None))


def coordinator(gang: Any, *args: Any, **options: Any) -> Any:
    """Makes a group coordinator of a gang's own front."""
    if not isinstance(gang, Blocking):
        return rankbridge.GroupCoordinator.new(gang, *args, **options)
    runner = gang._runner
    return Blocking(runner, runner.run(rankbridge.AsyncGroupCoordinator.new(gang._target, *args, **options)))


def compat(gang: Any, system: str) -> Any:
    """Gives another system's functions for a gang's own front, with the gang as their first argument."""
    package = "rankbridge.compat.aio" if isinstance(gang, Blocking) else "rankbridge.compat"
    functions = vars(importlib.import_module(f"{package}.{system}"))
    own = {name: functions[name] for name in functions["__all__"]}
    if isinstance(gang, Blocking):
        own = {name: gang._method(function) for name, function in own.items()}
    return types.SimpleNamespace(**{name: functools.partial(each, gang) for name, each in own.items()})


@contextlib.contextmanager
def connected(front: str, target: Any, **options: Any) -> Iterator[Any]:
    """Connects with one of the fronts ("sync", "async"), and closes at the end."""
    if front == "sync":
        with rankbridge.connect(target, **options) as gang:
            yield gang
    else:
        with asyncio.Runner() as runner:
            wrapped = Blocking(runner, runner.run(rankbridge.aconnect(target, **options)))
            try:
                yield wrapped
            finally:
                wrapped.close()
