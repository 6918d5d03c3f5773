"""How an operation is declared, and what the declarations share."""

from __future__ import annotations

import difflib
import functools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, ParamSpec, TypedDict, TypeVar

from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from rankbridge._plan.call_site import call_site
from rankbridge._plan.calls import MARGIN, Call
from rankbridge._plan.failures import error_from_wire
from rankbridge._plan.groups import Group
from rankbridge._plan.traces import traceparent
from rankbridge.errors import InvalidArgumentError, ProtocolError, RankOutOfRangeError
from rankbridge.v1 import call_pb2
from rankbridge.v1.operation_service_pb2 import Operation, OperationResult

P = ParamSpec("P")
T = TypeVar("T")

KINDS = frozenset(Operation.DESCRIPTOR.fields_by_name)
"""Names of the operations that have parts: the fields of an `Operation`."""

OPERATIONS: dict[str, Callable[..., Call[Any]]] = {}
"""Every operation by name."""


class MemberOptions(TypedDict, total=False):
    """What every operation of a group takes beside its own arguments and the group.

    Attributes:
        timeout: Longest time from arrival to answer, in seconds. None or not given: the gang's default.
        operation_id: Id of the operation, the same on every rank, never used for another operation; a
            repeated one gets the first call's outcome. None or not given: a fresh one for a call of the gang,
            none for a call of one rank.
        generation: Generation that is meant. 0 or not given: the current one.
    """

    timeout: float | None
    operation_id: str | None
    generation: int


Calls = Literal["gang", "ranks"]
"""How a gang is called: one call of one rank, which passes it on; or one call of each rank."""


class CallOptions(MemberOptions, total=False):
    """`MemberOptions`, and the group.

    Attributes:
        group: The group, or its name. "world" if not given.
        calls: Of calls of a gang: "gang" or "ranks", in place of the one given to ``connect``.
    """

    group: str | Group
    calls: Calls


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Where and for whom a call is made.

    Attributes:
        rank: Rank in the gang that is called.
        session_id: Session that owns what the call makes. A call that uses a ref is made in the ref's
            session.
        timeout: Default timeout in seconds.
    """

    rank: int
    session_id: str
    timeout: float


def operation(function: Callable[P, Call[T]]) -> Callable[P, Call[T]]:
    """Enters an operation into the table under its name."""
    OPERATIONS[function.__name__] = function
    return function


def find_operation(name: str) -> Callable[..., Call[Any]]:
    """Finds an operation by its name.

    Raises:
        InvalidArgumentError: There is none.
    """
    if name not in OPERATIONS:
        raise InvalidArgumentError(
            "there is no such operation", expected=f"one of {', '.join(OPERATIONS)}", got=repr(name)
        )
    return OPERATIONS[name]


def group_name(group: str | Group) -> str:
    """Gives the name of a group, or of one named."""
    return group.name if isinstance(group, Group) else group


def path_of(method: str) -> str:
    """Gives the path of an RPC: of "RefService/GetTensor", for example."""
    return f"/rankbridge.v1.{method}"


_RUN = path_of("OperationService/Run")
"""Where an operation of any kind goes that goes by no stream. Its response is written as an ``OperationResult``."""

Reading = Callable[[Callable[[Any], T]], Callable[[Any], T]]
"""Makes the reader of a response, of what converts its value."""


@functools.cache
def rpc_of(request: Any) -> tuple[str, Reading[Any]]:
    """Gives the path of the RPC that takes a request, by its descriptor, and how its response is read."""
    for service in request.file.services_by_name.values():
        for rpc in service.methods:
            if rpc.input_type.full_name == request.full_name:
                reading = outcome_of if "outcome" in rpc.output_type.oneofs_by_name else _whole_of
                response = GetMessageClass(rpc.output_type)
                return path_of(f"{service.name}/{rpc.name}"), functools.partial(reading, response)
    raise LookupError(f"{request.name} has no RPC")


def plain_call(
    scope: Scope,
    kind: str,
    request: Message,
    convert: Callable[[Any], T],
    *,
    timeout: float | None = None,
    group: str = "",
    brief: bool = False,
) -> Call[T]:
    """Declares the unary call of a request that belongs to no group's order. Its deadline is the timeout itself.

    `convert` makes the result of the response's value; of a response without a oneof "outcome", of all of it.
    `brief`: as of `Call`.
    """
    path, reading = rpc_of(request.DESCRIPTOR)
    return Call(
        kind=kind,
        path=path,
        rank=scope.rank,
        group=group,
        deadline=timeout_of(scope, timeout),
        brief=brief,
        request=request.SerializeToString(),
        read=reading(convert),
    )


def group_call(scope: Scope, kind: str, request: Any, convert: Callable[[Any], T]) -> Call[T]:
    """Declares the unary call of a request that carries a `Call`; `convert` is as of `plain_call`."""
    return member_call(scope, kind, request, reading_of(kind, request.DESCRIPTOR)(convert))


def reading_of(kind: str, request: Any) -> Reading[Any]:
    """Gives how the response to a request is read: of any operation as the ``OperationResult`` that a stream has."""
    return functools.partial(outcome_of, OperationResult) if kind in KINDS else rpc_of(request)[1]


def member_call(scope: Scope, kind: str, request: Any, read: Callable[[Any], T]) -> Call[T]:
    """Makes the call of a request that carries a `Call`. Its deadline leaves a margin for the rank's verdict."""
    call: call_pb2.Call = request.call
    operation = Operation(**{kind: request}) if kind in KINDS else None
    path = _RUN if operation is not None else rpc_of(request.DESCRIPTOR)[0]
    return Call(
        kind=kind,
        operation=operation,
        path=path,
        rank=scope.rank,
        group=call.group,
        operation_id=call.operation_id,
        deadline=call.timeout_ms / 1000 + MARGIN,
        request=request.SerializeToString() if operation is None else b"",
        read=read,
    )


