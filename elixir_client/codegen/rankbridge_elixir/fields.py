"""One field of a message: its Elixir type and default, how it is written and how it is read."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto

from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto

from rankbridge_elixir.layout import indented, updated
from rankbridge_elixir.names import Unsupported, short_module

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
"""Wire types."""


class Presence(Enum):
    """How a field says that it is absent."""

    IMPLICIT = auto()
    """By its default, as plain proto3 scalars do."""
    EXPLICIT = auto()
    """By nil: sub-messages and `optional` fields."""
    ONEOF = auto()
    """By the oneof that holds something else, or nil."""
    REPEATED = auto()
    """By the empty list."""


@dataclass(frozen=True, kw_only=True)
class Scalar:
    """A type of protocol buffers that is not a message."""

    name: str
    wire_type: int
    elixir: str
    default: str


_T = FieldDescriptorProto

# Column of what a function of a module does.
_BODY = 4
_FLOAT = "RankBridge.Protobuf.float_value()"
_SCALARS: dict[int, Scalar] = {
    _T.TYPE_DOUBLE: Scalar(name="double", wire_type=FIXED64, elixir=_FLOAT, default="0.0"),
    _T.TYPE_FLOAT: Scalar(name="float", wire_type=FIXED32, elixir=_FLOAT, default="0.0"),
    _T.TYPE_INT64: Scalar(name="int64", wire_type=VARINT, elixir="integer()", default="0"),
    _T.TYPE_UINT64: Scalar(name="uint64", wire_type=VARINT, elixir="non_neg_integer()", default="0"),
    _T.TYPE_INT32: Scalar(name="int32", wire_type=VARINT, elixir="integer()", default="0"),
    _T.TYPE_FIXED64: Scalar(name="fixed64", wire_type=FIXED64, elixir="non_neg_integer()", default="0"),
    _T.TYPE_FIXED32: Scalar(name="fixed32", wire_type=FIXED32, elixir="non_neg_integer()", default="0"),
    _T.TYPE_BOOL: Scalar(name="bool", wire_type=VARINT, elixir="boolean()", default="false"),
    _T.TYPE_STRING: Scalar(name="string", wire_type=BYTES, elixir="String.t()", default='""'),
    _T.TYPE_BYTES: Scalar(name="bytes", wire_type=BYTES, elixir="iodata()", default='""'),
    _T.TYPE_UINT32: Scalar(name="uint32", wire_type=VARINT, elixir="non_neg_integer()", default="0"),
    _T.TYPE_SFIXED32: Scalar(name="sfixed32", wire_type=FIXED32, elixir="integer()", default="0"),
    _T.TYPE_SFIXED64: Scalar(name="sfixed64", wire_type=FIXED64, elixir="integer()", default="0"),
    _T.TYPE_SINT32: Scalar(name="sint32", wire_type=VARINT, elixir="integer()", default="0"),
    _T.TYPE_SINT64: Scalar(name="sint64", wire_type=VARINT, elixir="integer()", default="0"),
}


@dataclass(frozen=True, kw_only=True)
class Field:
    """One field, as the generator sees it."""

    number: int
    name: str
    presence: Presence
    oneof: str
    """Name of its oneof. Empty: none."""
    wire_type: int
    """Wire type of one element."""
    type: str
    """Elixir term that names the type to `RankBridge.Protobuf`: `:uint32`, `{:enum, V1.Dtype}`."""
    module: str
    """Module of the message. Empty: it is not a message."""
    elixir: str
    """Elixir type of one element."""
    zero: str
    """Default of one element."""

    @property
    def packed(self) -> bool:
        """Whether a list of them travels as one run of bytes."""
        return self.presence is Presence.REPEATED and self.wire_type != BYTES

    @property
    def default(self) -> str:
        """Default in the struct."""
        match self.presence:
            case Presence.REPEATED:
                return "[]"
            case Presence.EXPLICIT:
                return "nil"
            case _:
                return self.zero

    @property
    def type_members(self) -> list[str]:
        """Members of the union that is the field's type in the struct."""
        match self.presence:
            case Presence.REPEATED:
                return [f"[{self.elixir}]"]
            case Presence.EXPLICIT:
                return [self.elixir, "nil"]
            case _:
                return [self.elixir]

    @property
    def presence_term(self) -> str:
        """Elixir term that names the presence."""
        match self.presence:
            case Presence.ONEOF:
                return f"{{:oneof, :{self.oneof}}}"
            case Presence.EXPLICIT:
                return ":optional"
            case presence:
                return f":{presence.name.lower()}"

    @property
    def tag(self) -> str:
        """Number and wire type as they are written."""
        wire_type = BYTES if self.packed else self.wire_type
        return f"0x{self.number << 3 | wire_type:02X}"

    def encoding(self, value: str) -> str:
        """Expression of the field's bytes, from the expression of its value."""
        function = {
            Presence.IMPLICIT: "implicit",
            Presence.EXPLICIT: "optional",
            Presence.ONEOF: "always",
            Presence.REPEATED: "packed" if self.packed else "repeated",
        }[self.presence]
        return f"Encode.{function}({self.tag}, {self.type}, {value})"

    def decodings(self) -> list[list[str]]:
        """Clauses of `__put__`, one for each wire type that the field may arrive in."""
        name = self.name
        match self.presence:
            case Presence.ONEOF if self.module:
                held = f"held = Decode.held(message.{self.oneof}, :{name})"
                parts = [f":{name}", self._decoded("held")]
                value = f"{{{', '.join(parts)}}}"
                lines = updated(self.oneof, value, column=_BODY, inside=("{", parts, "}"))
                # `mix format` sets off what takes several lines.
                return [self._clause(self.wire_type, [held, *([""] if lines[1:] else []), *lines])]
            case Presence.ONEOF:
                lines = updated(self.oneof, f"{{:{name}, {self._decoded()}}}", column=_BODY)
            case Presence.REPEATED:
                grown = f"{self._decoded('nil')} | message.{name}"
                lines = updated(name, f"[{grown}]", column=_BODY, inside=("[", [grown], "]"))
            case _:
                lines = updated(name, self._decoded(f"message.{name}"), column=_BODY)
        clauses = [self._clause(self.wire_type, lines)]
        if self.packed:
            packed = f"Decode.packed({self.type}, raw, message.{name})"
            clauses.append(self._clause(BYTES, updated(name, packed, column=_BODY)))
        return clauses

    def _decoded(self, held: str = "") -> str:
        if self.module:
            return f"Decode.message({self.module}, {held}, raw, depth)"
        return f"Decode.value({self.type}, raw)"

    def _clause(self, wire_type: int, body: list[str]) -> list[str]:
        depth = "depth" if self.module else "_depth"
        head = f"def __put__(message, {self.number}, {wire_type}, raw, {depth}) do"
        return [head, *indented(body, 2), "end"]


