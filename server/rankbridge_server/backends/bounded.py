"""Calls into somebody else's code, which may never come back."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, TimeoutError as FutureTimeoutError
from typing import TypeVar

from ..core import engine_threads

Result = TypeVar("Result")

GRACE_S = 0.5
"""How much longer than its timeout an operation may take: an engine that keeps time says more than a clock."""


class DidNotReturn(Exception):
    """A call goes on in a thread that nobody waits for any more."""


def bounded(call: Callable[[], Result], timeout: float, name: str) -> Result:
    """Calls in a thread of its own, and waits `timeout` seconds for the result. Raises DidNotReturn, or its error."""
    done: Future[Result] = Future()

    def run() -> None:
        try:
            done.set_result(call())
        except BaseException as error:
            done.set_exception(error)

    engine_threads.start(name, run)
    try:
        return done.result(timeout)
    except FutureTimeoutError:
        if done.done():
            # The call itself has raised it.
            raise
        raise DidNotReturn(f"it did not return in {timeout:.1f} s") from None
