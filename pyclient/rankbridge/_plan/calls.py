"""One call on one rank, before it is sent: what goes out, how the answer is read, no I/O."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, Protocol, TypeVar, overload

import grpc
from google.protobuf.message import DecodeError, Message

from rankbridge._plan.failures import error_from_rpc
from rankbridge.errors import CallCancelledError, ProtocolError, RankBridgeError, UnavailableError
from rankbridge.v1.gang_service_pb2 import ExecuteRequest
from rankbridge.v1.operation_service_pb2 import Operation, RunRequest

T = TypeVar("T")
E = TypeVar("E", bound=RankBridgeError)
T_co = TypeVar("T_co", covariant=True)

MARGIN = 2.0
"""Seconds that the RPC's deadline leaves the rank beyond the call's timeout, so that the rank's own
verdict arrives first."""


class Shape(enum.Enum):
    """Which sides of a call are streams."""

    UNARY = enum.auto()
    UPLOAD = enum.auto()
    DOWNLOAD = enum.auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Transfer(Generic[T]):
    """How a tensor goes by memory that the rank shares with this process, in place of a stream.

    Attributes:
        nbytes: Its size.
        fill: For a put: writes its elements into memory of that size.
        make: Makes the unary call, of the session and the id of the memory.
        answered: Tells of the call's result whether the memory is the rank's from now on, and the tensor's size.
        result: Makes the result of the call's result, and for a get of the memory with the elements.
    """

    nbytes: int
    fill: Callable[[memoryview], None] | None = None
    make: Callable[[str, str], Call[Any]]
    answered: Callable[[Any], tuple[bool, int]]
    result: Callable[[Any, memoryview | None], T]


class Reader(Protocol[T_co]):
    """Collects the messages of a download."""

    def feed(self, message: bytes) -> None:
        """Takes the next message."""

    def finish(self) -> T_co:
        """Gives the result, after the last message."""


@dataclass(frozen=True, kw_only=True)
class Call(Generic[T]):
    """One call on one rank. Whoever sends it needs to know no protobuf.

    Attributes:
        kind: What is called, for example "all_reduce" or "get".
        operation: This rank's part of an operation of a group. None: the call is none.
        gang_call: For a gang call: the request of a stream, with all members' parts.
        path: The RPC's path, for example "/rankbridge.v1.RefService/GetTensor".
        rank: Rank in the gang that is called.
        group: Name of the group, or empty.
        operation_id: Id of the operation, or empty.
        deadline: Longest time until the answer, in seconds.
        wait_for_ready: True: waits for a rank that cannot be reached yet, as long as the deadline allows. False:
            fails as soon as an attempt to connect has failed.
        begun: True: the operation was begun by an earlier call. That this one is not delivered leaves open what
            became of it.
        shape: Which sides are streams.
        brief: True: the rank answers at once, whatever it is doing, so that cancelling the call would change nothing.
        request: The request, serialized. Unused for an operation, a gang call and an upload.
        messages: For an upload: makes the request's messages.
        read: For all but a download: makes the result of the response's bytes, or of the message that a stream brings
            (``OperationResult``, of a gang call ``ExecuteResponse``), or raises its error.
        reader: For a download: makes a collector of the response's messages.
        transfer: How it may be done by shared memory instead.
    """

    kind: str
    operation: Operation | None = None
    gang_call: ExecuteRequest | None = None
    path: str
    rank: int
    group: str = ""
    operation_id: str = ""
    deadline: float
    wait_for_ready: bool = False
    begun: bool = False
    shape: Shape = Shape.UNARY
    brief: bool = False
    request: bytes = b""
    messages: Callable[[], Iterator[bytes]] = lambda: iter(())
    read: Callable[[Any], T] | None = None
    reader: Callable[[], Reader[T]] | None = None
    transfer: Transfer[T] | None = None

    @property
    def body(self) -> bytes:
        """Gives the request of the RPC, serialized."""
        if self.gang_call is not None:
            return self.gang_call.call.SerializeToString()
        if self.operation is None:
            return self.request
        return RunRequest(operation=self.operation).SerializeToString()

    @property
    def rpc_options(self) -> dict[str, Any]:
        """Gives grpcio's options beside the request."""
        return {"timeout": self.deadline, "wait_for_ready": self.wait_for_ready}

    def result(self, response: bytes | Message) -> T:
        """Makes the result of a response.

        Raises:
            RankBridgeError: The response says so, or cannot be understood (``ProtocolError``).
        """
        assert self.read is not None, "a download has a reader"
        result: T = self._understood(self.read, response)
        return result

    def collector(self) -> Reader[T]:
        """Makes a collector of a download's messages, which raises as `result` does."""
        assert self.reader is not None, "only a download has a reader"
        return _Guarded(self, self.reader())

    def failure(self, error: grpc.RpcError, target: str) -> RankBridgeError:
        """Makes the exception of a call that gRPC did not bring to an end.

        Args:
            error: What gRPC raised.
            target: Where the call went.
        """
        # Both of grpcio's fronts raise errors with these two methods; its base class does not declare them.
        status: grpc.StatusCode = error.code()
        return self._status(status, error.details() or "", target)

    def _status(self, status: grpc.StatusCode, details: str, target: str) -> RankBridgeError:
        return error_from_rpc(status, details, target=target, begun=self.begun, **self._named())

    def late(self, target: str) -> RankBridgeError:
        """Makes the exception of a call that was not answered before its deadline, where gRPC keeps none."""
        return self._status(grpc.StatusCode.DEADLINE_EXCEEDED, "no answer before the deadline", target)

    def not_begun(self, target: str) -> UnavailableError:
        """Makes the exception of a call that the rank has not taken from its stream any more."""
        why = f"{target} has ended the stream before it has begun the call"
        return self._error(UnavailableError, why, indefinite=self.begun)

    def lost(self, target: str, why: Exception) -> UnavailableError:
        """Makes the exception of a call whose stream without gRPC has broken."""
        return self._error(UnavailableError, f"{target} has not answered: {why}", indefinite=True)

    def cancelled(self) -> CallCancelledError:
        """Makes the exception of a call whose end the caller did not wait for."""
        return self._error(CallCancelledError, "the caller cancelled", indefinite=True)

    def refused(self) -> CallCancelledError:
        """Makes the exception of a call that was made on a closed gang."""
        return self._error(CallCancelledError, "the gang is closed", indefinite=self.begun)

    def _understood(self, function: Callable[..., Any], *args: object) -> Any:
        try:
            return function(*args)
        except DecodeError as error:
            raise self.misunderstood(ProtocolError(f"the answer is no message: {error}")) from error
        except ProtocolError as error:
            raise self.misunderstood(error) from error

    def misunderstood(self, error: ProtocolError) -> ProtocolError:
        """Makes the exception of a call whose answer was not understood."""
        sides = error.expected, error.got
        return self._error(ProtocolError, error.message, indefinite=True, sides=sides)

    def _error(self, cls: type[E], message: str, *, indefinite: bool, sides: tuple[str, str] = ("", "")) -> E:
        return cls(message, indefinite=indefinite, expected=sides[0], got=sides[1], **self._named())

    def _named(self) -> dict[str, Any]:
        """What errors say of the call."""
        return {
            "rank": self.rank,
            "group": self.group,
            "operation": self.kind,
            "operation_id": self.operation_id,
        }


