"""Where functions of Python's C interface are in another process."""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

_LOADED, _EXECUTABLE, _DYNAMIC_SYMBOLS, _X86_64 = 1, 1, 11, 62
_INT3 = b"\xcc"


@dataclass(frozen=True)
class Functions:
    """Addresses. `trap`: of an instruction int3."""

    by_name: dict[str, int]
    trap: int


@dataclass(frozen=True)
class _Mapping:
    start: int
    end: int
    offset: int
    path: str


def find(pid: int, names: Iterable[str]) -> Functions | None:
    """The functions, of the one file among those that the process runs code of that has them all; None: none has.

    Raises OSError: this user may not look at the process, or it has ended.
    """
    wanted = tuple(names)
    for mapping in _code(pid):
        try:
            with open(f"/proc/{pid}/root{mapping.path}", "rb") as file:
                content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (FileNotFoundError, ValueError):
            # It was replaced, or is no file.
            continue
        with content:
            found = _in_file(content, mapping, wanted)
            if found is not None:
                return found
    return None


def _code(pid: int) -> Iterator[_Mapping]:
    """Files of which the process runs code; those that are named like Python first."""
    found = []
    for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
        span, permissions, offset, _, _, *path = line.split(maxsplit=5)
        if "x" in permissions and path and path[0].startswith("/"):
            start, end = (int(it, 16) for it in span.split("-"))
            found.append(_Mapping(start, end, int(offset, 16), path[0]))
    return iter(sorted(found, key=lambda it: not Path(it.path).name.startswith(("python", "libpython"))))


def _in_file(content: mmap.mmap, mapping: _Mapping, wanted: tuple[str, ...]) -> Functions | None:
    if content[:6] != b"\x7fELF\x02\x01" or struct.unpack_from("<H", content, 18)[0] != _X86_64:
        return None
    try:
        places = _symbols(content, wanted)
        bias = _bias(content, mapping)
    except struct.error:
        return None
    trap = content.find(_INT3, mapping.offset, mapping.offset + mapping.end - mapping.start)
    if bias is None or trap < 0 or len(places) < len(wanted):
        return None
    return Functions({name: it + bias for name, it in places.items()}, mapping.start + trap - mapping.offset)


def _symbols(content: mmap.mmap, wanted: tuple[str, ...]) -> dict[str, int]:
    """What the file says of the symbols that it exports."""
    (start,) = struct.unpack_from("<Q", content, 0x28)
    size, count = struct.unpack_from("<HH", content, 0x3A)
    sections = [struct.unpack_from("<IIQQQQIIQQ", content, start + it * size) for it in range(count)]
    found: dict[str, int] = {}
    for _, kind, _, _, offset, length, link, _, _, _ in sections:
        if kind != _DYNAMIC_SYMBOLS:
            continue
        names = content[sections[link][4] : sections[link][4] + sections[link][5]]
        at = {names.find(f"\0{it}\0".encode()) + 1: it for it in wanted}
        at.pop(0, None)
        for name, _, _, section, value, _ in struct.iter_unpack(
            "<IBBHQQ", content[offset : offset + length - length % 24]
        ):
            if section and name in at:
                found[at[name]] = value
    return found


def _bias(content: mmap.mmap, mapping: _Mapping) -> int | None:
    """By how much the file's addresses are moved in the process."""
    (start,) = struct.unpack_from("<Q", content, 0x20)
    size, count = struct.unpack_from("<HH", content, 0x36)
    for number in range(count):
        kind, flags, offset, address, _, length = struct.unpack_from(
            "<IIQQQQ", content, start + number * size
        )
        # A segment may begin within the mapping's first page.
        last = mapping.offset + mapping.end - mapping.start
        if kind == _LOADED and flags & _EXECUTABLE and mapping.offset < offset + length and offset < last:
            return int(mapping.start - (address + mapping.offset - offset))
    return None
