"""Writes the operations of `rankbridge call` from the proto."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

from google.protobuf.descriptor_pb2 import FieldDescriptorProto

from described import Documented, Operation, argument, flowing, service, values_of
from rankbridge.v1 import options_pb2 as pb

SERVICES = ("CollectiveService", "ObjectService", "PointToPointService", "QueueService")
BEGIN = "    # --- of operations: written by scripts/methods.py from the proto\n"
END = "    # --- end of operations\n"


def written(path: Path, documented: list[Documented]) -> str:
    """The file with its region written anew, not formatted."""
    before, _, rest = path.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    return before + BEGIN + "".join(_operations(documented)) + END + after


def _operations(documented: list[Documented]) -> Iterator[str]:
    for name in SERVICES:
        for it in service(documented, name)[1]:
            if it.options.brings == pb.BRINGS_UNSPECIFIED:
                # Its clients' methods are written by hand, and so is its command.
                continue
            options = "".join(f"{option}, " for option in _options(it, documented))
            yield (
                f"    Operation({it.kind!r}, {_text(_summary(it))}, {pb.Brings.Name(it.options.brings)[7:].lower()!r}, "
                f"{it.options.gang_call}, ({options})),\n"
            )


def _summary(it: Operation) -> str:
    return flowing(it.comment.split("\n\n")[0])


def _options(it: Operation, documented: list[Documented]) -> Iterator[str]:
    for field in it.fields:
        if it.is_brought(field) or field.name in ("tensor", "ref_id"):
            continue
        says, help_text = argument(field), _said(it.request.comments[field.name])
        face = "rank" if says.row_of or says.column_of else ""
        if says.row_of:
            yield f"Argument({says.row_of!r}, 'rows', {_text(_of_rows(help_text))}, face='gang')"
        yield (
            f"Argument({field.name!r}, {_kind(field)!r}, {_text(help_text)}"
            + (f", choices={_choices(field, documented)!r}" if field.type == field.TYPE_ENUM else "")
            + (", required=True" if says.required else "")
            + (f", face={face!r}" if face else "")
            + ")"
        )


def _said(comment: str) -> str:
    """A field's comment as the help of its option."""
    text = flowing(comment).removeprefix("True: ")
    text = re.sub(r"(Unspecified|Absent): `?([\w-]+)`?\.", r"(default: \2)", text)
    text = re.sub(r"\b(Unspecified|Absent|Empty|None): ", "Not given: ", text)
    text = text.replace("False: ", "Otherwise ").replace("`", "")
    return f"{text[0].upper()}{text[1:]}"


def _text(text: str) -> str:
    """A literal, in pieces that fit into a line."""
    pieces = textwrap.wrap(text, 84, drop_whitespace=False, break_long_words=False)
    return " ".join(repr(piece) for piece in pieces)


def _of_rows(text: str) -> str:
    return f"A row for each member, in group order: {text[0].lower()}{text[1:]}"


def _kind(field: FieldDescriptorProto) -> str:
    if field.type == FieldDescriptorProto.TYPE_ENUM:
        return "choice"
    if field.label == FieldDescriptorProto.LABEL_REPEATED:
        return "ints"
    if field.type == FieldDescriptorProto.TYPE_BOOL:
        return "flag"
    return "text" if field.type == FieldDescriptorProto.TYPE_STRING else "int"


def _choices(field: FieldDescriptorProto, documented: list[Documented]) -> tuple[str, ...]:
    """The clients' names of an enum's values: without their common prefix, and without that for nothing said."""
    names = list(values_of(documented, field.type_name.rpartition(".")[2]))
    prefix = names[0].removesuffix("UNSPECIFIED")
    return tuple(name.removeprefix(prefix).lower() for name in names[1:])
