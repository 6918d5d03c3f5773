"""The module of one message."""

from collections.abc import Mapping

from google.protobuf.descriptor_pb2 import DescriptorProto

from rankbridge_elixir import comments as place
from rankbridge_elixir.comments import Comments, Path
from rankbridge_elixir.fields import Field, Presence, field_of
from rankbridge_elixir.layout import heredoc, indented, separated, union
from rankbridge_elixir.names import Unsupported, alias_of, namespace_of, short_module

UNKNOWN = "__unknown_fields__"


class MessageModule:
    """Writes the module of one message."""

    def __init__(
        self,
        proto: DescriptorProto,
        full_name: str,
        package: str,
        path: Path,
        notes: Comments,
        enum_zeros: Mapping[str, str],
    ) -> None:
        """Reads the descriptor. Raises Unsupported."""
        if proto.options.map_entry or proto.extension:
            raise Unsupported(f"message {full_name}: maps and extensions")
        self._proto = proto
        self._package = package
        self._path = path
        self._notes = notes
        self._name = short_module(full_name, package).removeprefix(alias_of(package) + ".")
        fields = [field_of(field, proto, package, enum_zeros) for field in proto.field]
        self._fields = sorted(fields, key=lambda field: field.number)
        self._slots = self._slots_by_number()

    def lines(self) -> list[str]:
        """The module, as `mix format` leaves it."""
        blocks = [
            self._moduledoc(),
            ["@behaviour RankBridge.Protobuf.Message"],
            self._aliases(),
            *self._oneof_types(),
            self._type(),
            self._struct(),
            *self._encode(),
            *self._decode(),
        ]
        body = indented(separated([block for block in blocks if block]), 2)
        return [f"defmodule {namespace_of(self._package)}.{self._name} do", *body, "end"]

    def _slots_by_number(self) -> list[list[Field]]:
        """Members of the struct in the order in which they are written: one field, or all of one oneof."""
        slots: list[list[Field]] = []
        for field in self._fields:
            if field.oneof and slots and slots[-1][0].oneof == field.oneof:
                slots[-1].append(field)
            else:
                slots.append([field])
        oneofs = [slot[0].oneof for slot in slots if slot[0].oneof]
        if len(oneofs) != len(set(oneofs)):
            raise Unsupported(f"message {self._name}: numbers of a oneof with others between them")
        return slots

    def _moduledoc(self) -> list[str]:
        text = self._notes.lines(self._path)
        items: list[str] = []
        for index, field in enumerate(self._proto.field):
            text_of_field = self._notes.lines((*self._path, place.FIELD, index))
            first, *more = text_of_field or [""]
            items += [f"  * `{field.name}` - {first}".rstrip(), *(f"    {line}" for line in more)]
        if items:
            text = [*text, "", "## Fields", "", *items]
        return heredoc("moduledoc", text)

    def _aliases(self) -> list[str]:
        alias = alias_of(self._package)
        uses = any(f"{alias}." in field.type or f"{alias}." in field.elixir for field in self._fields)
        lines = [f"alias {namespace_of(self._package)}"] if uses else []
        return [*lines, "alias RankBridge.Protobuf.{Decode, Encode}"]

    def _oneof_types(self) -> list[list[str]]:
        blocks = []
        for slot in self._slots:
            if slot[0].oneof:
                members = [f"{{:{field.name}, {field.elixir}}}" for field in slot]
                head = f"@type {slot[0].oneof} ::"
                blocks.append(union(head, members, column=2, nest=10))
        return blocks

    def _type(self) -> list[str]:
        lines = ["@type t :: %__MODULE__{"]
        for slot in self._slots:
            field = slot[0]
            name, members = field.name, field.type_members
            if field.oneof:
                name, members = field.oneof, [f"{field.oneof}()", "nil"]
            lines += indented(union(f"{name}:", members, column=10, nest=12, tail=","), 8)
        unknown = f"{UNKNOWN}: [RankBridge.Protobuf.unknown_field()]"
        return [*lines, *indented([unknown], 8), "      }"]

    def _struct(self) -> list[str]:
        members = []
        for slot in self._slots:
            field = slot[0]
            members.append(f"{field.oneof}: nil" if field.oneof else f"{field.name}: {field.default}")
        members.append(f"{UNKNOWN}: []")
        first, *rest = members
        if not rest:
            return [f"defstruct {first}"]
        lines = [f"defstruct {first},", *(f"          {member}," for member in rest)]
        return [*lines[:-1], lines[-1].removesuffix(",")]

    def _encode(self) -> list[list[str]]:
        items = []
        for slot in self._slots:
            field = slot[0]
            if field.oneof:
                items.append(f"encode_{field.oneof}(message.{field.oneof})")
            else:
                items.append(field.encoding(f"message.{field.name}"))
        items.append(f"Encode.unknown(message.{UNKNOWN})")
        encode_to_iodata = [
            "@impl true",
            "@spec encode_to_iodata(t()) :: iodata()",
            "def encode_to_iodata(%__MODULE__{} = message) do",
            "  [",
            *(f"    {item}," for item in items[:-1]),
            f"    {items[-1]}",
            "  ]",
            "end",
        ]
        encode = [
            "@impl true",
            "@spec encode(t()) :: binary()",
            "def encode(%__MODULE__{} = message) do",
            "  IO.iodata_to_binary(encode_to_iodata(message))",
            "end",
        ]
        return [encode, encode_to_iodata, *self._encode_oneofs()]

    def _encode_oneofs(self) -> list[list[str]]:
        blocks = []
        for slot in self._slots:
            name = slot[0].oneof
            if not name:
                continue
            blocks.append([f"defp encode_{name}(nil), do: []"])
            for field in slot:
                head = f"defp encode_{name}({{:{field.name}, value}}) do"
                blocks.append([head, f"  {field.encoding('value')}", "end"])
        return blocks

    def _decode(self) -> list[list[str]]:
        decode = [
            "@impl true",
            "@spec decode(binary()) :: t()",
            "def decode(binary) when is_binary(binary) do",
            "  Decode.message(__MODULE__, nil, binary, -1)",
            "end",
        ]
        clauses = [clause for field in self._fields for clause in field.decodings()]
        unknown = [
            "def __put__(message, number, wire_type, raw, _depth) do",
            f"  %{{message | {UNKNOWN}: [{{number, wire_type, raw}} | message.{UNKNOWN}]}}",
            "end",
        ]
        first, *rest = [*clauses, unknown]
        hidden = ["@doc false", "@impl true"]
        spec = ["@spec __put__(t(), pos_integer(), 0..5, term(), integer()) :: t()"]
        return [decode, [*hidden, *spec, *first], *rest, [*hidden, *self._flip()], self._table()]

    def _table(self) -> list[str]:
        """What the fields are, for tools that treat every message alike."""
        rows = [f"{{{f.number}, :{f.name}, {f.type}, {f.presence_term}}}" for f in self._fields]
        head = ["@doc false", "@impl true", "@spec __fields__() :: [RankBridge.Protobuf.Message.field()]"]
        if not rows:
            return [*head, "def __fields__, do: []"]
        listed = [f"    {row}," for row in rows]
        return [*head, "def __fields__ do", "  [", *listed[:-1], listed[-1].removesuffix(","), "  ]", "end"]

    def _flip(self) -> list[str]:
        """Lists are gathered backwards; this turns them round, and back again."""
        lists = [slot[0].name for slot in self._slots if slot[0].presence is Presence.REPEATED]
        reversed_lists = [f"{name}: Enum.reverse(message.{name})" for name in [*lists, UNKNOWN]]
        first, *rest = reversed_lists
        changes = [f"    | {first}", *(f"      {change}" for change in rest)]
        return [
            "@spec __flip__(t()) :: t()",
            "def __flip__(message) do",
            "  %{",
            "    message",
            *(f"{change}," for change in changes[:-1]),
            changes[-1],
            "  }",
            "end",
        ]
