"""The protoc plugin that writes Elixir, as protoc sees it. What it writes for our own files is checked elsewhere."""

import subprocess
import sys
from pathlib import Path

import pytest
from google.protobuf.compiler.plugin_pb2 import CodeGeneratorRequest, CodeGeneratorResponse
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto

PLUGIN = Path(__file__).parents[2] / "elixir_client" / "codegen" / "protoc-gen-rankbridge-elixir"


def generate(file: FileDescriptorProto) -> CodeGeneratorResponse:
    """What the plugin answers for one file."""
    request = CodeGeneratorRequest(file_to_generate=[file.name], proto_file=[file])
    command = [sys.executable, str(PLUGIN)]
    run = subprocess.run(command, input=request.SerializeToString(), stdout=subprocess.PIPE, check=True)
    return CodeGeneratorResponse.FromString(run.stdout)


def file_of(*messages: DescriptorProto, package: str = "rankbridge.v1") -> FileDescriptorProto:
    """A file with these messages."""
    return FileDescriptorProto(
        name="rankbridge/v1/some.proto", package=package, syntax="proto3", message_type=messages
    )


def scalar(name: str, number: int, oneof_index: int | None = None) -> FieldDescriptorProto:
    """A field of type int32."""
    field = FieldDescriptorProto(name=name, number=number, type=FieldDescriptorProto.TYPE_INT32)
    field.label = FieldDescriptorProto.LABEL_OPTIONAL
    if oneof_index is not None:
        field.oneof_index = oneof_index
    return field


def test_a_file_becomes_one_file_of_modules_with_nested_messages_first() -> None:
    inner = DescriptorProto(name="Inner", field=[scalar("a", 20)])
    outer = DescriptorProto(name="Outer", nested_type=[inner])
    response = generate(file_of(outer))
    assert [file.name for file in response.file] == ["v1/some.pb.ex"]
    content = response.file[0].content
    nested = content.index("defmodule RankBridge.Proto.V1.Outer.Inner do")
    assert nested < content.index("defmodule RankBridge.Proto.V1.Outer do")
    assert "Encode.implicit(0xA0, :int32, message.a)" in content


@pytest.mark.parametrize(
    ("name", "update"),
    [
        (
            "a_name_that_leaves_no_room",
            ["| kind: {:a_name_that_leaves_no_room, Decode.message(V1.HeldMessage, held, raw, depth)}"],
        ),
        (
            "a_name_that_leaves_no_room_on_the_line",
            [
                "| kind:",
                "    {:a_name_that_leaves_no_room_on_the_line,",
                "     Decode.message(V1.HeldMessage, held, raw, depth)}",
            ],
        ),
    ],
)
def test_an_update_that_is_too_long_for_a_line_is_broken_as_the_formatter_does(
    name: str, update: list[str]
) -> None:
    held = DescriptorProto(name="HeldMessage")
    field = scalar(name, 1, oneof_index=0)
    field.type, field.type_name = FieldDescriptorProto.TYPE_MESSAGE, ".rankbridge.v1.HeldMessage"
    holder = DescriptorProto(name="Holder", field=[field])
    holder.oneof_decl.add(name="kind")
    content = generate(file_of(held, holder)).file[0].content
    lines = "\n".join(f"      {line}" for line in update)
    assert f"\n\n    %{{\n      message\n{lines}\n    }}\n  end\n" in content


def test_proto3_optional_is_supported() -> None:
    features = generate(file_of()).supported_features
    assert features & CodeGeneratorResponse.FEATURE_PROTO3_OPTIONAL


def extension_of(extended: str) -> FileDescriptorProto:
    """A file that extends a message by a field, with a message of its own."""
    file = file_of(DescriptorProto(name="Extra"))
    field = file.extension.add(name="extra", number=50000, extendee=extended)
    field.type, field.type_name = FieldDescriptorProto.TYPE_MESSAGE, ".rankbridge.v1.Extra"
    return file


def test_a_file_of_options_becomes_nothing() -> None:
    response = generate(extension_of(".google.protobuf.MessageOptions"))
    assert (response.error, list(response.file)) == ("", [])


def _map() -> DescriptorProto:
    entry = DescriptorProto(name="Entry", field=[scalar("key", 1), scalar("value", 2)])
    entry.options.map_entry = True
    return DescriptorProto(name="Holder", nested_type=[entry])


def _mixed_oneof() -> DescriptorProto:
    message = DescriptorProto(name="Mixed", field=[scalar("a", 1, 0), scalar("b", 2), scalar("c", 3, 0)])
    message.oneof_decl.add(name="choice")
    return message


@pytest.mark.parametrize(
    ("file", "named"),
    [
        (file_of(_map()), "maps"),
        (file_of(_mixed_oneof()), "Mixed"),
        (file_of(package="elsewhere.v1"), "elsewhere.v1"),
        (FileDescriptorProto(name="a.proto", package="rankbridge.v1", syntax="proto2"), "proto3"),
        (extension_of(".rankbridge.v1.Extra"), "without extensions"),
    ],
    ids=["maps", "a oneof with others between", "another package", "proto2", "an extension of no options"],
)
def test_what_is_not_supported_is_refused_by_name(file: FileDescriptorProto, named: str) -> None:
    response = generate(file)
    assert named in response.error
    assert not response.file
