"""The module of one enum."""

from google.protobuf.descriptor_pb2 import EnumDescriptorProto

from rankbridge_elixir import comments as place
from rankbridge_elixir.comments import Comments, Path
from rankbridge_elixir.layout import heredoc, indented, separated, union
from rankbridge_elixir.names import Unsupported, alias_of, namespace_of, short_module


def enum_lines(
    proto: EnumDescriptorProto, full_name: str, package: str, path: Path, notes: Comments
) -> list[str]:
    """The module, as `mix format` leaves it. Raises Unsupported for enums with aliases."""
    if proto.options.allow_alias:
        raise Unsupported(f"enum {full_name}: allow_alias")
    name = short_module(full_name, package).removeprefix(alias_of(package) + ".")
    text = [*notes.lines(path), "", "Numbers without a name stay integers.", "", "## Values", ""]
    for index, value in enumerate(proto.value):
        first, *more = notes.lines((*path, place.MEMBER, index)) or [""]
        text += [f"  * `:{value.name}` - {first}".rstrip(), *(f"    {line}" for line in more)]
    atoms = [f":{value.name}" for value in proto.value]
    numbers = [f"{value.name}: {value.number}" for value in proto.value]
    blocks = [
        heredoc("moduledoc", text),
        union("@type t ::", [*atoms, "integer()"], column=2, nest=10),
        [
            '@doc "The number of each name."',
            "@spec mapping() :: %{atom() => integer()}",
            "def mapping do",
            "  %{",
            *(f"    {number}," for number in numbers[:-1]),
            f"    {numbers[-1]}",
            "  }",
            "end",
        ],
        [
            '@doc "The number of a name; a number is its own."',
            "@spec value(t()) :: integer()",
            *(f"def value(:{value.name}), do: {value.number}" for value in proto.value),
            "def value(number) when is_integer(number), do: number",
        ],
        [
            '@doc "The name of a number, or the number where it has none."',
            "@spec key(integer()) :: t()",
            *(f"def key({value.number}), do: :{value.name}" for value in proto.value),
            "def key(number) when is_integer(number), do: number",
        ],
    ]
    return [f"defmodule {namespace_of(package)}.{name} do", *indented(separated(blocks), 2), "end"]
