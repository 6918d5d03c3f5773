"""Sends calls over grpcio's asyncio front."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any, TypeVar

import grpc
import grpc.aio

from rankbridge._plan.calls import Call, Shape
from rankbridge._plan.gang_calls import Joined, going_out
from rankbridge._plan.gang_core import all_values
from rankbridge._transport.aio.grpc_stream import AsyncGrpcStream
from rankbridge._transport.aio.local_stream import AsyncLocalStream
from rankbridge._transport.aio.pending import AsyncPending
from rankbridge._transport.channels import ChannelsCore
from rankbridge._transport.local import LocalStreams
from rankbridge._transport.shared_memory import SharedMemory, Steps
from rankbridge._transport.streams import RankStream
from rankbridge.errors import Outcome

T = TypeVar("T")


class AsyncChannels(ChannelsCore):
    """``ChannelsCore`` for asyncio. Made and used in one event loop."""

    def __init__(
        self,
        targets: Sequence[str],
        tls: grpc.ChannelCredentials | None,
        shared: SharedMemory | None = None,
    ) -> None:
        """Makes the channels; nothing is connected before the first call. `shared`: memory for large tensors."""
        super().__init__(grpc.aio, targets, tls, shared)
        self._local = LocalStreams(self._local_targets, AsyncLocalStream)

    async def run(self, call: Call[T]) -> T:
        """Sends a call and waits for its end. Cancelling who waits cancels the call.

        Raises:
            RankBridgeError: It failed.
        """
        pending = AsyncPending(self, call)
        if not pending._begin():
            return await self.alone(call)
        try:
            return await pending.result()
        except BaseException:
            pending.cancel()
            raise

    def start(self, call: Call[T]) -> AsyncPending[T]:
        """Sends a call and returns at once.

        Raises:
            CallCancelledError: The gang is closed.
        """
        if self.closed:
            raise call.refused()
        return self._begun(call)

    async def alone(self, call: Call[T]) -> T:
        """Makes a call by its own RPC. Cancelling who waits cancels the call."""
        send = self.callable(call)
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

    def stream(self, call: Call[T]) -> Any:
        """As ``Channels.stream``."""
        return self.callable(call)(call.body)

    async def read(self, call: Call[T], stream: Any) -> AsyncIterator[T]:
        """As ``Channels.read``."""
        with self._failures(call):
            async for message in stream:
                yield call.result(message)

    async def outcomes(self, calls: Sequence[Call[T]]) -> list[Outcome[T]]:
        """Sends calls, all at once, or as one gang call, and waits for every one's end."""
        rounds = going_out(calls)
        try:
            answered = await self._each(next(rounds))
            while True:
                answered = await self._each(rounds.send(answered))
        except StopIteration as end:
            outcomes: list[Outcome[T]] = end.value
            return outcomes

    async def answered(self, gang_call: Joined[T], pending: AsyncPending[Any]) -> list[Outcome[T]]:
        """As ``Channels.answered``. Cancelling who waits withdraws the call."""
        try:
            members = gang_call.members(await pending.outcome())
        except BaseException:
            pending._withdraw()
            raise
        fetched = iter(await self._each(gang_call.kept(members)))
        return [next(fetched) if it is None else it for it in members]

    def send_by(self, stream: RankStream | None, call: Call[T]) -> AsyncPending[T]:
        """As ``Channels.send_by``."""
        if self.closed:
            raise call.refused()
        pending = AsyncPending(self, call, ordered=True)
        while stream is None or not pending._send_by(stream):
            stream = self._stream(call.rank)
        return pending

    async def run_all(self, calls: Sequence[Call[T]]) -> list[T]:
        """Sends calls, all at once, waits for every one's end, and gives their results.

        Raises:
            GangError: Some failed.
        """
        return all_values(await self.outcomes(calls))

    async def close(self) -> None:
        """Closes the channels. Calls in flight fail with ``CallCancelledError``."""
        self.closed = True
        self.streams.close()
        self._local.close()
        for channel in self._channels:
            await channel.close()
        if self.shared is not None:
            self.shared.close()

    def _stream(self, rank: int) -> RankStream:
        return self._local.open(rank) or AsyncGrpcStream(self._executing(rank))

    def _begun(self, call: Call[T]) -> AsyncPending[T]:
        pending = AsyncPending(self, call)
        if not pending._begin():
            pending._go_alone()
        return pending

    async def _each(self, calls: Sequence[Call[T]]) -> list[Outcome[T]]:
        pendings = [self._begun(call) for call in calls]
        try:
            return [await it.outcome() for it in pendings]
        except BaseException:
            for it in pendings:
                it.cancel()
            raise

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
            raise call.failure(error, self.targets[call.rank]) from error
        except asyncio.CancelledError as error:
            # A channel that is closed cancels its calls as if their task had been.
            task = asyncio.current_task()
            if self.closed and not (task is not None and task.cancelling()):
                raise call.cancelled() from error
            raise
