"""Calls of the user's own functions, what there is of them, and their reports."""

from __future__ import annotations

from typing import Any, Unpack, cast

from rankbridge._plan.calls import Call, Shape
from rankbridge._plan.failures import error_from_wire
from rankbridge._plan.functions import Arguments, FunctionDescription, Parameter, ParameterKind, Report
from rankbridge._plan.operations.declare import (
    CallOptions,
    Scope,
    group_call,
    operation,
    options_of,
    path_of,
    plain_call,
)
from rankbridge._plan.operations.objects import session_of
from rankbridge._plan.values import from_value, to_value
from rankbridge._plan.wire import fields_of, short_name
from rankbridge.errors import ProtocolError
from rankbridge.v1 import function_service_pb2 as pb, value_pb2

_KIND = "call_function"


@operation
def call_function(
    scope: Scope,
    arguments: Arguments,
    *,
    function: str,
    alone: bool = False,
    **options: Unpack[CallOptions],
) -> Call[Any]:
    """Calls a function on one rank: its part of a call on all members, or alone."""
    given = [pb.Argument(value=to_value(it)) for it in arguments.args]
    given += [pb.Argument(name=name, value=to_value(it)) for name, it in arguments.kwargs.items()]
    session = session_of(scope, [*arguments.args, *arguments.kwargs.values()])
    request = pb.CallFunctionRequest(
        call=options_of(scope, session, _KIND, **options), function=function, arguments=given, alone=alone
    )
    return group_call(scope, _KIND, request, cast(Any, from_value))


def functions(scope: Scope) -> Call[list[FunctionDescription]]:
    """Asks a rank for the functions that it offers."""
    return plain_call(scope, "functions", pb.ListFunctionsRequest(), _descriptions)


def reports(scope: Scope, operation_id: str, after: int = 0) -> Call[Report | None]:
    """Watches the reports of a call on one rank. None: the watch has begun."""
    request = pb.WatchReportsRequest(operation_id=operation_id, after=after)
    return Call(
        kind="reports",
        path=path_of("FunctionService/WatchReports"),
        rank=scope.rank,
        operation_id=operation_id,
        deadline=scope.timeout,
        shape=Shape.DOWNLOAD,
        request=request.SerializeToString(),
        read=_report,
    )


def _descriptions(response: pb.ListFunctionsResponse) -> list[FunctionDescription]:
    return [
        FunctionDescription(
            parameters=tuple(
                Parameter(
                    kind=cast(ParameterKind, short_name(pb.ParameterKind.items(), each.kind)),
                    **fields_of(Parameter, each),
                )
                for each in it.parameters
            ),
            **fields_of(FunctionDescription, it),
        )
        for it in response.functions
    ]


def _report(message: bytes) -> Report | None:
    response = pb.WatchReportsResponse.FromString(message)
    match response.WhichOneof("outcome"):
        case "report":
            it = response.report
            return Report(time=it.time_us / 1e6, value=_value(it.value), **fields_of(Report, it))
        case "watching":
            return None
        case "error":
            raise error_from_wire(response.error)
        case _:
            raise ProtocolError("a response says nothing", expected="a report or an error", got="neither")


def _value(value: value_pb2.Value) -> Any:
    return from_value(value)
