"""Calls that ranks hold at breakpoints: how they are asked for, and read from the wire."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from rankbridge._plan.calls import Call, Shape
from rankbridge._plan.failures import error_from_wire
from rankbridge._plan.operations import Scope
from rankbridge._plan.operations.declare import path_of, plain_call, timeout_of
from rankbridge._plan.record import StackFrame, frame_from_wire
from rankbridge._plan.tensor import Tensor
from rankbridge._plan.values import tensor_from_wire
from rankbridge._plan.wire import fields_of, number_of, short_name
from rankbridge.errors import InvalidArgumentError, ProtocolError
from rankbridge.v1 import hold_service_pb2 as pb

LetGoAs = Literal["continue", "step", "skip", "fail"]
"""How a call is let go."""

MAX_ELEMENTS = 65_536
"""Elements of each input that a rank gives at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldCall:
    """A call that a rank holds.

    Attributes:
        held_id: Its number among what the rank has held.
        breakpoint: Number of the breakpoint on the rank.
        rank: Rank in the gang.
        caller: "controller": an operation; "script": the user's own code, by torch.distributed.
        operation: Its kind: "all_reduce".
        group: Name of its group.
        number: Its number in its group, from 1: equal on all members. 0: it has none.
        contract: What its members must agree on.
        site: The line of code that calls. Empty: not said.
        function: Name of the user's function that it calls. Empty: none.
        operation_id: Its operation id. Empty: it has none.
        why: What holds it: "breakpoint", "step", "NaN in input 0", "it took 1.203 s".
        after: Whether the rank is held after it, and not before.
        since: Since when, by the clock of the rank's host: seconds since 1970 in UTC.
    """

    held_id: int
    breakpoint: int
    rank: int
    caller: str
    operation: str
    group: str
    number: int
    contract: str
    site: str
    function: str
    operation_id: str
    why: str
    after: bool
    since: float

    @property
    def what(self) -> str:
        """Says where the rank is held, and why."""
        number = f"#{self.number}" if self.number else ""
        at = f" at {self.site}" if self.site else ""
        where = "after" if self.after else "before"
        what = f" {self.function}" if self.function else ""
        return f"held {where} {self.operation}{what} {self.group}{number}{at}: {self.why}"

    def __str__(self) -> str:
        """Says it in a line, with the rank."""
        return f"rank {self.rank} is {self.what}"


@dataclass(frozen=True, slots=True, kw_only=True)
class LetGo:
    """A call that was let go.

    Attributes:
        held_id: Its number.
        action: How: "continue", "step", "skip", "fail". "continue" also if its caller has given it up, or the
            generation has ended.
    """

    held_id: int
    action: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakpointSet:
    """A breakpoint that is set on a rank."""

    rank: int
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldInput:
    """A tensor that a call reads. Of the finite elements, of complex ones by their absolute values.

    Attributes:
        spec: Dtype and shape: "float32[4, 4]".
        elements: Number of elements.
        norm: Euclidean norm.
        min: The least. None: there is no finite element.
        max: The largest.
        mean: The mean.
        nans: How many are NaN.
        infs: How many are infinite.
        hash: Equal exactly if dtype, shape and all elements are, bit for bit. Empty: there is none.
        slice: The elements that were asked for, in one dimension. None: none were, or the bridge has no such dtype.
    """

    spec: str
    elements: int
    norm: float
    min: float | None
    max: float | None
    mean: float | None
    nans: int
    infs: int
    hash: str
    slice: Tensor | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameVariables:
    """A call in a stack, and its variables.

    Attributes:
        frame: The call.
        variables: By name, what each is, in at most 200 characters.
    """

    frame: StackFrame
    variables: dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspection:
    """A call that is held, with what it brings.

    Attributes:
        call: The call.
        inputs: The tensors that it reads.
        frames: Where the thread is that made it, the innermost call of the user's code first. None, if a controller has
            made it.
    """

    call: HeldCall
    inputs: tuple[HeldInput, ...]
    frames: tuple[FrameVariables, ...]


_action = number_of(pb.Action.DESCRIPTOR, "release")


