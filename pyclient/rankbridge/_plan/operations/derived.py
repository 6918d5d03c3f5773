"""The collectives, and what members send each other: declared by the proto alone.

A function for each is made from its descriptor and options when this is imported, as ``dataclasses`` makes methods: its
signature is the operation's, and its body writes the request.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message_factory import GetMessageClass

from rankbridge._plan.operations.declare import (
    OPERATIONS,
    checked_rank,
    checked_sizes,
    member_call,
    options_of,
    reading_of,
)
from rankbridge._plan.operations.objects import checked_list, checked_number, checked_tensor_dict, session_of
from rankbridge._plan.operations.point_to_point import fields_of_expected
from rankbridge._plan.operations.readers import READERS
from rankbridge._plan.ref import Ref
from rankbridge._plan.values import to_value
from rankbridge._plan.wire import number_of
from rankbridge.errors import InvalidArgumentError
from rankbridge.v1 import (
    collective_service_pb2,
    object_service_pb2,
    options_pb2 as pb,
    point_to_point_service_pb2,
)

ReduceOp = Literal["sum", "product", "min", "max", "avg", "band", "bor", "bxor"]
"""How elements are combined."""

GatherLayout = Literal["concatenated", "stacked", "list"]
"""How gathered tensors are put together."""

_OWN = "scope.session_id"
_DICT = "(given := checked_tensor_dict(kind, tensors))"
_DICT_OR_NONE = "(given := None if tensors is None else checked_tensor_dict(kind, tensors))"

_BROUGHT = {
    pb.BRINGS_NOTHING: ("", _OWN, ""),
    pb.BRINGS_REF: ("ref", "ref.session_id", "ref.id"),
    pb.BRINGS_VALUE: ("value", _OWN, "to_value(value)"),
    pb.BRINGS_NUMBER: ("value", _OWN, "to_value(checked_number(kind, value))"),
    pb.BRINGS_SOURCE_VALUE: ("value=None", _OWN, "to_value(value)"),
    pb.BRINGS_SOURCE_VALUES: (
        "values=None",
        _OWN,
        "None if values is None else to_value(checked_list(kind, values))",
    ),
    pb.BRINGS_SOURCE_DICT: (
        "tensors=None",
        f"session_of(scope, {_DICT_OR_NONE})",
        "None if given is None else to_value(given)",
    ),
    pb.BRINGS_DICT: ("tensors", f"session_of(scope, {_DICT})", "to_value(given)"),
    pb.BRINGS_EXPECTED: ("", "expected.session_id if isinstance(expected, Ref) else scope.session_id", ""),
}
"""By what is brought: the parameter, the session that the call is made in, and what is written, in Python."""

_NAMES = {
    it.__name__: it
    for it in (
        *(Ref, to_value, checked_list, checked_number, checked_tensor_dict, session_of, checked_rank),
        *(checked_sizes, fields_of_expected, member_call, options_of),
    )
}


def derive(kind: str, request: Descriptor) -> Callable[..., Any]:
    """Makes the function of one operation, which makes its calls.

    Args:
        kind: Its field in `Operation`.
        request: The RPC's request.
    """
    options = request.GetOptions().Extensions[pb.operation]
    given, session, brought = _BROUGHT[options.brings]
    positional, named = ["scope", *([given] if given else [])], list[str]()
    written = [f"call=options_of(scope, {session}, kind, **options)"]
    names: dict[str, Any] = {**_NAMES, "kind": kind}
    for field in request.fields:
        if field.name == "call" or _in_choice(field):
            continue
        if field.name == "ref_id" or (field.message_type is not None and field.message_type.name == "Value"):
            written.append(f"{field.name}={brought}")
            continue
        named.append(f"{field.name}{_default(field)}")
        written.append(f"{field.name}={_conversion(field)}")
        if field.enum_type is not None:
            names[f"{field.name}_number"] = number_of(field.enum_type, kind)
        elif field.type == field.TYPE_UINT32:
            names[f"{field.name}_checked"] = _checked(field.name)
    if options.brings == pb.BRINGS_EXPECTED:
        named.append("expected=None")
        written.append("**fields_of_expected(expected)")
    names["Request"] = GetMessageClass(request)
    names["read"] = reading_of(kind, request)(READERS[options.gives])
    parameters = ", ".join([*positional, *(["*", *named] if named else []), "**options"])
    text = (
        f"def {kind}({parameters}):\n"
        f"    request = Request({', '.join(written)})\n"
        f"    return member_call(scope, kind, request, read)\n"
    )
    exec(compile(text, f"<{kind} of rankbridge>", "exec"), names)
    function: Callable[..., Any] = names[kind]
    return function


def _in_choice(field: FieldDescriptor) -> bool:
    """Tells whether a field is one of several of which one is set: what a receive expects."""
    return field.containing_oneof is not None and len(field.containing_oneof.fields) > 1


def _default(field: FieldDescriptor) -> str:
    argument = field.GetOptions().Extensions[pb.argument]
    if argument.required:
        return ""
    if argument.default:
        return f"={argument.default!r}" if field.enum_type is not None else f"={argument.default}"
    return "=None" if field.is_repeated or field.has_presence else f"={field.default_value!r}"


def _conversion(field: FieldDescriptor) -> str:
    name = field.name
    if field.enum_type is not None:
        return f"{name}_number({name})"
    if field.is_repeated:
        return f"checked_sizes({name!r}, {name})"
    if name.endswith("rank_in_group"):
        checked = f"checked_rank({name!r}, {name})"
        return f"None if {name} is None else {checked}" if field.has_presence else checked
    return f"{name}_checked({name})" if field.type == field.TYPE_UINT32 else name


def _checked(name: str) -> Callable[[int], int]:
    def checked(number: int) -> int:
        if not 0 <= number < 2**32:
            raise InvalidArgumentError(f"not a {name}", expected="0 to 2**32 - 1", got=str(number))
        return number

    return checked


for _file in (collective_service_pb2, object_service_pb2, point_to_point_service_pb2):
    for _service in _file.DESCRIPTOR.services_by_name.values():
        for _rpc in _service.methods:
            _kind = _rpc.input_type.name.removesuffix("Request")
            _kind = "".join(f"_{it.lower()}" if it.isupper() else it for it in _kind).lstrip("_")
            OPERATIONS[_kind] = derive(_kind, _rpc.input_type)
