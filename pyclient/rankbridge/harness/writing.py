"""Scenarios as files: TOML with comments for people, JSON for programs."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

_BARE = re.compile(r"[A-Za-z0-9_-]+")


class NoWord(Exception):
    """Something that the format cannot hold."""


def write(path: Path, data: Mapping[str, Any], comments: Sequence[str] = ()) -> None:
    """Writes a scenario: JSON if the file's name ends so, which has no comments, else TOML.

    Raises:
        NoWord: TOML has no null; JSON has.
        OSError: The file cannot be written.
    """
    text = json.dumps(data, indent=1) + "\n" if path.suffix == ".json" else as_toml(data, comments)
    path.write_text(text, encoding="utf-8")


def as_toml(data: Mapping[str, Any], comments: Sequence[str] = ()) -> str:
    """Gives a scenario as TOML: a table of its own for each tensor and each step.

    Raises:
        NoWord: It has a null, which TOML has not.
    """
    return "\n".join([*(f"# {' '.join(it.split())}" for it in comments), *_lines(data), ""])


def _lines(data: Mapping[str, Any]) -> Iterator[str]:
    apart = ("tensors", "step")
    for key, value in data.items():
        if key not in apart:
            yield f"{_key(key)} = {_inline(value)}"
    for name, described in data.get("tensors", {}).items():
        yield from _table(f"[tensors.{_key(name)}]", described)
    for step in data["step"]:
        yield from _table("[[step]]", step)


def _table(head: str, table: Mapping[str, Any]) -> Iterator[str]:
    yield ""
    yield head
    for key, value in table.items():
        if key == "expect":
            yield from (f"expect.{_key(word)} = {_inline(it)}" for word, it in value.items())
        else:
            yield f"{_key(key)} = {_inline(value)}"


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _text(name)


def _inline(value: Any) -> str:
    match value:
        case None:
            raise NoWord("TOML has no null: name a file that ends with .json")
        case bool():
            return str(value).lower()
        case float() if not math.isfinite(value):
            return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
        case dict():
            inner = ", ".join(f"{_key(str(key))} = {_inline(it)}" for key, it in value.items())
            return f"{{ {inner} }}" if inner else "{}"
        case list() | tuple():
            return f"[{', '.join(map(_inline, value))}]"
        case str():
            return _text(value)
    return repr(value)


def _text(text: str) -> str:
    # JSON's escapes are TOML's, but for halves of pairs and for DEL.
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return json.dumps(whole, ensure_ascii=False).replace("\x7f", "\\u007f")