def break_at(
    scope: Scope, breakpoint: pb.Breakpoint, timeout: float | None
) -> Call[BreakpointSet | HeldCall | LetGo]:
    """Sets a breakpoint on one rank; the call's deadline is that of the first response."""
    return Call(
        kind="break",
        path=path_of("HoldService/Break"),
        rank=scope.rank,
        deadline=timeout_of(scope, timeout),
        shape=Shape.DOWNLOAD,
        request=pb.BreakRequest(breakpoint=breakpoint).SerializeToString(),
        read=_said,
    )


def list_held(scope: Scope) -> Call[list[HeldCall]]:
    """Asks one rank for the calls that it holds."""
    request = pb.ListHeldRequest()
    return plain_call(scope, "held", request, lambda it: [_held(each) for each in it.calls])


def inspect(scope: Scope, held_id: int, *, start: int, count: int, brief: bool = False) -> Call[Inspection]:
    """Looks at a call that one rank holds."""
    request = pb.InspectRequest(held_id=held_id, start=start, count=count, brief=brief)
    return plain_call(scope, "inspect", request, _inspection)


def check_elements(start: int, count: int) -> None:
    """Checks which elements are asked for.

    Raises:
        InvalidArgumentError: There are no such elements, or too many.
    """
    if not 0 <= start < 2**63 or not 0 <= count <= MAX_ELEMENTS:
        raise InvalidArgumentError(
            "there are no such elements",
            expected=f"start 0 or more, count 0 to {MAX_ELEMENTS}",
            got=f"start {start}, count {count}",
        )


def release(scope: Scope, held_id: int, action: LetGoAs, message: str) -> Call[int]:
    """Lets a call go that one rank holds; gives how many were."""
    request = pb.ReleaseRequest(held_id=held_id, action=_action(action), message=message)
    return plain_call(scope, "release", request, lambda it: int(it.calls))


def _said(message: bytes) -> BreakpointSet | HeldCall | LetGo:
    response = pb.BreakResponse.FromString(message)
    match response.WhichOneof("outcome"):
        case "set":
            return BreakpointSet(**fields_of(BreakpointSet, response.set))
        case "held":
            return _held(response.held)
        case "let_go":
            action = short_name(pb.Action.items(), response.let_go.action)
            return LetGo(held_id=response.let_go.held_id, action=action)
        case "error":
            raise error_from_wire(response.error)
        case _:
            raise ProtocolError(
                "a response says nothing", expected="set, held, let_go or error", got="neither"
            )


def _held(it: pb.HeldCall) -> HeldCall:
    caller = short_name(pb.Caller.items(), it.caller)
    return HeldCall(**fields_of(HeldCall, it), caller=caller, since=it.since_us / 1e6)


def _inspection(it: pb.Inspection) -> Inspection:
    return Inspection(
        call=_held(it.call),
        inputs=tuple(map(_input, it.inputs)),
        frames=tuple(
            FrameVariables(
                frame=frame_from_wire(each.frame),
                variables={one.name: one.value for one in each.variables},
            )
            for each in it.frames
        ),
    )


def _input(it: pb.InputSummary) -> HeldInput:
    elements = tensor_from_wire(it.slice) if it.HasField("slice") else None
    return HeldInput(**fields_of(HeldInput, it), slice=elements)


def input_at(inspection: Inspection, place: int) -> HeldInput:
    """Gives an input with the elements that were asked for.

    Raises:
        InvalidArgumentError: There is none, or its elements were not given.
    """
    inputs = inspection.inputs
    if not 0 <= place < len(inputs) or inputs[place].slice is None:
        raise InvalidArgumentError(
            "the call has no such input whose elements can be compared",
            rank=inspection.call.rank,
            group=inspection.call.group,
            operation=inspection.call.operation,
            expected=f"0 to {len(inputs) - 1}" if inputs else "a call with inputs",
            got=str(place),
        )
    return inputs[place]


def differ_at(one: Tensor, other: Tensor) -> int | None:
    """Where two slices differ first, bit for bit. None: nowhere, as far as both go."""
    size = one.nbytes // one.shape[0] if one.shape[0] else 1
    mine, theirs = np.frombuffer(one.data, np.uint8), np.frombuffer(other.data, np.uint8)
    length = min(len(mine), len(theirs))
    differs = np.flatnonzero(mine[:length] != theirs[:length])
    return int(differs[0]) // size if len(differs) else None
