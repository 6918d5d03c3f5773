"""The module of one service: a table of its methods."""

from google.protobuf.descriptor_pb2 import MethodDescriptorProto, ServiceDescriptorProto

from rankbridge_elixir import comments as place
from rankbridge_elixir.comments import Comments, Path
from rankbridge_elixir.layout import heredoc, indented, separated
from rankbridge_elixir.names import namespace_of, short_module, snake


def service_lines(proto: ServiceDescriptorProto, package: str, path: Path, notes: Comments) -> list[str]:
    """The module, as `mix format` leaves it."""
    methods = [
        _method(method, f"/{package}.{proto.name}", package, notes.lines((*path, place.MEMBER, index)))
        for index, method in enumerate(proto.method)
    ]
    calls = [f"{snake(method.name)}()" for method in proto.method]
    table = [
        '@doc "Every method of the service."',
        "@spec methods() :: [Rpc.t()]",
        "def methods do",
        "  [",
        *(f"    {call}," for call in calls[:-1]),
        f"    {calls[-1]}",
        "  ]",
        "end",
    ]
    aliases = [f"alias {namespace_of(package)}", "alias RankBridge.Protobuf.Rpc"]
    blocks = [heredoc("moduledoc", notes.lines(path)), aliases, table, *methods]
    name = f"{namespace_of(package)}.{proto.name}"
    return [f"defmodule {name} do", *indented(separated(blocks), 2), "end"]


def _method(method: MethodDescriptorProto, service: str, package: str, text: list[str]) -> list[str]:
    return [
        *heredoc("doc", text),
        f"@spec {snake(method.name)}() :: Rpc.t()",
        f"def {snake(method.name)} do",
        "  %Rpc{",
        f'    path: "{service}/{method.name}",',
        f"    request: {short_module(method.input_type, package)},",
        f"    response: {short_module(method.output_type, package)},",
        f"    client_stream?: {str(method.client_streaming).lower()},",
        f"    server_stream?: {str(method.server_streaming).lower()}",
        "  }",
        "end",
    ]
