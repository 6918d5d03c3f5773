"""The streams by which operations go, for the sync and the async front."""

from __future__ import annotations

import itertools
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from google.protobuf.message import DecodeError

from rankbridge._transport.framing import StreamLost, unasked, withdrawing
from rankbridge.v1 import gang_service_pb2 as gang_pb

_MOST_UNDER_WAY = 192
"""Requests of one stream, and some more if threads send at once. A rank that has 256 reads no further."""


class Awaiting(Protocol):
    """Who waits for the answer to a request. `_stream`: which was asked last; `_number`: under which number."""

    _stream: RankStream | None
    _number: int

    def _come(self, response: gang_pb.ExecuteResponse) -> None:
        """Takes the answer."""

    def _fail(self, error: BaseException) -> None:
        """Takes the reason why there will be none."""


class RankStream(ABC):
    """One stream to a rank, which ends, for good, when it is closed or breaks.

    Each request has a number, and its answer the same number. Answers come in any order.
    """

    def __init__(self) -> None:
        """Nothing is under way."""
        self._answers: dict[int, Awaiting] = {}
        self._numbers = itertools.count(1)
        self._closed = False

    @property
    def closed(self) -> bool:
        """Whether it takes no more requests."""
        return self._closed

    @property
    def under_way(self) -> int:
        """How many requests are not answered yet."""
        return len(self._answers)

    def send(self, request: gang_pb.ExecuteRequest, awaiting: Awaiting) -> bool:
        """Sends a request that is answered. False: it was not sent; the stream is closed or over."""
        if self._closed:
            return False
        number = request.number = awaiting._number = next(self._numbers)
        awaiting._stream = self
        return self._put(request.SerializeToString(), number, awaiting)

    def withdraw(self, operation_id: str, number: int) -> None:
        """Withdraws what was sent wherever it was not admitted. It is answered all the same."""
        self._put(withdrawing(operation_id, number))

    @abstractmethod
    def close(self) -> None:
        """Sends nothing more. What was sent is answered."""

    @abstractmethod
    def _put(self, data: bytes, number: int = 0, awaiting: Awaiting | None = None) -> bool:
        """Writes a request, now or soon. False: `awaiting` was given, and the stream is closed or over."""

    def _answered(self, response: bytes) -> None:
        """Gives an answer to who waits for it.

        Raises:
            RankBridgeError: Nobody does.
            StreamLost: It is no answer.
        """
        try:
            message = gang_pb.ExecuteResponse.FromString(response)
        except DecodeError as error:
            raise StreamLost(f"the answer is no message: {error}") from error
        awaiting = self._answers.pop(message.number, None)
        if awaiting is None:
            raise unasked(message)
        awaiting._come(message)

    def _fail_all(self, error: BaseException) -> None:
        """Tells all who wait that the stream has ended."""
        self._closed = True
        unanswered, self._answers = self._answers, {}
        for awaiting in unanswered.values():
            awaiting._fail(error)


S = TypeVar("S", bound=RankStream)


class Streams(Generic[S]):
    """One stream to each rank that is called; another while that has as many requests as a rank takes. Thread-safe."""

    def __init__(self, opened: Callable[[int], S]) -> None:
        """Opens each when it is needed; `opened` opens one to a rank."""
        self._opened = opened
        self._lock = threading.Lock()
        self._streams: dict[int, tuple[S, ...]] = {}
        self._refusing: set[int] = set()

    def send(self, rank: int, request: gang_pb.ExecuteRequest, awaiting: Awaiting) -> bool:
        """Sends a request. False: the rank refuses streams."""
        if self._sent(rank, request, awaiting):
            return True
        with self._lock:
            if rank in self._refusing:
                return False
            # Another thread may have opened one meanwhile.
            if self._sent(rank, request, awaiting):
                return True
            stream = self._opened(rank)
            others = [it for it in self._streams.get(rank, ()) if not it.closed]
            self._streams[rank] = (*others, stream)
        return stream.send(request, awaiting)

    def refused_by(self, rank: int) -> None:
        """Opens no stream to that rank any more: it has as many as it takes."""
        with self._lock:
            self._refusing.add(rank)

    def close(self) -> None:
        """Ends them all."""
        with self._lock:
            streams = [stream for some in self._streams.values() for stream in some]
            self._streams = {}
        for stream in streams:
            stream.close()

    def _sent(self, rank: int, request: gang_pb.ExecuteRequest, awaiting: Awaiting) -> bool:
        for stream in self._streams.get(rank, ()):
            if stream.under_way < _MOST_UNDER_WAY and stream.send(request, awaiting):
                return True
        return False
