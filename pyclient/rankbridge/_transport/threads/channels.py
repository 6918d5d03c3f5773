"""Sends calls over grpcio's blocking front."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

import grpc
import grpc.experimental

from rankbridge._plan.calls import Call, Shape
from rankbridge._plan.gang_calls import Joined, going_out
from rankbridge._plan.gang_core import all_values
from rankbridge._transport.channels import ChannelsCore
from rankbridge._transport.local import LocalStreams
from rankbridge._transport.pending import meaning
from rankbridge._transport.shared_memory import SharedMemory, Steps
from rankbridge._transport.streams import RankStream
from rankbridge._transport.threads.grpc_stream import GrpcStream
from rankbridge._transport.threads.local_stream import LocalStream
from rankbridge._transport.threads.pending import Pending
from rankbridge._transport.threads.steps import InSteps
from rankbridge._transport.threads.uninterrupted import Uninterrupted
from rankbridge.errors import Outcome

T = TypeVar("T")

# Who reads a stream of responses waits for them in grpcio itself, so that it starts no thread for each.
_OPTIONS = ((grpc.experimental.ChannelOptions.SingleThreadedUnaryStream, 1),)

_MOST_BRIEF = 16
"""Calls that wait at once in threads of their own, which are kept."""


class Channels(ChannelsCore):
    """``ChannelsCore`` for callers that block.

    Attributes:
        uninterrupted: Threads that enter grpcio for the main thread.
    """

    def __init__(
        self,
        targets: Sequence[str],
        tls: grpc.ChannelCredentials | None,
        shared: SharedMemory | None = None,
        token: str | None = None,
    ) -> None:
        """Makes the channels; nothing is connected before the first call. As ``ChannelsCore``."""
        super().__init__(grpc, targets, tls, shared, token, _OPTIONS)
        self._local = LocalStreams(self._local_targets, LocalStream)
        self.uninterrupted = Uninterrupted()

    def run(self, call: Call[T]) -> T:
        """Sends a call and waits for its end. What interrupts the waiting cancels the call.

        Raises:
            RankBridgeError: It failed.
        """
        steps = self._steps(call)
        if steps is not None:
            return self.uninterrupted.safely(steps.run, steps.cancel)
        pending = self._made_for(call)
        try:
            self._begin([pending])
            return pending.result()
        except BaseException:
            pending.cancel()
            raise

    def start(self, call: Call[T]) -> Pending[T]:
        """Sends a call and returns at once. What interrupts that cancels the call.

        Raises:
            CallCancelledError: The gang is closed.
        """
        pending = self._made_for(call)
        try:
            self._begin([pending])
        except BaseException:
            pending.cancel()
            raise
        return pending

    def stream(self, call: Call[T]) -> Any:
        """Sends a call whose responses are read with `read` for as long as they come, and returns at once.

        Raises:
            CallCancelledError: The gang is closed.
        """
        with self.failures(call):
            return self.callable(call)(call.body)

    def read(self, call: Call[T], stream: Any) -> Iterator[T]:
        """Gives what each response of a stream says, as it comes. ``stream.cancel()`` ends it.

        Raises:
            RankBridgeError: A response says so, or the stream broke.
        """
        with self.failures(call):
            for message in stream:
                yield call.result(message)

    def outcomes(self, calls: Sequence[Call[T]]) -> list[Outcome[T]]:
        """Sends calls, all at once, or as one gang call, and waits for every one's end."""
        rounds = going_out(calls)
        try:
            answered = self._each(next(rounds))
            while True:
                answered = self._each(rounds.send(answered))
        except StopIteration as end:
            outcomes: list[Outcome[T]] = end.value
            return outcomes

    def answered(self, gang_call: Joined[T], pending: Pending[Any]) -> list[Outcome[T]]:
        """Waits for the answer to a gang call that was sent; gives every member's outcome."""
        try:
            members = gang_call.members(pending.outcome())
        except BaseException:
            pending._withdraw()
            raise
        fetched = iter(self._each(gang_call.kept(members)))
        return [next(fetched) if it is None else it for it in members]

    def send_by(self, stream: RankStream | None, call: Call[T]) -> Pending[T]:
        """Sends a gang call by a stream of the caller's own, or by a new one where there is none, or it is over.

        Raises:
            CallCancelledError: The gang is closed.
        """
        pending = self._made_for(call, ordered=True)
        with self.failures(call):
            while stream is None or not pending._send_by(stream):
                stream = self._stream(call.rank)
        return pending

    def run_all(self, calls: Sequence[Call[T]]) -> list[T]:
        """Sends calls, all at once, waits for every one's end, and gives their results.

        Raises:
            GangError: Some failed.
        """
        return all_values(self.outcomes(calls))

    def close(self) -> None:
        """Closes the channels. Calls in flight fail with ``CallCancelledError``."""
        self.closed = True
        self.streams.close()
        self._local.close()
        self.uninterrupted.safely(self._close_channels)
        self.uninterrupted.close()
        if self.shared is not None:
            self.shared.close()

    @contextlib.contextmanager
    def failures(self, call: Call[T]) -> Iterator[None]:
        """Raises what a call raises in place of what grpcio does."""
        try:
            yield
        except BaseException as error:
            meant = meaning(self, call, error)
            if meant is error:
                raise
            raise meant from error

    def _made_for(self, call: Call[T], *, ordered: bool = False) -> Pending[T]:
        if self.closed:
            raise call.refused()
        return Pending(self, call, ordered=ordered)

    def _each(self, calls: Sequence[Call[T]]) -> list[Outcome[T]]:
        pendings = [Pending(self, call) for call in calls]
        try:
            self._begin(pendings)
            return [it.outcome() for it in pendings]
        except BaseException:
            for it in pendings:
                it.cancel()
            raise

    def _begin(self, pendings: Sequence[Pending[Any]]) -> None:
        alone: list[Pending[Any]] = []
        brief: list[Pending[Any]] = []
        for it in pendings:
            if it._begin():
                continue
            steps = self._steps(it._call)
            if steps is None:
                (brief if it._call.brief and len(brief) < _MOST_BRIEF else alone).append(it)
            else:
                it._carry(steps)
        for it in brief:
            self.uninterrupted.begin(it._wait_alone)
        if alone:
            self.uninterrupted.safely(lambda: _go_alone(alone))

    def _steps(self, call: Call[T]) -> InSteps[T] | None:
        """Gives the calls that a call is made as. None: it is one."""
        if self.shared is not None and self.shared.takes(call):
            return InSteps(self, self.shared.steps(call))
        return InSteps(self, _one(call)) if call.shape is Shape.DOWNLOAD else None

    def _stream(self, rank: int) -> RankStream:
        # An interruption halfway would leave a connection that nobody knows.
        local = self.uninterrupted.safely(lambda: self._local.open(rank))
        return local or GrpcStream(self._executing(rank))

    def _close_channels(self) -> None:
        for channel in self._channels:
            channel.close()


def _go_alone(pendings: Sequence[Pending[Any]]) -> None:
    for it in pendings:
        it._go_alone()


def _one(call: Call[T]) -> Steps[T]:
    answer: T = yield call
    return answer
