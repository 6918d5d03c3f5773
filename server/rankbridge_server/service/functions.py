"""FunctionService."""

from __future__ import annotations

from collections.abc import Iterator

import grpc

from rankbridge.v1 import function_service_pb2 as pb, function_service_pb2_grpc as stub, value_pb2

from ..core.errors import BridgeError, Place, invalid
from ..core.functions.functions import FunctionDescription
from ..core.functions.reports import Reader
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
        if not request.operation_id:
            error = invalid("operation_id is missing", expected="the id of a call", got="''")
            yield pb.WatchReportsResponse(error=wire.pack_error(_at(error, rank).failure))
            return
        reports = self._rank.watch_reports(request.operation_id)
        reader, after = Reader(reports), request.after
        if not context.add_callback(reader.leave):
            return
        while (found := reports.next(after, reader)) is not None:
            report, missed = found
            after = report.number
            yield pb.WatchReportsResponse(
                report=pb.Report(
                    rank=rank,
                    number=report.number,
                    time_us=report.time_us,
                    value=value_pb2.Value.FromString(report.value.data),
                    missed=missed,
                )
            )


def _at(error: BridgeError, rank: int) -> BridgeError:
    return error.at(Place(rank=rank, operation="watch_reports"))


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
