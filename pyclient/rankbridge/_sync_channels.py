"""Sends calls over grpcio's blocking front."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Generic, TypeVar

import grpc

from rankbridge._calls import Call, Shape
from rankbridge._gang_core import all_values
from rankbridge._targets import CHANNEL_OPTIONS
from rankbridge.errors import Outcome, RankBridgeError

T = TypeVar("T")

__all__ = ["Pending", "SyncChannels"]

_MOST_FETCHES = 64


class Pending(Generic[T]):
    """A call that was begun and may not have ended.

    Attributes:
        operation: Kind of operation.
        operation_id: Its id. Empty: it has none.
        rank: Rank in the gang that was called.
    """

    def __init__(
        self, call: Call[T], future: Any, finish: Callable[[float | None], T], cancel: Callable[[], Any]
    ):
        """Holds a call in flight; made by ``Rank.start``."""
        self.operation = call.operation
        self.operation_id = call.operation_id
        self.rank = call.rank
        self._future = future
        self._finish = finish
        self._cancel = cancel

    def result(self, timeout: float | None = None) -> T:
        """Waits for the end.

        Args:
            timeout: Longest time to wait, in seconds. None: until the call's own deadline, which it has
                always.

        Raises:
            RankBridgeError: The call failed.
            TimeoutError: It has not ended yet; it goes on.
        """
        return self._finish(timeout)

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
            return Outcome(rank=self.rank, value=self._finish(timeout))
        except RankBridgeError as error:
            return Outcome(rank=self.rank, error=error)

    def done(self) -> bool:
        """Says whether the call has ended."""
        return bool(self._future.done())

    def cancel(self) -> None:
        """Stops waiting for the rank, which withdraws an operation that was not admitted yet. An ended call stays."""
        self._cancel()


class SyncChannels:
    """One channel to each rank.

    Attributes:
        closed: Whether they are closed. No call is sent then.
    """

    def __init__(self, targets: Sequence[str], tls: grpc.ChannelCredentials | None) -> None:
        """Makes the channels; nothing is connected before the first call."""
        self._targets = tuple(targets)
        self._channels = [
            grpc.insecure_channel(target, CHANNEL_OPTIONS)
            if tls is None
            else grpc.secure_channel(target, tls, CHANNEL_OPTIONS)
            for target in targets
        ]
        self._callables: dict[tuple[int, str], Any] = {}
        self._pool: ThreadPoolExecutor | None = None
        self._pool_lock = threading.Lock()
        self.closed = False

    def run(self, call: Call[T]) -> T:
        """Sends a call and waits for its end. What interrupts the waiting cancels the call.

        Raises:
            RankBridgeError: It failed.
        """
        send = self._callable(call)
        with self._failures(call):
            if call.shape is Shape.DOWNLOAD:
                return self._download(call, send(call.request, **call.rpc_options))
            request = call.messages() if call.shape is Shape.UPLOAD else call.request
            # Not grpcio's own way of waiting: only a future can be cancelled by what interrupts it.
            reply = send.future(request, **call.rpc_options)
            try:
                return call.result(reply.result())
            except BaseException:
                reply.cancel()
                raise

    def start(self, call: Call[T]) -> Pending[T]:
        """Sends a call and returns at once.

        Raises:
            CallCancelledError: The gang is closed.
        """
        send = self._callable(call)
        with self._failures(call):
            if call.shape is Shape.DOWNLOAD:
                stream = send(call.request, **call.rpc_options)
                future = self._threads().submit(self._guarded_download, call, stream)
                return Pending(call, future, lambda timeout: _wait(future, timeout), stream.cancel)
            request = call.messages() if call.shape is Shape.UPLOAD else call.request
            reply = send.future(request, **call.rpc_options)
            return Pending(call, reply, lambda timeout: self._reply(call, reply, timeout), reply.cancel)

    def outcomes(self, calls: Sequence[Call[T]]) -> list[Outcome[T]]:
        """Sends calls, all at once, and waits for every one's end."""
        pending: list[Pending[T]] = []
        try:
            pending.extend(self.start(call) for call in calls)
            return [started.outcome() for started in pending]
        except BaseException:
            for started in pending:
                started.cancel()
            raise

    def run_all(self, calls: Sequence[Call[T]]) -> list[T]:
        """Sends calls, all at once, waits for every one's end, and gives their results.

        Raises:
            GangError: Some failed.
        """
        return all_values(self.outcomes(calls))

    def close(self) -> None:
        """Closes the channels. Calls in flight fail with ``CallCancelledError``."""
        self.closed = True
        for channel in self._channels:
            channel.close()
        if self._pool is not None:
            self._pool.shutdown()

    def _callable(self, call: Call[T]) -> Any:
        if self.closed:
            raise call.refused()
        key = (call.rank, call.path)
        found = self._callables.get(key)
        if found is None:
            channel = self._channels[call.rank]
            found = self._callables[key] = {
                Shape.UNARY: channel.unary_unary,
                Shape.UPLOAD: channel.stream_unary,
                Shape.DOWNLOAD: channel.unary_stream,
            }[call.shape](call.path)
        return found

    def _reply(self, call: Call[T], reply: Any, timeout: float | None) -> T:
        with self._failures(call):
            return call.result(reply.result(timeout))

    def _guarded_download(self, call: Call[T], stream: Any) -> T:
        with self._failures(call):
            return self._download(call, stream)

    def _download(self, call: Call[T], stream: Any) -> T:
        reader = call.collector()
        try:
            for message in stream:
                reader.feed(message)
        except BaseException:
            stream.cancel()
            raise
        return reader.finish()

    def _threads(self) -> ThreadPoolExecutor:
        with self._pool_lock:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(
                    max(_MOST_FETCHES, len(self._targets)), thread_name_prefix="rankbridge"
                )
            return self._pool

    @contextlib.contextmanager
    def _failures(self, call: Call[T]) -> Iterator[None]:
        try:
            yield
        except grpc.RpcError as error:
            raise call.failure(error, self._targets[call.rank]) from error
        except grpc.FutureCancelledError as error:
            raise call.cancelled() from error
        except ValueError as error:
            # What grpcio says to a call on a channel that was closed in the meantime.
            if self.closed and not isinstance(error, RankBridgeError):
                raise call.refused() from error
            raise
        except grpc.FutureTimeoutError as error:
            raise TimeoutError(f"{call.operation} at rank {call.rank} has not ended yet") from error


def _wait(future: Future[T], timeout: float | None) -> T:
    try:
        return future.result(timeout)
    except TimeoutError as error:
        # Also what a fetch raises whose own deadline passed.
        if future.done():
            raise
        raise TimeoutError("the fetch has not ended yet") from error
