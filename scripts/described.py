"""The API as buf reads it, with its comments: for scripts that write something of it."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    FileDescriptorSet,
)

from rankbridge.v1 import options_pb2

ROOT = Path(__file__).parents[1]

MESSAGE_TYPE = 4
"""Number of `message_type` in FileDescriptorProto, and so on, as SourceCodeInfo names places."""
FIELD, SERVICE, METHOD = 2, 6, 2
ENUM_TYPE, VALUE = 5, 2


@dataclass(frozen=True)
class Documented:
    """A proto file and its comments by place."""

    proto: FileDescriptorProto
    comments: dict[tuple[int, ...], str]


@dataclass(frozen=True)
class Message:
    """A message, its comment, and those of its fields by name."""

    proto: DescriptorProto
    comment: str
    comments: dict[str, str]


@dataclass(frozen=True)
class Operation:
    """An RPC with its messages. `kind`: its name in clients."""

    kind: str
    service: str
    rpc: str
    comment: str
    request: Message
    response: Message

    @property
    def options(self) -> options_pb2.OperationOptions:
        """What its request says of it."""
        return self.request.proto.options.Extensions[options_pb2.operation]

    @property
    def enums(self) -> list[str]:
        """Names of the fields that are enums."""
        return [it.name for it in self.fields if it.type == FieldDescriptorProto.TYPE_ENUM]

    @property
    def brought_by_gang(self) -> str:
        """What all members' callers bring, of the comment of the field in which it goes."""
        comment = next((self.request.comments[it.name] for it in self.fields if self.is_brought(it)), "")
        comment = flowing(comment)
        if self.options.brings in (options_pb2.BRINGS_SOURCE_VALUE, options_pb2.BRINGS_SOURCE_VALUES):
            source = re.search(r"At the source: (.*?)\.", comment)
            assert source is not None, f"{self.kind}: what is brought at the source?"
            return f"{source[1][0].upper()}{source[1][1:]}."
        comment = re.sub(r"^Id of this rank's tensor", "One ref of each member, in group order", comment)
        return re.sub(r"^This member's (\w+)", r"One \1 of each member, in group order", comment)

    @staticmethod
    def is_brought(field: FieldDescriptorProto) -> bool:
        """Whether a field of the request has what is brought."""
        in_choice = field.HasField("oneof_index") and not field.proto3_optional
        return field.name == "ref_id" or field.type_name == ".rankbridge.v1.Value" or in_choice

    @property
    def fields(self) -> list[FieldDescriptorProto]:
        """Those of its request, but for the call."""
        return [it for it in self.request.proto.field if it.name != "call"]


def files() -> list[Documented]:
    """All files of the public API."""
    buf = str(ROOT / ".venv" / "bin" / "buf")
    command = [buf, "build", "proto", "--as-file-descriptor-set", "--output", "-#format=binpb"]
    image = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout
    return [
        Documented(
            it, {tuple(place.path): place.leading_comments.strip() for place in it.source_code_info.location}
        )
        for it in FileDescriptorSet.FromString(image).file
        if it.package == "rankbridge.v1"
    ]


def service(documented: list[Documented], name: str) -> tuple[str, list[Operation]]:
    """A service's comment, and its RPCs."""
    for it in documented:
        for number, found in enumerate(it.proto.service):
            if found.name == name:
                rpcs = [
                    Operation(
                        snake(rpc.name),
                        name,
                        rpc.name,
                        it.comments[(SERVICE, number, METHOD, at)],
                        message(documented, rpc.input_type),
                        message(documented, rpc.output_type),
                    )
                    for at, rpc in enumerate(found.method)
                ]
                return it.comments[(SERVICE, number)], rpcs
    raise LookupError(name)


def message(documented: list[Documented], full_name: str) -> Message:
    """A message with its comments."""
    name = full_name.rpartition(".")[2]
    for it in documented:
        for number, found in enumerate(it.proto.message_type):
            if found.name == name:
                place = (MESSAGE_TYPE, number)
                fields = {
                    field.name: it.comments.get((*place, FIELD, at), "")
                    for at, field in enumerate(found.field)
                }
                return Message(found, it.comments[place], fields)
    raise LookupError(name)


def values_of(documented: list[Documented], enum: str) -> dict[str, str]:
    """The comments of an enum's values, by name."""
    return {
        value.name: it.comments[(ENUM_TYPE, number, VALUE, at)]
        for it in documented
        for number, found in enumerate(it.proto.enum_type)
        if found.name == enum
        for at, value in enumerate(found.value)
    }


def services(documented: list[Documented]) -> list[str]:
    """Names of all services."""
    return [found.name for it in documented for found in it.proto.service]


def refused(operation: Operation) -> list[tuple[str, str]]:
    """Codes of the operation's own errors, and when: its response's error says `CODE: when; CODE: when`."""
    comment = flowing(operation.response.comments["error"])
    return re.findall(r"\b([A-Z]+_[A-Z_]+|[A-Z]{5,}): (.*?)(?=; [A-Z]{4,}|\.?$)", comment)


def argument(field: FieldDescriptorProto) -> options_pb2.ArgumentOptions:
    """What a field says of itself in options."""
    return field.options.Extensions[options_pb2.argument]


def flowing(comment: str) -> str:
    """A comment as one line."""
    return re.sub(r"\s+", " ", comment).strip()


def snake(rpc: str) -> str:
    """The clients' name of an RPC."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", rpc).lower()
