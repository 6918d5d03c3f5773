"""A call that goes on while its caller does something else."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import grpc

from rankbridge._plan.calls import Call, Shape
from rankbridge._transport.pending import PendingCore
from rankbridge._transport.threads.bell import Bell
from rankbridge.errors import Outcome, RankBridgeError

if TYPE_CHECKING:
    from rankbridge._transport.threads.channels import Channels
    from rankbridge._transport.threads.steps import InSteps
    from rankbridge._transport.threads.uninterrupted import Result

T = TypeVar("T")


class Pending(PendingCore[T]):
    """A call that was begun and may not have ended.

    Attributes:
        operation: Kind of operation.
        operation_id: Its id. Empty: it has none.
        rank: Rank in the gang that was called.
    """

    _channels: Channels

    def __init__(self, channels: Channels, call: Call[T], *, ordered: bool = False) -> None:
        """Made by ``Channels``. The time until the call's deadline begins."""
        super().__init__(channels, call, ordered=ordered)
        self._bell = Bell()
        # How it has ended: the first counts. One step puts it there, whatever else ends it at the same time.
        self._ends: list[Callable[[], T]] = []
        # Without a stream: what a thread of its own will give, or what cancels the RPC.
        self._carried: Result[T] | None = None
        self._cancel_alone: Callable[[], Any] | None = None

    def result(self, timeout: float | None = None) -> T:
        """Waits for the end.

        Args:
            timeout: Longest time to wait, in seconds. None: until the call's own deadline, which it has
                always.

        Raises:
            RankBridgeError: The call failed.
            TimeoutError: It has not ended yet; it goes on.
        """
        if self._carried is not None:
            return self._carry_on(self._carried, timeout)
        self._wait(timeout)
        return self._ended()

    def exception(self, timeout: float | None = None) -> RankBridgeError | None:
        """Waits for the end, and gives the error that `result` would raise, or None.

        Raises:
            TimeoutError: The call has not ended yet; it goes on.
        """
        return self.outcome(timeout).error

    def outcome(self, timeout: float | None = None) -> Outcome[T]:
        """Waits for the end, and gives value or error.

        Raises:
            TimeoutError: The call has not ended yet; it goes on.
        """
        try:
            return Outcome(rank=self.rank, value=self.result(timeout))
        except RankBridgeError as error:
            return Outcome(rank=self.rank, error=error)

    def done(self) -> bool:
        """Says whether the call has ended."""
        if self._carried is not None:
            return self._carried.done()
        return bool(self._ends) or self._is_late()

    def cancel(self) -> None:
        """Stops waiting for the rank, which withdraws an operation that was not admitted yet. An ended call stays."""
        self._cancelled = True
        if self._ends:
            return
        self._withdraw()
        if self._cancel_alone is not None:
            self._channels.uninterrupted.safely(self._cancel_alone)
        self._raise(self._call.cancelled())

    def _go_alone(self) -> None:
        """Sends the call by its own RPC, from a thread that no signal interrupts."""
        call = self._call
        try:
            reply = self._channels.callable(call).future(self._request(), **call.rpc_options)
        except Exception as error:
            self._fail_as_meant(error)
            return
        self._cancel_alone = reply.cancel
        if self._cancelled:
            reply.cancel()
        reply.add_done_callback(self._replied)

    def _wait_alone(self) -> None:
        """Sends the call likewise, and waits for the answer: half of the work, as grpcio starts no thread for it."""
        call = self._call
        try:
            answer = self._channels.callable(call)(self._request(), **call.rpc_options)
        except Exception as error:
            self._fail_as_meant(error)
        else:
            self._end(functools.partial(call.result, answer))

    def _request(self) -> Any:
        return self._call.messages() if self._call.shape is Shape.UPLOAD else self._call.body

    def _carry(self, steps: InSteps[T]) -> None:
        """Has a thread make the calls that it is made as."""
        self._cancel_alone = steps.cancel
        self._carried = self._channels.uninterrupted.begin(steps.run)

    def _wait(self, timeout: float | None = None) -> None:
        """Waits for the end, as `result` does, and gives nothing."""
        while not self._ends and not self._bell.wait(self._longest(timeout)):
            self._waited(timeout)

    def _ended(self) -> T:
        """Gives the result of a call that has ended, as `result` does."""
        return self._ends[0]()

    def _replied(self, reply: Any) -> None:
        """In a thread of grpcio's."""
        try:
            error = reply.exception()
        except grpc.FutureCancelledError as cancelled:
            error = cancelled
        if error is None:
            self._end(functools.partial(self._call.result, reply.result()))
        else:
            self._fail_as_meant(error)

    def _carry_on(self, carried: Result[T], timeout: float | None) -> T:
        try:
            return carried.wait(timeout)
        except TimeoutError as error:
            # Also what a fetch raises whose own deadline passed.
            if carried.done():
                raise
            raise self._not_ended() from error

    def _end(self, finish: Callable[[], T]) -> None:
        self._ends.append(finish)
        if self._ends[0] is finish:
            self._bell.ring()