def options_of(
    scope: Scope,
    session_id: str,
    kind: str,
    *,
    group: str | Group = "world",
    timeout: float | None = None,
    operation_id: str | None = None,
    generation: int = 0,
    calls: Calls | None = None,
    **unknown: object,
) -> call_pb2.Call:
    """Writes what every operation of a group carries. `session_id` owns the refs that it uses and makes.

    Raises:
        InvalidArgumentError: `calls` is given, which is for a gang; or the timeout is none.
        TypeError: The operation has no such option.
    """
    for name in unknown:
        raise TypeError(f"`{kind}` has no option `{name}`{_meant(kind, name)}")
    if calls is not None:
        raise InvalidArgumentError(
            "one rank is called in one way", expected="`calls` of a gang's methods", got=repr(calls)
        )
    return call_pb2.Call(
        group=group_name(group),
        operation_id=operation_id or "",
        timeout_ms=milliseconds(timeout_of(scope, timeout)),
        session_id=session_id,
        generation=generation,
        traceparent=traceparent(),
        site=call_site(),
    )


def _meant(kind: str, name: str) -> str:
    field = Operation.DESCRIPTOR.fields_by_name.get(kind)
    fields = field.message_type.fields if field is not None and field.message_type is not None else ()
    own = [it.name for it in fields if it.name not in ("call", "ref_id")]
    known = [*own, *MemberOptions.__annotations__, *CallOptions.__annotations__]
    near = [it for it in known if it.startswith(name)] or difflib.get_close_matches(name, known, 1)
    return f"; did you mean `{near[0]}`?" if near else ""


def timeout_of(scope: Scope, timeout: float | None) -> float:
    """Gives a timeout in seconds: the one given, else the scope's.

    Raises:
        InvalidArgumentError: It is not more than 0, or more than fits on the wire.
    """
    seconds = scope.timeout if timeout is None else timeout
    if not isinstance(seconds, (int, float)) or not (0 < seconds < 2**32 / 1000):
        raise InvalidArgumentError(
            "a timeout is more than 0 and finite", expected="seconds, below 4,294,967", got=repr(seconds)
        )
    return seconds


def milliseconds(seconds: float) -> int:
    """Gives a timeout as it is written, 1 or more: 0 would mean the rank's default."""
    return max(1, math.floor(seconds * 1000))


def checked_rank(name: str, rank: int) -> int:
    """Gives a rank that fits on the wire; whether it is one of the gang or group, the ranks decide.

    Raises:
        RankOutOfRangeError: It is negative or absurd.
    """
    if not 0 <= rank < 2**32:
        raise RankOutOfRangeError(f"{name} is no rank", expected="0 or more", got=str(rank))
    return rank


def checked_sizes(name: str, sizes: Iterable[int] | None) -> Sequence[int]:
    """Gives sizes that fit on the wire, none for None; whether they fit the group and its tensors, the ranks decide.

    Raises:
        InvalidArgumentError: There are none, or one is negative or absurd.
    """
    if sizes is None:
        return ()
    listed = list(sizes)
    if not listed:
        raise InvalidArgumentError(f"{name} do not fit the group", expected="one for each member", got="none")
    if not all(0 <= size < 2**63 for size in listed):
        raise InvalidArgumentError(
            f"{name} do not fit the group", expected="0 or more for each member", got=str(listed)
        )
    return listed


def outcome_of(response: type[Message], convert: Callable[[Any], T]) -> Callable[[Any], T]:
    """Makes the reader of a response that is a oneof of a value and an error, serialized or as a message.

    The reader raises the error, ``ProtocolError`` if nothing is set, and ``DecodeError`` if it is no message.
    """

    def read(data: Any) -> T:
        message: Any = response.FromString(data) if isinstance(data, bytes) else data
        match message.WhichOneof("outcome"):
            case None:
                raise ProtocolError(f"{response.DESCRIPTOR.name} with nothing set", expected="an outcome")
            case "error":
                raise error_from_wire(message.error)
            case field:
                return convert(getattr(message, field))

    return read


def _whole_of(response: type[Message], convert: Callable[[Any], T]) -> Callable[[bytes], T]:
    return lambda data: convert(response.FromString(data))
