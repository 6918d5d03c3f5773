"""A call that was begun, for the sync and the async front."""

from __future__ import annotations

import functools
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import grpc

from rankbridge._plan.calls import Call
from rankbridge._transport.channels import ChannelsCore
from rankbridge._transport.framing import StreamLost, StreamOver, requesting, result_of
from rankbridge._transport.streams import RankStream
from rankbridge.errors import ProtocolError, RankBridgeError, ResourceExhaustedError, UnavailableError
from rankbridge.v1 import gang_service_pb2 as gang_pb

T = TypeVar("T")

_REFUSED = "execute"
"""The operation of the error with which a rank refuses a stream."""


class PendingCore(ABC, Generic[T]):
    """What ``Pending`` and ``AsyncPending`` have in common."""

    def __init__(self, channels: ChannelsCore, call: Call[T], *, ordered: bool = False) -> None:
        """Sends nothing yet. `ordered`: it fails where it would go by its own RPC, which keeps no order."""
        self.operation = call.kind
        self.operation_id = call.operation_id
        self.rank = call.rank
        self._stream: RankStream | None = None
        self._number = 0
        self._channels = channels
        self._call = call
        self._ordered = ordered
        self._cancelled = False
        self._due = time.monotonic() + call.deadline

    def _begin(self) -> bool:
        """Sends it by a stream. False: it is to go by its own RPC."""
        request = requesting(self._call)
        if request is None:
            return False
        if self._channels.closed:
            self._raise(self._call.refused())
            return True
        sent = self._channels.streams.send(self.rank, request, self)
        if not sent:
            self._stream = None
        return sent

    def _send_by(self, stream: RankStream) -> bool:
        """Sends a gang call by this stream. False: the stream is closed."""
        assert self._call.gang_call is not None, "only gang calls keep an order"
        return stream.send(self._call.gang_call, self)

    def _withdraw(self) -> None:
        """Withdraws an operation wherever it was not admitted. It is answered all the same."""
        if self._stream is not None:
            self._stream.withdraw(self.operation_id, self._number)

    def _come(self, response: gang_pb.ExecuteResponse) -> None:
        """Takes the answer of a stream."""
        self._end(functools.partial(result_of, self._call, response))

    def _fail(self, error: BaseException) -> None:
        """Takes the reason why a stream answers nothing. What was not begun goes by its own RPC at once.

        Other ranks may be waiting for this one, whoever is waited for meanwhile.
        """
        if isinstance(error, ProtocolError):
            error = self._call.misunderstood(error)
        if self._was_not_begun(self._meaning(error)) and not self._ordered and not self._cancelled:
            self._stream = None
            self._go_alone()
        else:
            self._fail_as_meant(error)

    @abstractmethod
    def done(self) -> bool:
        """Says whether the call has ended."""

    @abstractmethod
    def _go_alone(self) -> None:
        """Sends the call by its own RPC."""

    @abstractmethod
    def _end(self, finish: Callable[[], T]) -> None:
        """Ends it, unless it has ended: `finish` gives the result, or raises the error."""

    def _fail_as_meant(self, error: BaseException) -> None:
        failure = self._meaning(error)
        if failure is not error:
            failure.__cause__ = error
        self._raise(failure)

    def _meaning(self, error: BaseException) -> BaseException:
        return meaning(self._channels, self._call, error)

    def _raise(self, error: BaseException) -> None:
        self._end(functools.partial(_raised, error))

    def _longest(self, timeout: float | None) -> float | None:
        """Gives how many seconds to wait, given that the caller waits at most `timeout`. None: as long as it takes."""
        if self._stream is None:
            # gRPC ends an RPC at its deadline.
            return timeout
        left = max(0.0, self._due - time.monotonic())
        return left if timeout is None else min(left, timeout)

    def _waited(self, timeout: float | None) -> None:
        """Ends a call whose deadline has passed while it was waited for.

        Raises:
            TimeoutError: Only the time of who waits is over.
        """
        if self._is_late():
            self._withdraw()
            self._raise(self._call.late(self._channels.targets[self.rank]))
        elif timeout is not None:
            raise self._not_ended()

    def _is_late(self) -> bool:
        return self._stream is not None and time.monotonic() >= self._due

    def _not_ended(self) -> TimeoutError:
        return TimeoutError(f"{self.operation} at rank {self.rank} has not ended yet")

    def _was_not_begun(self, error: BaseException) -> bool:
        if isinstance(error, UnavailableError):
            # A rank that was replaced may be found by a call of its own.
            return not error.indefinite
        refused = isinstance(error, ResourceExhaustedError) and error.operation == _REFUSED
        if refused:
            self._channels.streams.refused_by(self.rank)
        return refused


def meaning(channels: ChannelsCore, call: Call[Any], error: BaseException) -> BaseException:
    """Gives what a call raises where grpcio, or a stream, raises this."""
    match error:
        case RankBridgeError():
            return error
        case grpc.RpcError():
            return call.failure(error, channels.targets[call.rank])
        case grpc.FutureCancelledError():
            return call.cancelled()
        case StreamOver():
            return call.not_begun(channels.targets[call.rank])
        case StreamLost():
            return call.cancelled() if channels.closed else call.lost(channels.targets[call.rank], error)
        # What grpcio says to a call on a channel that was closed in the meantime.
        case ValueError() if channels.closed:
            return call.refused()
    return error


def given(value: T) -> T:
    """Gives the result that a call has ended with."""
    return value


def _raised(error: BaseException) -> Any:
    raise error
