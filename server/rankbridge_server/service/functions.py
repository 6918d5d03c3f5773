"""FunctionService."""

from __future__ import annotations

from collections.abc import Iterator

import grpc

from rankbridge.v1 import function_service_pb2 as pb, function_service_pb2_grpc as stub, value_pb2

from ..core.errors import BridgeError, Place, invalid
from ..core.functions.functions import FunctionDescription
from ..core.functions.reports import Report
from .answering import OfRank
from .operations.functions import CALL_FUNCTION
from .operations.typed import method
from .wire import wire


class FunctionServicer(OfRank, stub.FunctionServiceServicer):
    """The functions of one rank."""

    CallFunction = method(pb.CallFunctionResponse, CALL_FUNCTION)

    def ListFunctions(
        self, request: pb.ListFunctionsRequest, context: grpc.ServicerContext
    ) -> pb.ListFunctionsResponse:
        """Lists the functions."""
        return pb.ListFunctionsResponse(functions=map(_pack, self._rank.functions.describe()))

    def WatchReports(
        self, request: pb.WatchReportsRequest, context: grpc.ServicerContext
    ) -> Iterator[pb.WatchReportsResponse]:
        """Streams reports, on this thread, until the call has ended or the watcher is gone."""
        rank = self._rank.describe().rank
        try:
            if not request.operation_id:
                raise invalid("operation_id is missing", expected="the id of a call", got="''")
            with self._rank.watch_reports(request.operation_id, request.after) as reader:
                # The end of the call wakes `next`.
                if not context.add_callback(reader.leave):
                    return
                yield pb.WatchReportsResponse(watching=True)
                while (found := reader.next()) is not None:
                    yield pb.WatchReportsResponse(report=_pack_report(rank, *found))
        except BridgeError as error:
            place = Place(rank=rank, operation="watch_reports")
            yield pb.WatchReportsResponse(error=wire.pack_error(error.at(place).failure))


def _pack_report(rank: int, report: Report, missed: int) -> pb.Report:
    return pb.Report(
        rank=rank,
        number=report.number,
        time_us=report.time_us,
        value=value_pb2.Value.FromString(report.value.data),
        missed=missed,
    )


def _pack(it: FunctionDescription) -> pb.Function:
    return pb.Function(
        name=it.name,
        doc=it.doc,
        parameters=[
            pb.Parameter(
                name=each.name,
                kind=pb.ParameterKind.Value(f"PARAMETER_KIND_{each.kind.name}"),
                type=each.type,
                optional=each.optional,
                default=each.default,
            )
            for each in it.parameters
        ],
        returns=it.returns,
        yields=it.yields,
        signature=it.signature,
    )
