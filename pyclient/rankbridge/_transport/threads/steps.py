"""Calls that are made as several, over grpcio's blocking front."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from rankbridge._plan.calls import Call, Shape
from rankbridge._transport.shared_memory import Steps
from rankbridge._transport.threads.pending import Pending
from rankbridge.errors import Outcome

if TYPE_CHECKING:
    from rankbridge._transport.threads.channels import Channels

T = TypeVar("T")

__all__ = ["AtOnce", "InSteps"]


class InSteps(Generic[T]):
    """A call that is made as several, one after the other, in the thread that runs it; any thread may cancel it."""

    def __init__(self, channels: Channels, steps: Steps[T]) -> None:
        """Made by ``Channels``, to run once."""
        self._channels = channels
        self._steps = steps
        self._lock = threading.Lock()
        self._cancel_step: Callable[[], Any] = lambda: None
        self._cancelled = False

    def run(self) -> T:
        """Makes every call, and gives the last result."""
        try:
            step = next(self._steps)
            while True:
                try:
                    answer = self._send(step)
                except BaseException as error:
                    step = self._steps.throw(error)
                else:
                    step = self._steps.send(answer)
        except StopIteration as end:
            result: T = end.value
            return result

    def cancel(self) -> None:
        """Ends the call that is under way; no other is made."""
        with self._lock:
            self._cancelled = True
            self._cancel_step()

    def _send(self, step: Call[Any]) -> Any:
        channels = self._channels
        if step.shape is Shape.DOWNLOAD:
            send = channels._callable(step)
            with self._lock, channels._failures(step):
                self._check(step)
                stream = send(step.body, **step.rpc_options)
                self._cancel_step = stream.cancel
            return channels._guarded_download(step, stream)
        with self._lock:
            self._check(step)
            pending = channels._start(step)
            self._cancel_step = pending.cancel
        try:
            return pending.result()
        except BaseException:
            pending.cancel()
            raise

    def _check(self, step: Call[Any]) -> None:
        if self._cancelled:
            raise step.cancelled()


class AtOnce(Generic[T]):
    """Calls that are made at once, in the thread that runs it; any thread may cancel them."""

    def __init__(self, channels: Channels, calls: Sequence[Call[T]]) -> None:
        """Made by ``Channels``, to run once."""
        self._channels = channels
        self._calls = calls
        self._lock = threading.Lock()
        self._pending: list[Pending[T]] = []
        self._cancelled = False

    def run(self) -> list[Outcome[T]]:
        """Sends every call, and waits for every one's end."""
        try:
            for call in self._calls:
                with self._lock:
                    if self._cancelled:
                        raise call.cancelled()
                    self._pending.append(self._channels._start(call))
            return [it.outcome() for it in self._pending]
        except BaseException:
            self.cancel()
            raise

    def cancel(self) -> None:
        """Ends what is under way; nothing else is sent."""
        with self._lock:
            self._cancelled = True
            for it in self._pending:
                it.cancel()
