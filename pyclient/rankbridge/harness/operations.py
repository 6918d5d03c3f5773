"""The operations that scenarios call, and their arguments: read from the proto's declarations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rankbridge._plan.dtypes import DTYPES
from rankbridge._plan.operations import OPERATIONS
from rankbridge.harness.kinds import Anything, Choice, Flag, Kind, Many, Named, Text, Whole, Word
from rankbridge.v1 import (
    collective_service_pb2,
    function_service_pb2,
    object_service_pb2,
    options_pb2 as pb,
    point_to_point_service_pb2,
)
from rankbridge.v1.operation_service_pb2 import Operation

_SERVICES = (collective_service_pb2, function_service_pb2, object_service_pb2, point_to_point_service_pb2)
_FILES = frozenset(it.DESCRIPTOR.name for it in _SERVICES)

_TENSOR = Text()

_BROUGHT: dict[int, dict[str, Word]] = {
    pb.BRINGS_NOTHING: {},
    pb.BRINGS_REF: {"of": Word(_TENSOR, "Name of the tensor that each rank brings.", required=True)},
    pb.BRINGS_VALUE: {"value": Word(Anything(), "What each rank brings.", required=True, by_rank=True)},
    pb.BRINGS_NUMBER: {"value": Word(Anything(), "The number of each rank.", required=True, by_rank=True)},
    pb.BRINGS_SOURCE_VALUE: {"value": Word(Anything(), "What the source sends.", by_rank=True)},
    pb.BRINGS_SOURCE_VALUES: {"values": Word(Many(Anything()), "What the source sends, by rank in group.")},
    pb.BRINGS_SOURCE_DICT: {"tensors": Word(Named(_TENSOR), "Names of the source's tensors, by key.")},
    pb.BRINGS_DICT: {"tensors": Word(Named(_TENSOR), "Names of tensors, by key.", required=True)},
    pb.BRINGS_EXPECTED: {
        "into": Word(_TENSOR, "Name of the tensor that takes what comes."),
        "dtype": Word(Choice(tuple(DTYPES), "a dtype"), "The dtype that must come."),
        "shape": Word(Many(Whole(0)), "The shape that must come.", by_rank=True),
    },
    pb.BRINGS_ARGUMENTS: {
        "args": Word(Many(Anything(), most=1000), "The function's arguments by place.", by_rank=True),
        "named": Word(Named(Anything()), "Its arguments by name.", by_rank=True),
        "tensors": Word(Named(_TENSOR), "Names of tensors, by the name of the argument that each is."),
    },
}
"""Words for what is brought, by the proto's `Brings`."""


@dataclass(frozen=True)
class Declared:
    """One operation.

    Attributes:
        name: Its name.
        brings: What each member brings, of the proto's `Brings`.
        gives: What each member is given, of the proto's `Gives`.
        of_group: All members of a group take part.
        of_all: Words of a call on all members.
        of_one: Words of a call on one rank.
    """

    name: str
    brings: int
    gives: int
    of_group: bool
    of_all: dict[str, Word]
    of_one: dict[str, Word]


def _kind_of(field: Any) -> Kind:
    if field.enum_type is not None:
        (prefix,) = (it.name.removesuffix("UNSPECIFIED") for it in field.enum_type.values if not it.number)
        return Choice(
            tuple(it.name.removeprefix(prefix).lower() for it in field.enum_type.values if it.number)
        )
    one: Kind
    match field.type:
        case field.TYPE_BOOL:
            one = Flag()
        case field.TYPE_STRING:
            one = Text()
        case field.TYPE_UINT32 | field.TYPE_UINT64:
            one = Whole(0, 2**32 - 1)
        case _:
            one = Whole()
    return Many(one) if field.is_repeated else one


def _help(name: str) -> str:
    return f"Argument of the operation: see `{name}` in docs/operations.md."


def _declared(name: str, request: Any) -> Declared:
    options = request.GetOptions().Extensions[pb.operation]
    of_all, of_one = dict(_BROUGHT[options.brings]), dict(_BROUGHT[options.brings])
    for field in request.fields:
        brought = field.name == "ref_id" or (
            field.message_type is not None and field.message_type.name in ("Value", "Argument")
        )
        choice = field.containing_oneof is not None and len(field.containing_oneof.fields) > 1
        if field.name == "call" or brought or choice:
            continue
        argument = field.GetOptions().Extensions[pb.argument]
        word = Word(_kind_of(field), _help(name), required=argument.required, by_rank=True)
        of_one[field.name] = word
        whole = argument.row_of or argument.column_of
        if whole:
            of_all[whole] = Word(Many(word.kind), _help(name))
        else:
            of_all[field.name] = word
    return Declared(name, options.brings, options.gives, options.gang_call, of_all, of_one)


DECLARED: dict[str, Declared] = {
    name: _declared(name, field.message_type)
    for name, field in Operation.DESCRIPTOR.fields_by_name.items()
    if name in OPERATIONS and field.message_type is not None and field.message_type.file.name in _FILES
}
"""By name: the collectives, those of values, what members send each other, and functions that the ranks have loaded.

Programs, coalesced calls, graphs and queues are not among them: they take other calls, or belong to a session.
"""
