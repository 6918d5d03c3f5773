"""From a request of protoc to its response."""

import re
import sys
from collections.abc import Iterable, Iterator

from google.protobuf.compiler.plugin_pb2 import CodeGeneratorRequest, CodeGeneratorResponse
from google.protobuf.descriptor_pb2 import DescriptorProto, EnumDescriptorProto, FileDescriptorProto

from rankbridge_elixir import comments as place
from rankbridge_elixir.comments import Comments, Path
from rankbridge_elixir.enums import enum_lines
from rankbridge_elixir.layout import separated
from rankbridge_elixir.messages import MessageModule
from rankbridge_elixir.names import Unsupported, version_of
from rankbridge_elixir.services import service_lines


def main() -> None:
    """Reads a request on stdin and writes the response on stdout."""
    request = CodeGeneratorRequest.FromString(sys.stdin.buffer.read())
    sys.stdout.buffer.write(respond(request).SerializeToString())


def respond(request: CodeGeneratorRequest) -> CodeGeneratorResponse:
    """One file of Elixir for each file asked for that is not of options; or the error, which protoc shows."""
    response = CodeGeneratorResponse(supported_features=CodeGeneratorResponse.FEATURE_PROTO3_OPTIONAL)
    enum_zeros = dict(_enum_zeros(request.proto_file))
    wanted = set(request.file_to_generate)
    try:
        for file in request.proto_file:
            if file.name in wanted and not _is_of_options(file):
                response.file.add(name=output_name(file), content=elixir_of(file, enum_zeros))
    except Unsupported as error:
        response.error = f"rankbridge-elixir: {error}"
    return response


def output_name(file: FileDescriptorProto) -> str:
    """Where the Elixir of a file goes: "v1/call.pb.ex" for "rankbridge/v1/call.proto"."""
    stem = file.name.rpartition("/")[2].removesuffix(".proto")
    return f"{version_of(file.package)}/{stem}.pb.ex"


def elixir_of(file: FileDescriptorProto, enum_zeros: dict[str, str]) -> str:
    """The text of one `.pb.ex` file. Raises Unsupported."""
    if file.syntax != "proto3" or file.extension:
        raise Unsupported(f"{file.name}: only proto3 without extensions")
    notes = Comments(file)
    modules: list[list[str]] = []
    for name, enum, path in _enums(file):
        modules.append(enum_lines(enum, name, file.package, path, notes))
    for name, message, path in _messages(file):
        modules.append(MessageModule(message, name, file.package, path, notes, enum_zeros).lines())
    for index, service in enumerate(file.service):
        modules.append(service_lines(service, file.package, (place.SERVICE, index), notes))
    header = ["# Generated from " + file.name + " by protoc-gen-rankbridge-elixir. Do not edit."]
    return "\n".join(separated([header, *modules])) + "\n"


def _is_of_options(file: FileDescriptorProto) -> bool:
    """Whether a file declares options. They are for those who read descriptors, and are never sent."""
    extended = [it.extendee for it in file.extension]
    return bool(extended) and all(re.fullmatch(r"\.google\.protobuf\.\w+Options", it) for it in extended)


def _messages(file: FileDescriptorProto) -> Iterator[tuple[str, DescriptorProto, Path]]:
    """Every message with its full name and place, nested ones before those that hold them."""
    for index, message in enumerate(file.message_type):
        yield from _nested(message, f".{file.package}.{message.name}", (place.MESSAGE, index))


def _nested(message: DescriptorProto, name: str, path: Path) -> Iterator[tuple[str, DescriptorProto, Path]]:
    for index, inner in enumerate(message.nested_type):
        yield from _nested(inner, f"{name}.{inner.name}", (*path, place.NESTED_MESSAGE, index))
    yield name, message, path


def _enums(file: FileDescriptorProto) -> Iterator[tuple[str, EnumDescriptorProto, Path]]:
    for index, enum in enumerate(file.enum_type):
        yield f".{file.package}.{enum.name}", enum, (place.ENUM, index)
    for name, message, path in _messages(file):
        for index, enum in enumerate(message.enum_type):
            yield f"{name}.{enum.name}", enum, (*path, place.NESTED_ENUM, index)


def _enum_zeros(files: Iterable[FileDescriptorProto]) -> Iterator[tuple[str, str]]:
    """Full name and first value of every enum."""
    for file in files:
        for name, enum, _path in _enums(file):
            yield name, enum.value[0].name
