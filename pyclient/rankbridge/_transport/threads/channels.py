"""Sends calls over grpcio's blocking front."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

import grpc

from rankbridge._plan.calls import Call, Shape, SideBySide
from rankbridge._plan.gang_calls import Joined, joined
from rankbridge._plan.gang_core import all_values
from rankbridge._transport.framing import EXECUTE, StreamLost, StreamOver, calling, parting
from rankbridge._transport.shared_memory import SharedMemory, Steps
from rankbridge._transport.streams import REFUSED, Streams
from rankbridge._transport.targets import CHANNEL_OPTIONS
from rankbridge._transport.threads.grpc_stream import GrpcStream
from rankbridge._transport.threads.local_stream import LocalStreams
from rankbridge._transport.threads.parts import SentPart
from rankbridge._transport.threads.pending import Pending
from rankbridge._transport.threads.steps import AtOnce, InSteps
from rankbridge._transport.threads.stream import Answer, RankStream
from rankbridge._transport.threads.uninterrupted import Result, Uninterrupted
from rankbridge.errors import Outcome, RankBridgeError, ResourceExhaustedError, UnavailableError

T = TypeVar("T")

__all__ = ["Channels"]


class Channels:
    """One channel to each rank.

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
        self._tls = tls
        self._channels = [self._made(target) for target in targets]
        self._callables: dict[tuple[int, str], Any] = {}
        self._streams: Streams[RankStream, Answer] = Streams(self._stream)
        # What speaks TLS is asked by gRPC alone.
        self._local = LocalStreams(() if tls is not None else self._targets)
        self._uninterrupted = Uninterrupted()
        self.closed = False

    def run(self, call: Call[T]) -> T:
        """Sends a call and waits for its end. What interrupts the waiting cancels the call.

        Raises:
            RankBridgeError: It failed.
        """
        if self.closed:
            raise call.refused()
        steps = self._steps(call)
        return self._uninterrupted.safely(steps.run, steps.cancel)

    def start(self, call: Call[T]) -> Pending[T]:
        """Sends a call and returns at once.

        Raises:
            CallCancelledError: The gang is closed.
        """
        return self._uninterrupted.safely(lambda: self._start(call))

    def _steps(self, call: Call[T]) -> InSteps[T]:
        shared = self._sharing(call)
        return InSteps(self, _one(call) if shared is None else shared.steps(call))

    def _sharing(self, call: Call[T]) -> SharedMemory | None:
        """The memory by which a call's tensor goes. None: it goes by gRPC."""
        return self.shared if self.shared is not None and self.shared.takes(call) else None

    def _start(self, call: Call[T]) -> Pending[T]:
        """Sends a call from a thread that no signal interrupts."""
        send = self._callable(call)
        safely = self._uninterrupted.safely
        if call.shape is Shape.DOWNLOAD or self._sharing(call) is not None:
            steps = self._steps(call)
            carried = self._uninterrupted.begin(steps.run)
            return Pending(
                call, carried, lambda timeout: _wait(carried, timeout), lambda: safely(steps.cancel)
            )
        with self._failures(call):
            request = call.messages() if call.shape is Shape.UPLOAD else call.body
            reply = send.future(request, **call.rpc_options)
        return Pending(
            call,
            reply,
            lambda timeout: safely(lambda: self._reply(call, reply, timeout)),
            lambda: safely(reply.cancel),
        )

    def stream(self, call: Call[T]) -> Any:
        """Sends a call whose responses are read with `read` for as long as they come, and returns at once.

        Raises:
            CallCancelledError: The gang is closed.
        """
        with self._failures(call):
            return self._callable(call)(call.body)

    def read(self, call: Call[T], stream: Any) -> Iterator[T]:
        """Gives what each response of a stream says, as it comes. ``stream.cancel()`` ends it.

        Raises:
            RankBridgeError: A response says so, or the stream broke.
        """
        with self._failures(call):
            for message in stream:
                yield call.result(message)

    def outcomes(self, calls: Sequence[Call[T]]) -> list[Outcome[T]]:
        """Sends calls, all at once, or as one gang call, and waits for every one's end."""
        if isinstance(calls, SideBySide):
            return self._side_by_side(calls.parts)
        gang_call = joined(calls)
        return self._each(calls) if gang_call is None else self._all([gang_call])[0][0]

    def answered(self, gang_call: Joined[T], stream: RankStream, answer: Answer) -> list[Outcome[T]]:
        """Waits for the answer to a gang call that was sent; gives every member's outcome."""
        call = gang_call.call
        try:
            outcomes = call.result(self._answer_of(call, stream, answer))
        except RankBridgeError as error:
            return gang_call.failed(error)
        return self._completed(gang_call, outcomes)

    def send_by(self, stream: RankStream | None, call: Call[T]) -> tuple[RankStream, Answer]:
        """Sends a gang call by a stream of the caller's own, or by a new one where there is none, or it is over.

        Raises:
            CallCancelledError: The gang is closed.
        """
        if self.closed:
            raise call.refused()
        with self._failures(call):
            message = calling(call.body)
            answer = stream.send(message) if stream is not None else None
            while stream is None or answer is None:
                stream = self._stream(call.rank)
                answer = stream.send(message)
            return stream, answer

    def _side_by_side(self, parts: Sequence[Sequence[Call[Any]]]) -> list[Outcome[Any]]:
        wholes = [joined(part) for part in parts]
        alone = [call for part, whole in zip(parts, wholes, strict=True) if whole is None for call in part]
        as_one, each = self._all([whole for whole in wholes if whole is not None], alone)
        ones, others = iter(as_one), iter(each)
        return [
            outcome
            for part, whole in zip(parts, wholes, strict=True)
            for outcome in (itertools.islice(others, len(part)) if whole is None else next(ones))
        ]

    def _all(
        self, gang_calls: Sequence[Joined[T]], alone: Sequence[Call[T]] = ()
    ) -> tuple[list[list[Outcome[T]]], list[Outcome[T]]]:
        """Sends gang calls and calls of their own, all at once; waits for every one's end, and gives the outcomes."""
        waiting = list(gang_calls)
        as_one: list[list[Outcome[T]]] = []
        try:
            sent = [self._sent(gang_call) for gang_call in gang_calls]
            each = self._each(alone) if alone else []
            for gang_call, stream in zip(gang_calls, sent, strict=True):
                if isinstance(stream, tuple):
                    # Whoever is interrupted waiting for its answer has withdrawn it.
                    waiting.remove(gang_call)
                as_one.append(self._ended(gang_call, stream))
        except BaseException:
            for gang_call in waiting:
                self._streams.withdraw(gang_call.call.rank, gang_call.call.operation_id)
            raise
        return as_one, each

    def _sent(self, gang_call: Joined[T]) -> tuple[RankStream, Answer] | RankBridgeError | None:
        """Sends a gang call by a stream; gives why it cannot be sent. None: there is no stream for it."""
        try:
            return self._by_stream(gang_call.call, calling(gang_call.call.request))
        except RankBridgeError as error:
            return error

    def _ended(
        self, gang_call: Joined[T], sent: tuple[RankStream, Answer] | RankBridgeError | None
    ) -> list[Outcome[T]]:
        """Waits for the end of a gang call that was sent, or is a call of its own."""
        call = gang_call.call
        if isinstance(sent, RankBridgeError):
            return gang_call.failed(sent)
        try:
            outcomes = self._carried(call, *sent) if sent else self.run(call)
        except RankBridgeError as error:
            return gang_call.failed(error)
        return self._completed(gang_call, outcomes)

    def _by_stream(self, call: Call[T], message: bytes) -> tuple[RankStream, Answer] | None:
        """Sends a call by a stream; gives its answer to come. None: there is no stream for it.

        A stream takes it to a rank and back in little more than half the time that a call of its own takes.
        """
        if self.closed:
            raise call.refused()
        return self._streams.send(call.rank, message)

    def _carried(self, call: Call[T], stream: RankStream, answer: Answer) -> T:
        """Waits for what was sent by a stream. What was not begun is a call of its own.

        Raises:
            RankBridgeError: It failed.
        """
        try:
            return call.result(self._answer_of(call, stream, answer))
        except RankBridgeError as error:
            if not self._was_not_begun(call, error):
                raise
        return self.run(call)

    def _answer_of(self, call: Call[T], stream: RankStream, answer: Answer) -> bytes:
        """Waits for the answer to a call, until its deadline. What interrupts the waiting withdraws the call.

        Raises:
            RankBridgeError: There is none.
        """
        try:
            return answer.wait(call.deadline)
        except TimeoutError:
            stream.withdraw(call.operation_id)
            raise call.late(self._targets[call.rank]) from None
        except BaseException as error:
            if not isinstance(error, StreamOver | StreamLost):
                stream.withdraw(call.operation_id)
            told = self._meaning(call, error)
            if told is error:
                raise
            raise told from error

    def _was_not_begun(self, call: Call[T], error: RankBridgeError) -> bool:
        """Says whether a stream's failure is none of a call by itself: the call may go that way."""
        if isinstance(error, UnavailableError):
            # A rank that was replaced may be found by a call of its own.
            return not error.indefinite
        refused = isinstance(error, ResourceExhaustedError) and error.operation == REFUSED
        if refused:
            self._streams.refused_by(call.rank)
        return refused

    def _completed(self, gang_call: Joined[T], outcomes: list[Outcome[T] | None]) -> list[Outcome[T]]:
        kept = gang_call.kept(outcomes)
        fetched = iter(self._each(kept) if kept else ())
        return [next(fetched) if outcome is None else outcome for outcome in outcomes]

    def _stream(self, rank: int) -> RankStream:
        # An interruption halfway would leave a connection that nobody knows.
        local = self._uninterrupted.safely(lambda: self._local.open(rank))
        return local or GrpcStream(self._channels[rank].stream_stream(EXECUTE))

    def _made(self, target: str) -> grpc.Channel:
        if self._tls is None:
            return grpc.insecure_channel(target, CHANNEL_OPTIONS)
        return grpc.secure_channel(target, self._tls, CHANNEL_OPTIONS)

    def _each(self, calls: Sequence[Call[T]]) -> list[Outcome[T]]:
        parts: dict[int, SentPart[T]] = {}
        alone: dict[int, Call[T]] = {}
        try:
            for place, call in enumerate(calls):
                message = parting(call)
                sent = None if message is None else self._by_stream(call, message)
                if sent is None:
                    alone[place] = call
                else:
                    parts[place] = SentPart(self, call, *sent)
            others = AtOnce(self, list(alone.values()))
            told = dict(
                zip(
                    alone, self._uninterrupted.safely(others.run, others.cancel) if alone else (), strict=True
                )
            )
            told.update((place, it.outcome()) for place, it in parts.items())
        except BaseException:
            for place, call in enumerate(calls):
                if place in parts:
                    parts[place].cancel()
                elif call.operation_id:
                    self._streams.withdraw(call.rank, call.operation_id)
            raise
        return [told[place] for place in range(len(calls))]

    def run_all(self, calls: Sequence[Call[T]]) -> list[T]:
        """Sends calls, all at once, waits for every one's end, and gives their results.

        Raises:
            GangError: Some failed.
        """
        return all_values(self.outcomes(calls))

    def close(self) -> None:
        """Closes the channels. Calls in flight fail with ``CallCancelledError``."""
        self.closed = True
        self._streams.close()
        self._local.close()
        self._uninterrupted.safely(self._close_channels)
        self._uninterrupted.close()
        if self.shared is not None:
            self.shared.close()

    def _close_channels(self) -> None:
        for channel in self._channels:
            channel.close()

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

    @contextlib.contextmanager
    def _failures(self, call: Call[T]) -> Iterator[None]:
        try:
            yield
        except BaseException as error:
            told = self._meaning(call, error)
            if told is error:
                raise
            raise told from error

    def _meaning(self, call: Call[T], error: BaseException) -> BaseException:
        """Gives what a call raises where grpcio, or a stream, raises this."""
        match error:
            case RankBridgeError():
                return error
            case grpc.RpcError():
                return call.failure(error, self._targets[call.rank])
            case grpc.FutureCancelledError():
                return call.cancelled()
            case grpc.FutureTimeoutError():
                return TimeoutError(f"{call.kind} at rank {call.rank} has not ended yet")
            case StreamOver():
                return call.not_begun(self._targets[call.rank])
            case StreamLost():
                return call.cancelled() if self.closed else call.lost(self._targets[call.rank], error)
            # What grpcio says to a call on a channel that was closed in the meantime.
            case ValueError() if self.closed:
                return call.refused()
        return error


def _wait(carried: Result[T], timeout: float | None) -> T:
    try:
        return carried.wait(timeout)
    except TimeoutError as error:
        # Also what a fetch raises whose own deadline passed.
        if carried.done():
            raise
        raise TimeoutError("the fetch has not ended yet") from error


def _one(call: Call[T]) -> Steps[T]:
    answer: T = yield call
    return answer
