"""Calls that are made as several, over grpcio's blocking front."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from rankbridge._plan.calls import Call, Shape
from rankbridge._transport.shared_memory import Steps
from rankbridge._transport.threads.pending import Pending

if TYPE_CHECKING:
    from rankbridge._transport.threads.channels import Channels

T = TypeVar("T")


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
        if step.shape is Shape.DOWNLOAD:
            with self._channels.failures(step):
                return self._download(step)
        pending = Pending(self._channels, step)
        with self._lock:
            self._check(step)
            pending._go_alone()
            self._cancel_step = pending.cancel
        try:
            return pending.result()
        except BaseException:
            pending.cancel()
            raise

    def _download(self, step: Call[T]) -> T:
        send = self._channels.callable(step)
        with self._lock:
            self._check(step)
            stream = send(step.body, **step.rpc_options)
            self._cancel_step = stream.cancel
        reader = step.collector()
        try:
            for message in stream:
                reader.feed(message)
        except BaseException:
            stream.cancel()
            raise
        return reader.finish()

    def _check(self, step: Call[Any]) -> None:
        if self._cancelled:
            raise step.cancelled()
