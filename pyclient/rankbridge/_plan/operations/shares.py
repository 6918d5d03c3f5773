"""What each member of a group gets of what a gang is asked for: pure, and the same for every way to call."""

from __future__ import annotations

import enum
from typing import Any

from rankbridge.errors import InvalidArgumentError
from rankbridge.v1 import options_pb2 as options_pb
from rankbridge.v1.operation_service_pb2 import Operation


class FirstArgument(enum.Enum):
    """What a gang's method of an operation is given first, and who gets what of it."""

    REFS = "one ref of each member"
    NOTHING = "nothing"
    SAME = "what every member gets"
    EACH = "one value of each member"
    SOURCE = "what the source alone gets"
    CALLS = "several calls, each with what it is given itself"
    PROGRAM = "a program, in which each step has what it is given itself"
    ARGUMENTS = "arguments of a function, the same for all or its own for each"
    NEVER = "the operation is one rank's own"


_BROUGHT = {
    options_pb.BRINGS_NOTHING: FirstArgument.NOTHING,
    options_pb.BRINGS_REF: FirstArgument.REFS,
    options_pb.BRINGS_VALUE: FirstArgument.EACH,
    options_pb.BRINGS_NUMBER: FirstArgument.EACH,
    options_pb.BRINGS_SOURCE_VALUE: FirstArgument.SOURCE,
    options_pb.BRINGS_SOURCE_VALUES: FirstArgument.SOURCE,
    options_pb.BRINGS_SOURCE_DICT: FirstArgument.SOURCE,
    options_pb.BRINGS_CALLS: FirstArgument.CALLS,
    options_pb.BRINGS_PROGRAM: FirstArgument.PROGRAM,
    options_pb.BRINGS_GRAPH: FirstArgument.SAME,
    options_pb.BRINGS_ARGUMENTS: FirstArgument.ARGUMENTS,
}

_GIVEN: dict[str, FirstArgument] = {}

_TAKEN_APART: dict[str, dict[str, options_pb.ArgumentOptions]] = {}
"""Of operations whose options members share: the fields of which each member gets its own row or column."""

for _kind, _field in Operation.DESCRIPTOR.fields_by_name.items():
    assert _field.message_type is not None, "an operation is a message"
    _options = _field.message_type.GetOptions().Extensions[options_pb.operation]
    _GIVEN[_kind] = _BROUGHT[_options.brings] if _options.gang_call else FirstArgument.NEVER
    _arguments = {
        it.name: it.GetOptions().Extensions[options_pb.argument] for it in _field.message_type.fields
    }
    if _own := {name: it for name, it in _arguments.items() if it.row_of or it.column_of}:
        _TAKEN_APART[_kind] = _own


def given(operation: str) -> FirstArgument:
    """Tells what a gang's method of an operation is given."""
    return _GIVEN.get(operation, FirstArgument.REFS)


def shares(operation: str, options: dict[str, Any], members: int) -> list[dict[str, Any]]:
    """Gives each member's options of an operation that a gang is asked for, by rank in group."""
    own = _TAKEN_APART.get(operation)
    return [options] * members if own is None else _taken_apart(operation, own, options, members)


def _taken_apart(
    operation: str, own: dict[str, options_pb.ArgumentOptions], options: dict[str, Any], members: int
) -> list[dict[str, Any]]:
    wholes = {it.row_of or it.column_of for it in own.values()}
    if unknown := options.keys() & own.keys():
        raise TypeError(f"{operation} of a gang takes {', '.join(wholes)}, not {', '.join(sorted(unknown))}")
    common = {name: value for name, value in options.items() if name not in wholes}
    tables = {
        name: _table(operation, name, options[name], members)
        for name in wholes
        if options.get(name) is not None
    }
    return [
        {
            **common,
            **{
                name: tables[it.row_of][member]
                if it.row_of
                else [row[member] for row in tables[it.column_of]]
                for name, it in own.items()
                if (it.row_of or it.column_of) in tables
            },
        }
        for member in range(members)
    ]


def _table(operation: str, name: str, given: Any, members: int) -> list[list[Any]]:
    rows = [list(row) for row in given]
    if [len(row) for row in rows] != [members] * members:
        raise InvalidArgumentError(
            f"{name} do not fit the group",
            operation=operation,
            expected=f"{members} rows of {members}, one for each member",
            got=f"rows of {[len(row) for row in rows]}",
        )
    return rows
