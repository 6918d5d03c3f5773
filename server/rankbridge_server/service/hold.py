"""HoldService: breakpoints, and what they hold."""

from __future__ import annotations

import math
from collections.abc import Iterator

import grpc

from rankbridge.v1 import (
    debug_service_pb2,
    hold_service_pb2 as pb,
    hold_service_pb2_grpc as stub,
    tensor_pb2,
)

from ..core.caller import Caller
from ..core.dtype import Dtype
from ..core.errors import BridgeError, invalid
from ..core.hold.breakpoint import Breakpoint
from ..core.hold.holds import Action, Held, Notice, Release
from ..core.hold.variables import variables_of
from ..core.refs.summary import Bounds, NoSummary, Summary
from ..core.refs.tensors import TensorSpec
from .answering import OfRank, answers, packed_error
from .wire import wire

_MOST_ELEMENTS = 65_536
_MOST_MESSAGE = 4096
_MOST_TEXT = 1024
_DTYPES = {it.torch_name: it for it in Dtype}


class HoldServicer(OfRank, stub.HoldServiceServicer):
    """The breakpoints of one rank."""

    def Break(self, request: pb.BreakRequest, context: grpc.ServicerContext) -> Iterator[pb.BreakResponse]:
        """Sets a breakpoint, until the caller is gone or the rank stops."""
        rank = self._rank.describe().rank
        try:
            made = self._rank.holds.set(_breakpoint(request.breakpoint))
        except BridgeError as error:
            yield pb.BreakResponse(error=packed_error(self._rank, "break", error))
            return
        try:
            # The end of the call wakes `next`.
            if not context.add_callback(made.close):
                return
            yield pb.BreakResponse(set=pb.BreakpointSet(rank=rank, number=made.number))
            while (notice := made.next()) is not None:
                yield self._notice(notice)
        finally:
            made.close()

    def ListHeld(self, request: pb.ListHeldRequest, context: grpc.ServicerContext) -> pb.ListHeldResponse:
        """Lists what is held."""
        return pb.ListHeldResponse(calls=map(self._call, self._rank.holds.held()))

    @answers(pb.InspectResponse, "inspect")
    def Inspect(self, request: pb.InspectRequest) -> pb.Inspection:
        """Shows a call that is held."""
        if request.count > _MOST_ELEMENTS:
            raise invalid("count is too large", expected=f"at most {_MOST_ELEMENTS}", got=str(request.count))
        held = self._rank.holds.get(request.held_id)
        frames = variables_of(held.call.thread) if held.call.thread and not request.brief else ()
        return pb.Inspection(
            call=self._call(held),
            inputs=[self._input(it, request) for it in held.call.inputs()],
            frames=[
                pb.FrameVariables(
                    frame=debug_service_pb2.StackFrame(function=it.function, file=it.file, line=it.line),
                    variables=[pb.Variable(name=name, value=value) for name, value in it.variables],
                )
                for it in frames
            ],
        )

    @answers(pb.ReleaseResponse, "release")
    def Release(self, request: pb.ReleaseRequest) -> pb.Released:
        """Lets calls go."""
        release = Release(_action(request.action), request.message)
        if len(release.message.encode()) > _MOST_MESSAGE:
            raise invalid("message is too long", expected=f"at most {_MOST_MESSAGE} bytes")
        holds = self._rank.holds
        all_held = holds.held() if request.held_id == 0 else [holds.get(request.held_id)]
        for held in all_held:
            if held.is_after and release.action in (Action.SKIP, Action.FAIL):
                raise invalid(
                    "the rank is held after the call, which is over",
                    expected="CONTINUE or STEP",
                    got=release.action.name,
                )
        return pb.Released(calls=sum(holds.release(it, release) for it in all_held))

    def _notice(self, notice: Notice) -> pb.BreakResponse:
        if notice.release is None:
            return pb.BreakResponse(held=self._call(notice.held))
        action = pb.Action.Value(f"ACTION_{notice.release.action.name}")
        return pb.BreakResponse(let_go=pb.LetGo(held_id=notice.held.number, action=action))

    def _call(self, held: Held) -> pb.HeldCall:
        call = held.call
        return pb.HeldCall(
            held_id=held.number,
            breakpoint=held.by.number,
            rank=self._rank.describe().rank,
            caller=pb.Caller.Value(f"CALLER_{call.caller.name}"),
            operation=call.operation,
            group=call.group,
            number=call.number,
            contract=call.contract,
            site=call.site,
            function=call.function,
            operation_id=call.operation_id,
            why=held.why,
            after=held.is_after,
            since_us=round(held.since * 1e6),
        )

    def _input(self, tensor: object, request: pb.InspectRequest) -> pb.InputSummary:
        tensors = self._rank.backend.tensors
        dtype, shape = tensors.described(tensor)
        packed = pb.InputSummary(spec=f"{dtype}{list(shape)}", elements=math.prod(shape))
        try:
            if not request.brief:
                _summarize(packed, tensors.summary(tensor))
            known = _DTYPES.get(dtype)
            if request.count and known is not None:
                data = tensors.elements(tensor, request.start, request.count)
                spec = TensorSpec(known, (len(data) // known.itemsize,), "cpu")
                packed.slice.CopyFrom(tensor_pb2.Tensor(spec=wire.pack_tensor_spec(spec), data=data))
        except NoSummary as none:
            packed.spec = f"{packed.spec}: {none}"
        return packed


def _summarize(packed: pb.InputSummary, it: Summary) -> None:
    packed.norm, packed.nans, packed.infs, packed.hash = it.norm, it.nans, it.infs, it.digest
    for name, value in (("min", it.least), ("max", it.most), ("mean", it.mean)):
        if value is not None:
            setattr(packed, name, float(value))


def _breakpoint(it: pb.Breakpoint) -> Breakpoint:
    """Raises INVALID_ARGUMENT for a breakpoint that no call can reach."""
    for name in ("group", "operation", "site", "function"):
        if len(getattr(it, name).encode()) > _MOST_TEXT:
            raise invalid(f"{name} is too long", expected=f"at most {_MOST_TEXT} bytes")
    above = it.above if it.HasField("above") else None
    if above is not None and not 0 <= above < math.inf:
        raise invalid("above is no bound", expected="0 or more, and finite", got=str(above))
    made = Breakpoint(
        group=it.group,
        operation=it.operation,
        number=it.number,
        site=it.site,
        function=it.function,
        caller=_caller(it.caller),
        bounds=Bounds(it.nan, it.inf, above),
        mismatch=it.mismatch,
        slower=it.slower_us / 1e6,
    )
    if made.is_after and made.bounds:
        raise invalid(
            "a breakpoint is before a call because of its inputs, or after it because of how it ended",
            expected="nan, inf and above, or mismatch and slower_us",
            got="both",
        )
    return made


def _caller(number: pb.Caller.ValueType) -> Caller | None:
    if number == pb.CALLER_UNSPECIFIED:
        return None
    try:
        return Caller[pb.Caller.Name(number).removeprefix("CALLER_")]
    except (ValueError, KeyError):
        raise invalid("unknown caller", expected="CONTROLLER or SCRIPT", got=f"number {number}") from None


def _action(number: pb.Action.ValueType) -> Action:
    try:
        return Action[pb.Action.Name(number).removeprefix("ACTION_")]
    except (ValueError, KeyError):
        expected = ", ".join(it.name for it in Action)
        raise invalid("there is no such action", expected=expected, got=f"number {number}") from None
