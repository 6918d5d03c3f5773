"""Where the keys and values of a TOML or JSON text stand. The text has been parsed already, and is right."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field

from rankbridge.harness.problems import Path

_SPACE = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_BARE_VALUE = re.compile(r"[^,\]}#\n]*")
_STRING = re.compile(
    r'"""(?:[^\\]|\\.)*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'',
    re.DOTALL,
)


@dataclass
class Positions:
    """Offsets by path.

    Attributes:
        text: What is located in.
        found: Offset of each key, and of each item of a list.
        twice: Keys that stand twice in one table, which JSON allows.
    """

    text: str
    found: dict[Path, int] = field(default_factory=dict)
    twice: list[Path] = field(default_factory=list)

    def of(self, path: Path) -> tuple[int, int]:
        """Gives line and column of a path, or of what it is in."""
        while path and path not in self.found:
            path = path[:-1]
        offset = self.found.get(path, 0)
        return line_and_column(self.text, offset)


def line_and_column(text: str, offset: int) -> tuple[int, int]:
    """Gives line and column of an offset, both from 1."""
    before = text[:offset]
    return before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1


def positions_in_toml(text: str) -> Positions:
    """Locates everything in a TOML text."""
    return _Scanner(text, "=").document()


def positions_in_json(text: str) -> Positions:
    """Locates everything in a JSON text."""
    scanner = _Scanner(text, ":")
    scanner.space()
    scanner.value(())
    return scanner.positions


class _Scanner:
    """Goes once through a text. Tables and lists look alike in both languages."""

    def __init__(self, text: str, separator: str) -> None:
        self.text = text
        self.at = 0
        self.separator = separator
        self.positions = Positions(text)
        self.lengths: dict[Path, int] = {}

    def document(self) -> Positions:
        """A TOML document: headers, and keys with values."""
        inside: Path = ()
        self.space()
        while self.at < len(self.text):
            if self.text.startswith("[[", self.at):
                inside = self.header(2)
                length = self.lengths.get(inside, 0)
                self.lengths[inside] = length + 1
                inside = (*inside, length)
                self.positions.found.setdefault(inside, self.positions.found[inside[:-1]])
            elif self.text[self.at] == "[":
                inside = self.header(1)
            else:
                self.entry(inside)
            self.space()
        return self.positions

    def header(self, brackets: int) -> Path:
        """A line with the name of a table."""
        start = self.at
        self.at += brackets
        path: Path = ()
        for part in self.dotted():
            path = (*path, part)
            self.positions.found.setdefault(path, start)
            if path in self.lengths and part is not None:
                path = (*path, self.lengths[path] - 1)
        self.at += brackets
        # Of a list of tables, the list itself is meant.
        if path and isinstance(path[-1], int) and brackets == 2:
            path = path[:-1]
        self.positions.found[path] = start
        return path

    def entry(self, inside: Path) -> None:
        """A key and its value."""
        start = self.at
        path = inside
        for part in self.dotted():
            path = (*path, part)
            if path not in self.positions.found:
                self.positions.found[path] = start
            elif self.separator == ":":
                self.positions.twice.append(path)
                self.positions.found[path] = start
        self.at += len(self.separator)
        self.space()
        self.value(path)

    def dotted(self) -> list[str]:
        """A key, or several with dots between."""
        parts = []
        while True:
            self.space()
            if self.text[self.at] in "\"'":
                parts.append(_unquoted(self.string()))
            else:
                matched = _BARE_KEY.match(self.text, self.at)
                assert matched is not None, "the text has been parsed already"
                parts.append(matched[0])
                self.at = matched.end()
            self.space()
            if self.text[self.at] != ".":
                return parts
            self.at += 1

    def value(self, path: Path) -> None:
        """A value, with all that is in it."""
        match self.text[self.at]:
            case "{":
                self.items(path, "}")
            case "[":
                self.items(path, "]")
            case '"' | "'":
                self.string()
            case _:
                matched = _BARE_VALUE.match(self.text, self.at)
                assert matched is not None
                self.at = matched.end()

    def items(self, path: Path, end: str) -> None:
        """What is in a list or a table."""
        self.at += 1
        place = 0
        self.space()
        while self.text[self.at] != end:
            if end == "}":
                self.entry(path)
            else:
                self.positions.found[(*path, place)] = self.at
                self.value((*path, place))
                place += 1
            self.space()
            if self.text[self.at] == ",":
                self.at += 1
                self.space()
        self.at += 1

    def string(self) -> str:
        """A string, with its quotes."""
        matched = _STRING.match(self.text, self.at)
        assert matched is not None, "the text has been parsed already"
        self.at = matched.end()
        return matched[0]

    def space(self) -> None:
        """Spaces, ends of lines and comments."""
        matched = _SPACE.match(self.text, self.at)
        assert matched is not None
        self.at = matched.end()


def _unquoted(quoted: str) -> str:
    if quoted.startswith("'"):
        return quoted[1:-1]
    try:
        return str(json.loads(quoted))
    except ValueError:
        # An escape that only TOML has.
        return quoted[1:-1]