def field_of(
    proto: FieldDescriptorProto, message: DescriptorProto, package: str, enum_zeros: Mapping[str, str]
) -> Field:
    """The field that a descriptor describes.

    `enum_zeros` holds the name of the first value of each enum, by the enum's full name. Raises Unsupported.
    """
    if proto.options.HasField("packed") and not proto.options.packed:
        raise Unsupported(f"field {message.name}.{proto.name}: packed = false")
    module = ""
    if proto.type == _T.TYPE_MESSAGE:
        module = short_module(proto.type_name, package)
        kind = Scalar(name="", wire_type=BYTES, elixir=f"{module}.t()", default="nil")
        type_term = f"{{:message, {module}}}"
    elif proto.type == _T.TYPE_ENUM:
        enum = short_module(proto.type_name, package)
        zero = f":{enum_zeros[proto.type_name]}"
        kind = Scalar(name="", wire_type=VARINT, elixir=f"{enum}.t()", default=zero)
        type_term = f"{{:enum, {enum}}}"
    elif proto.type in _SCALARS:
        kind = _SCALARS[proto.type]
        type_term = f":{kind.name}"
    else:
        raise Unsupported(f"field {message.name}.{proto.name}: type {proto.type}")
    oneof = ""
    if proto.label == _T.LABEL_REPEATED:
        presence = Presence.REPEATED
    elif proto.HasField("oneof_index") and not proto.proto3_optional:
        presence = Presence.ONEOF
        oneof = message.oneof_decl[proto.oneof_index].name
    elif proto.proto3_optional or module:
        presence = Presence.EXPLICIT
    else:
        presence = Presence.IMPLICIT
    return Field(
        number=proto.number,
        name=proto.name,
        presence=presence,
        oneof=oneof,
        wire_type=kind.wire_type,
        type=type_term,
        module=module,
        elixir=kind.elixir,
        zero=kind.default,
    )