class Together(Sequence[Call[T]]):
    """The calls of an operation on all members of a group, in group order, which may go as one gang call.

    Attributes:
        first: The first member's.
        ranks: Whom they are for.
        alike: Whether all are like the first, their ranks apart.
    """

    def __init__(self, each: Sequence[Call[T]], ranks: Sequence[int] | None = None) -> None:
        """Holds the calls of members, one at least.

        With `ranks`, the one that is given is the same for all of them: no other is made before it is asked for.
        """
        self.first = each[0]
        self.ranks = [call.rank for call in each] if ranks is None else list(ranks)
        self.alike = ranks is not None
        self._each = each

    @overload
    def __getitem__(self, place: int) -> Call[T]: ...

    @overload
    def __getitem__(self, place: slice) -> Sequence[Call[T]]: ...

    def __getitem__(self, place: int | slice) -> Call[T] | Sequence[Call[T]]:
        """Gives the call of one member, or those of some."""
        if len(self._each) < len(self.ranks):
            self._each = [self.first, *(replace(self.first, rank=rank) for rank in self.ranks[1:])]
        return self._each[place]

    def __len__(self) -> int:
        """Number of members."""
        return len(self.ranks)


class SideBySide(Sequence[Call[Any]]):
    """The calls of several operations, which go out at once. Those of one operation stay ``Together``.

    Attributes:
        parts: The calls of each operation.
    """

    def __init__(self, parts: Iterable[Sequence[Call[Any]]]) -> None:
        """Holds the calls of operations, those of others that are side by side too."""
        self.parts: list[Sequence[Call[Any]]] = []
        for part in parts:
            self.parts.extend(part.parts if isinstance(part, SideBySide) else [part])

    @overload
    def __getitem__(self, place: int) -> Call[Any]: ...

    @overload
    def __getitem__(self, place: slice) -> Sequence[Call[Any]]: ...

    def __getitem__(self, place: int | slice) -> Call[Any] | Sequence[Call[Any]]:
        """Gives one call, or some."""
        return [call for part in self.parts for call in part][place]

    def __len__(self) -> int:
        """Number of calls."""
        return sum(map(len, self.parts))


class _Guarded(Reader[T]):
    def __init__(self, call: Call[T], reader: Reader[T]) -> None:
        self._call = call
        self._reader = reader

    def feed(self, message: bytes) -> None:
        self._call._understood(self._reader.feed, message)

    def finish(self) -> T:
        result: T = self._call._understood(self._reader.finish)
        return result
