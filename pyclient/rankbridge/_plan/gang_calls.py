"""Gang calls: the calls of all members as one call of one rank. No I/O."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from rankbridge._plan.calls import Call, SideBySide, Together
from rankbridge._plan.failures import error_from_wire
from rankbridge._plan.operations.declare import KINDS, path_of
from rankbridge._plan.operations.shares import FirstArgument, given
from rankbridge.errors import InvalidArgumentError, Outcome, ProtocolError, RankBridgeError
from rankbridge.v1 import gang_service_pb2 as gang_pb, operation_service_pb2 as operation_pb

T = TypeVar("T")

MAX_PART = 60_000
"""Bytes of a member's part that goes by another rank. The ranks take a little more."""

_GANG_KINDS = {kind for kind in KINDS if given(kind) is not FirstArgument.NEVER}
_AWAIT = path_of("OperationService/Await")
_CALL = path_of("GangService/Call")


@dataclass(frozen=True, slots=True)
class Joined(Generic[T]):
    """A gang call, and the calls that it stands for.

    Attributes:
        call: It, to the group's first rank.
        each: What it stands for, in group order.
    """

    call: Call[list[Outcome[T] | None]]
    each: Together[T]

    def members(self, outcome: Outcome[list[Outcome[T] | None]]) -> list[Outcome[T] | None]:
        """Gives each member's outcome, of that of the gang call. None: it is too large to be passed on."""
        if outcome.value is None:
            return [Outcome(rank=rank, error=outcome.error) for rank in self.each.ranks]
        return outcome.value

    def kept(self, members: Sequence[Outcome[T] | None]) -> list[Call[T]]:
        """Makes the calls for outcomes that are too large to be passed on; each is on its rank."""
        # Asking for what each is makes it.
        return [self._await(self.each[place]) for place, it in enumerate(members) if it is None]

    def _await(self, call: Call[T]) -> Call[T]:
        request = operation_pb.AwaitRequest(operation_id=call.operation_id)
        # The response of `Await` is written as that of any operation.
        return replace(call, operation=None, path=_AWAIT, request=request.SerializeToString(), begun=True)


def going_out(
    calls: Sequence[Call[T]],
) -> Generator[Sequence[Call[Any]], list[Outcome[Any]], list[Outcome[T]]]:
    """Yields what goes out at once in place of calls, where it can gang calls, and gets its outcomes.

    Returns:
        The outcome of each call.
    """
    parts = calls.parts if isinstance(calls, SideBySide) else [calls]
    wholes = [joined(part) for part in parts]
    together = zip(parts, wholes, strict=True)
    answers = iter(
        (yield [call for part, whole in together for call in (part if whole is None else (whole.call,))])
    )
    outcomes: list[Outcome[T] | None] = []
    kept: list[Call[T]] = []
    for part, whole in zip(parts, wholes, strict=True):
        if whole is None:
            outcomes.extend(itertools.islice(answers, len(part)))
        else:
            members = whole.members(next(answers))
            outcomes.extend(members)
            kept.extend(whole.kept(members))
    fetched = iter((yield kept) if kept else ())
    return [next(fetched) if it is None else it for it in outcomes]


def joined(calls: Sequence[Call[T]]) -> Joined[T] | None:
    """Makes one gang call of the calls of all members, if they can go as one.

    Args:
        calls: What is to be sent, all at once.

    Returns:
        The gang call; None for calls that go each on their own.

    Raises:
        InvalidArgumentError: They can only go as one, and cannot.
    """
    if not isinstance(calls, Together) or calls.first.kind not in _GANG_KINDS:
        return None
    first = calls.first
    asked = gang_pb.ExecuteRequest()
    request = asked.call
    request.SetInParent()
    for call in (first,) if calls.alike else calls:
        if call is not first and call.operation == first.operation:
            continue
        assert call.operation is not None, "an operation of a group has parts"
        operation = request.operations.add()
        operation.CopyFrom(call.operation)
        part: Any = getattr(operation, first.kind)
        if call is first:
            request.call.CopyFrom(part.call)
        if operation.ByteSize() > MAX_PART or part.call != request.call:
            if first.kind == "ping":
                raise InvalidArgumentError(
                    "a ping is a gang call", operation=first.kind, expected="one session", got="several"
                )
            return None
        part.ClearField("call")
        part.SetInParent()
    if len(request.operations) not in (1, len(calls)):
        _spell_out(request, calls)
    whole: Call[list[Outcome[T] | None]] = Call(
        kind=first.kind,
        path=_CALL,
        rank=first.rank,
        group=first.group,
        operation_id=first.operation_id,
        deadline=first.deadline,
        gang_call=asked,
        read=lambda response: _read(response, calls),
    )
    return Joined(whole, calls)


def _spell_out(request: gang_pb.CallRequest, calls: Sequence[Call[Any]]) -> None:
    """Gives parts that are like the first their places, too."""
    first, *others = list(request.operations)
    made = iter(others)
    each = [first if call.operation == calls[0].operation else next(made) for call in calls[1:]]
    parts = [first, *each]
    del request.operations[:]
    request.operations.extend(parts)


def _read(response: Any, calls: Together[T]) -> list[Outcome[T] | None]:
    # What a stream answers is written as what the RPC does.
    message = gang_pb.CallResponse.FromString(response) if isinstance(response, bytes) else response
    match message.WhichOneof("outcome"):
        case "error":
            raise error_from_wire(message.error)
        case None:
            raise ProtocolError("CallResponse with nothing set", expected="an outcome")
    members = message.outcomes.members
    ranks = [member.rank for member in members]
    if ranks != calls.ranks:
        raise ProtocolError(
            "the outcomes are not those of the members", expected=str(calls.ranks), got=str(ranks)
        )
    outcomes: list[Outcome[T] | None] = []
    # Who has read that a member got none: what is alike is not read again.
    read: object = None
    for place, member in enumerate(members):
        if not member.HasField("result"):
            outcomes.append(None)
            continue
        call = calls.first if calls.alike else calls[place]
        none = member.result.value.WhichOneof("kind") == "none"
        if none and read is call.read:
            outcomes.append(_nothing(ranks[place]))
            continue
        outcome = _outcome(member.result, call, ranks[place])
        if none and outcome.error is None and outcome.value is None:
            read = call.read
        outcomes.append(outcome)
    return outcomes


@functools.lru_cache(maxsize=1024)
def _nothing(rank: int) -> Outcome[Any]:
    return Outcome(rank=rank)


def _outcome(result: operation_pb.OperationResult, call: Call[T], rank: int) -> Outcome[T]:
    try:
        return Outcome(rank=rank, value=call.result(result))
    except RankBridgeError as error:
        return Outcome(rank=rank, error=error)
