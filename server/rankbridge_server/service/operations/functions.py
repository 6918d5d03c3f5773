"""Calls of functions, as they come over the wire."""

from __future__ import annotations

from rankbridge.v1 import function_service_pb2 as pb

from ...core.errors import invalid
from ...core.functions.operations import CallFunction, call_function
from ..wire import values
from .wire_operation import WireOperation


def _call(request: pb.CallFunctionRequest) -> CallFunction:
    if not request.function:
        raise invalid("function is missing", expected="the name of a function", got="''")
    if not request.arguments:
        return CallFunction(request.function, (), (), request.alone)
    names = tuple(it.name for it in request.arguments)
    # Those without a name come first, and a name comes once.
    if "" in names[sum(not name for name in names) :]:
        raise invalid(
            "an argument without a name follows one with a name",
            expected="those without a name first",
            got=str(list(names)),
        )
    given = [name for name in names if name]
    if len(set(given)) != len(given):
        raise invalid("an argument is given twice", expected="each name once", got=str(given))
    packed = tuple(values.packed(it.value) for it in request.arguments)
    return CallFunction(request.function, names, packed, request.alone)


CALL_FUNCTION: WireOperation[pb.CallFunctionRequest, CallFunction] = WireOperation(call_function, _call)
