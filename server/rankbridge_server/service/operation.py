"""OperationService."""

from __future__ import annotations

import grpc

from rankbridge.v1 import operation_service_pb2 as pb, operation_service_pb2_grpc as stub, value_pb2

from ..core.errors import BridgeError, Phase, invalid
from ..core.task import Task
from .answering import OfRank, answered, answers
from .operations.programs import COALESCE, RUN_PROGRAM
from .operations.typed import method
from .pending import PendingPart
from .wire import values, wire

_STATES = {
    Phase.CHECK: pb.OPERATION_STATE_QUEUED,
    Phase.ADMISSION: pb.OPERATION_STATE_ADMISSION,
    Phase.DATA: pb.OPERATION_STATE_DATA,
}


class OperationServicer(OfRank, stub.OperationServiceServicer):
    """Operations of one rank, by their ids."""

    Coalesce = method(pb.CoalesceResponse, COALESCE)
    RunProgram = method(pb.RunProgramResponse, RUN_PROGRAM)

    def Run(self, request: pb.RunRequest, context: grpc.ServicerContext) -> pb.RunResponse:
        """Does an operation of any kind."""
        pending = PendingPart.of(self._rank, request.operation)
        pending.withdraw_with(context)
        return answered(
            self._rank,
            pending.name or "run",
            lambda: pb.RunResponse(value=values.pack_value(pending.outcome())),
            lambda error: pb.RunResponse(error=error),
        )

    @answers(pb.SubmitResponse, "submit")
    def Submit(self, request: pb.SubmitRequest) -> str:
        """Begins an operation."""
        operation = request.operation
        kind = operation.WhichOneof("kind")
        if kind and not getattr(operation, kind).call.operation_id:
            raise invalid("a submitted operation needs an id", expected="call.operation_id", got="''")
        pending = PendingPart.of(self._rank, operation)
        pending.check()
        return pending.operation_id

    @answers(pb.PollResponse, "poll")
    def Poll(self, request: pb.PollRequest) -> pb.OperationStatus:
        """Describes the state of an operation."""
        return _status(self._rank.find(request.operation_id))

    def Await(self, request: pb.AwaitRequest, context: grpc.ServicerContext) -> pb.AwaitResponse:
        """Waits for an outcome, while the caller does."""
        return answered(
            self._rank,
            "await",
            lambda: pb.AwaitResponse(value=self._await(request, context)),
            lambda error: pb.AwaitResponse(error=error),
        )

    def _await(self, request: pb.AwaitRequest, context: grpc.ServicerContext) -> value_pb2.Value:
        task = self._rank.find(request.operation_id)
        context.add_callback(task.wake)
        timeout = request.timeout_ms / 1000 or self._rank.default_timeout
        return values.pack_value(task.outcome(timeout, lambda: not context.is_active()))

    @answers(pb.CancelResponse, "cancel")
    def Cancel(self, request: pb.CancelRequest) -> bool:
        """Withdraws an operation."""
        task = self._rank.find(request.operation_id)
        task.cancel("the controller asked for it")
        return task.cancelled()


def _status(task: Task) -> pb.OperationStatus:
    if not task.done:
        return pb.OperationStatus(state=_STATES[task.phase])
    try:
        result = pb.OperationResult(value=values.pack_value(task.outcome()))
    except BridgeError as error:
        result = pb.OperationResult(error=wire.pack_error(error.failure))
    return pb.OperationStatus(state=pb.OPERATION_STATE_DONE, result=result)
