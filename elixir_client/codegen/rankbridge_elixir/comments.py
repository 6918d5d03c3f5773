"""Comments of a .proto file, by the place of what they describe."""

from google.protobuf.descriptor_pb2 import FileDescriptorProto

Path = tuple[int, ...]

MESSAGE, ENUM, SERVICE = 4, 5, 6
"""Field numbers of FileDescriptorProto that begin a path."""
FIELD, NESTED_MESSAGE, NESTED_ENUM, ONEOF = 2, 3, 4, 8
"""Field numbers of DescriptorProto."""
MEMBER = 2
"""Field number of the values of an enum and of the methods of a service."""


class Comments:
    """The leading comments of one file."""

    def __init__(self, file: FileDescriptorProto) -> None:
        """Reads them from the file's source code info."""
        self._lines: dict[Path, list[str]] = {}
        for location in file.source_code_info.location:
            if location.leading_comments:
                lines = [line.removeprefix(" ").rstrip() for line in location.leading_comments.splitlines()]
                self._lines[tuple(location.path)] = lines

    def lines(self, path: Path) -> list[str]:
        """Lines of the comment, ready for an Elixir heredoc. Empty when there is none."""
        return [escape(line) for line in self._lines.get(path, [])]


def escape(line: str) -> str:
    """The line as it must be written inside a heredoc."""
    return line.replace("\\", "\\\\").replace("#{", "\\#{").replace('"""', '\\"""')
