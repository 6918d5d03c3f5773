"""Parts of operations that go by streams, over grpcio's blocking front."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Generic, TypeVar

from rankbridge._plan.calls import Call
from rankbridge._transport.framing import result_of
from rankbridge._transport.threads.stream import Answer, RankStream
from rankbridge.errors import Outcome, RankBridgeError

if TYPE_CHECKING:
    from rankbridge._transport.threads.channels import Channels
    from rankbridge._transport.threads.pending import Pending

T = TypeVar("T")

__all__ = ["SentPart"]


class SentPart(Generic[T]):
    """One rank's part of an operation, sent by a stream.

    If the stream does not begin it, it goes by itself at once, whoever is waited for meanwhile: other ranks may be
    waiting for this one.
    """

    def __init__(self, channels: Channels, call: Call[T], stream: RankStream, answer: Answer) -> None:
        """Made by ``Channels``, of what was sent."""
        self._channels = channels
        self._call = call
        self._stream = stream
        self._answer = answer
        self._lock = threading.Lock()
        self._cancelled = False
        self._outcome: Outcome[T] | None = None
        self._fault: BaseException | None = None
        self._alone: Pending[T] | None = None
        answer.then(self._come)

    def outcome(self) -> Outcome[T]:
        """Waits until the call's deadline, and gives value or error. What interrupts the waiting does not cancel it."""
        try:
            self._channels._answer_of(self._call, self._stream, self._answer)
        except RankBridgeError as error:
            # Of one that is late `_come` has said nothing.
            self._outcome = self._outcome or Outcome(rank=self._call.rank, error=error)
        if self._alone is not None:
            return self._alone.outcome()
        if self._outcome is None:
            raise self._fault or RuntimeError("it was answered, and has no outcome")
        return self._outcome

    def cancel(self) -> None:
        """Withdraws it, unless it was admitted."""
        with self._lock:
            self._cancelled = True
            alone = self._alone
        if alone is not None:
            alone.cancel()
        elif not self._answer.done():
            self._stream.withdraw(self._call.operation_id)

    def _come(self) -> None:
        """In the stream's thread, before anybody who waits goes on."""
        call, channels = self._call, self._channels
        try:
            self._outcome = Outcome(rank=call.rank, value=result_of(call, self._answer.response()))
        except Exception as broken:
            error = channels._meaning(call, broken)
            if not isinstance(error, RankBridgeError):
                # For who waits: the stream goes on.
                self._fault = error
                return
            self._outcome = Outcome(rank=call.rank, error=error)
            if channels._was_not_begun(call, error):
                self._go_alone()

    def _go_alone(self) -> None:
        with self._lock:
            if not self._cancelled:
                try:
                    self._alone = self._channels.start(self._call)
                except RankBridgeError as error:
                    self._outcome = Outcome(rank=self._call.rank, error=error)
                except Exception as fault:
                    self._outcome, self._fault = None, fault
