"""Sends calls over grpcio's asyncio front."""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Any, TypeVar

import grpc
import grpc.aio

from rankbridge._plan.calls import Call, Shape, SideBySide
from rankbridge._plan.gang_calls import Joined, joined
from rankbridge._plan.gang_core import all_values
from rankbridge._transport.aio.grpc_stream import AsyncGrpcStream
from rankbridge._transport.aio.local_stream import AsyncLocalStreams
from rankbridge._transport.aio.pending import AsyncPending
from rankbridge._transport.aio.stream import AsyncAnswer, AsyncRankStream
from rankbridge._transport.framing import EXECUTE, StreamLost, StreamOver, calling, parting, result_of
from rankbridge._transport.shared_memory import SharedMemory, Steps
from rankbridge._transport.streams import REFUSED, Streams
from rankbridge._transport.targets import CHANNEL_OPTIONS
from rankbridge.errors import Outcome, RankBridgeError, ResourceExhaustedError, UnavailableError

T = TypeVar("T")

__all__ = ["AsyncChannels"]


class AsyncChannels:
    """One channel to each rank. Made and used in one event loop.

    Attributes:
        closed: Whether they are closed. No call is sent then.
    """

    def __init__(
        self,
        targets: Sequence[str],
        tls: grpc.ChannelCredentials | None,
        shared: SharedMemory | None = None,
    ) -> None:
        """Makes the channels; nothing is connected before the first call. `shared`: memory for large tensors."""
        self.shared = shared
        self._targets = tuple(targets)
        self._channels = [
            grpc.aio.insecure_channel(target, CHANNEL_OPTIONS)
            if tls is None
            else grpc.aio.secure_channel(target, tls, CHANNEL_OPTIONS)
            for target in targets
        ]
        self._callables: dict[tuple[int, str], Any] = {}
        self._streams: Streams[AsyncRankStream, AsyncAnswer] = Streams(self._stream)
        # What speaks TLS is asked by gRPC alone.
        self._local = AsyncLocalStreams(() if tls is not None else self._targets)
        self.closed = False

    async def run(self, call: Call[T]) -> T:
        """Sends a call and waits for its end. Cancelling who waits cancels the call.

        Raises:
            RankBridgeError: It failed.
        """
        send = self._callable(call)
        if self.shared is not None and self.shared.takes(call):
            return await self._in_steps(self.shared.steps(call))
        with self._failures(call):
            match call.shape:
                case Shape.UNARY:
                    return call.result(await send(call.body, **call.rpc_options))
                case Shape.UPLOAD:
                    return call.result(await send(call.messages(), **call.rpc_options))
                case Shape.DOWNLOAD:
                    return await self._download(call, send(call.body, **call.rpc_options))

    def start(self, call: Call[T]) -> AsyncPending[T]:
        """Sends a call and returns at once.

        Raises:
            CallCancelledError: The gang is closed.
        """
        self._callable(call)
        return AsyncPending(call, asyncio.create_task(self.run(call)))

    def stream(self, call: Call[T]) -> Any:
        """As ``Channels.stream``."""
        return self._callable(call)(call.body)

    async def read(self, call: Call[T], stream: Any) -> AsyncIterator[T]:
        """As ``Channels.read``."""
        with self._failures(call):
            async for message in stream:
                yield call.result(message)

    async def outcomes(self, calls: Sequence[Call[T]]) -> list[Outcome[T]]:
        """Sends calls, all at once, or as one gang call, and waits for every one's end."""
        if isinstance(calls, SideBySide):
            return [
                outcome for part in await asyncio.gather(*map(self.outcomes, calls.parts)) for outcome in part
            ]
        gang_call = joined(calls)
        return await (self._each(calls) if gang_call is None else self._as_one(gang_call))

    async def run_all(self, calls: Sequence[Call[T]]) -> list[T]:
        """Sends calls, all at once, waits for every one's end, and gives their results.

        Raises:
            GangError: Some failed.
        """
        return all_values(await self.outcomes(calls))

    async def close(self) -> None:
        """Closes the channels. Calls in flight fail with ``CallCancelledError``."""
        self.closed = True
        self._streams.close()
        self._local.close()
        for channel in self._channels:
            await channel.close()
        if self.shared is not None:
            self.shared.close()

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

    def send_by(self, stream: AsyncRankStream | None, call: Call[T]) -> tuple[AsyncRankStream, AsyncAnswer]:
        """As ``Channels.send_by``."""
        if self.closed:
            raise call.refused()
        message = calling(call.body)
        answer = stream.send(message) if stream is not None else None
        while stream is None or answer is None:
            stream = self._stream(call.rank)
            answer = stream.send(message)
        return stream, answer

    async def answered(
        self, gang_call: Joined[T], stream: AsyncRankStream, answer: AsyncAnswer
    ) -> list[Outcome[T]]:
        """As ``Channels.answered``. Cancelling who waits withdraws the call."""
        call = gang_call.call
        try:
            outcomes = call.result(await self._answer_of(call, stream, answer))
        except RankBridgeError as error:
            return gang_call.failed(error)
        return await self._completed(gang_call, outcomes)

    async def _answer_of(self, call: Call[T], stream: AsyncRankStream, answer: AsyncAnswer) -> bytes:
        with self._failures(call):
            try:
                return await answer.wait(call.deadline)
            except TimeoutError:
                stream.withdraw(call.operation_id)
                raise call.late(self._targets[call.rank]) from None
            except StreamOver:
                raise call.not_begun(self._targets[call.rank]) from None
            except StreamLost as error:
                told = call.cancelled() if self.closed else call.lost(self._targets[call.rank], error)
                raise told from error
            except BaseException:
                stream.withdraw(call.operation_id)
                raise

    async def _as_one(self, gang_call: Joined[T]) -> list[Outcome[T]]:
        call = gang_call.call
        try:
            outcomes = await self._carried(call, calling(call.body), call.result)
        except RankBridgeError as error:
            return gang_call.failed(error)
        return await self._completed(gang_call, outcomes)

    async def _carried(self, call: Call[T], message: bytes, read: Callable[[bytes], T]) -> T:
        """Makes a call by a stream. What finds none, or was not begun, is a call of its own.

        Raises:
            RankBridgeError: It failed.
        """
        if self.closed:
            raise call.refused()
        with self._failures(call):
            sent = self._streams.send(call.rank, message)
        if sent is not None:
            try:
                return read(await self._answer_of(call, *sent))
            except UnavailableError as error:
                if error.indefinite:
                    raise
            except ResourceExhaustedError as error:
                if error.operation != REFUSED:
                    raise
                self._streams.refused_by(call.rank)
        return await self.run(call)

    def _stream(self, rank: int) -> AsyncRankStream:
        return self._local.open(rank) or AsyncGrpcStream(self._channels[rank].stream_stream(EXECUTE))

    async def _completed(self, gang_call: Joined[T], outcomes: list[Outcome[T] | None]) -> list[Outcome[T]]:
        fetched = iter(await self._each(gang_call.kept(outcomes)))
        return [next(fetched) if outcome is None else outcome for outcome in outcomes]

    async def _each(self, calls: Sequence[Call[T]]) -> list[Outcome[T]]:
        return await asyncio.gather(*(self._outcome(call) for call in calls))

    async def _outcome(self, call: Call[T]) -> Outcome[T]:
        try:
            message = parting(call)
            if message is None:
                value = await self.run(call)
            else:
                value = await self._carried(call, message, functools.partial(result_of, call))
            return Outcome(rank=call.rank, value=value)
        except RankBridgeError as error:
            return Outcome(rank=call.rank, error=error)

    async def _in_steps(self, steps: Steps[T]) -> T:
        try:
            step = next(steps)
            while True:
                try:
                    answer = await self.run(step)
                except BaseException as error:
                    step = steps.throw(error)
                else:
                    step = steps.send(answer)
        except StopIteration as end:
            result: T = end.value
            return result

    async def _download(self, call: Call[T], stream: Any) -> T:
        reader = call.collector()
        try:
            async for message in stream:
                reader.feed(message)
        except BaseException:
            stream.cancel()
            raise
        return reader.finish()

    @contextlib.contextmanager
    def _failures(self, call: Call[T]) -> Iterator[None]:
        try:
            yield
        except grpc.RpcError as error:
            raise call.failure(error, self._targets[call.rank]) from error
        except asyncio.CancelledError as error:
            # A channel that is closed cancels its calls as if their task had been.
            task = asyncio.current_task()
            if self.closed and not (task is not None and task.cancelling()):
                raise call.cancelled() from error
            raise
