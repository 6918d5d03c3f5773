"""Breakpoints as people write them: "group=dp kind=all_reduce number=1200"."""

from __future__ import annotations

import difflib
import math
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, NoReturn

from rankbridge.errors import InvalidArgumentError
from rankbridge.v1 import hold_service_pb2 as pb


class ParsedBreakpoint(NamedTuple):
    """A breakpoint, and the ranks on which it is set; none: on all."""

    message: pb.Breakpoint
    ranks: tuple[int, ...]


def parse_breakpoint(text: str) -> ParsedBreakpoint:
    """Reads a breakpoint.

    Raises:
        InvalidArgumentError: It has a word that is none, a word twice, or a wrong value.
    """
    message, seen = pb.Breakpoint(), set[str]()
    ranks: tuple[int, ...] = ()
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise InvalidArgumentError(f"the breakpoint cannot be read: {error}", got=text) from error
    for word in words:
        name, _, value = word.partition("=")
        if name not in WORDS:
            _unknown(name)
        if name in seen:
            raise InvalidArgumentError(f"the breakpoint says `{name}` twice", got=text)
        seen.add(name)
        if name == "ranks":
            ranks = _ranks(value)
        elif name == "mismatch":
            if value:
                _wrong(name, value, "no value")
            message.mismatch = True
        else:
            _SETTERS[name](message, value)
    return ParsedBreakpoint(message, ranks)


def _unknown(name: str) -> NoReturn:
    near = difflib.get_close_matches(name, WORDS, 1)
    meant = f"; did you mean `{near[0]}`?" if near else ""
    raise InvalidArgumentError(
        f"a breakpoint has no word `{name}`{meant}", expected=", ".join(WORDS), got=name
    )


def _wrong(name: str, value: str, expected: str) -> NoReturn:
    raise InvalidArgumentError(
        f"`{name}` of a breakpoint is wrong", expected=expected, got=value or "nothing"
    )


def _text(field: str) -> Callable[[pb.Breakpoint, str], None]:
    def put(message: pb.Breakpoint, value: str) -> None:
        if not value:
            _wrong(field, value, "a name")
        setattr(message, field, value)

    return put


def _number(message: pb.Breakpoint, value: str) -> None:
    if not value.isdecimal() or not 0 < int(value) < 2**64:
        _wrong("number", value, "1 or more")
    message.number = int(value)


def _caller(message: pb.Breakpoint, value: str) -> None:
    names = {"controller": pb.CALLER_CONTROLLER, "script": pb.CALLER_SCRIPT}
    if value not in names:
        _wrong("caller", value, "controller or script")
    message.caller = names[value]


def _has(message: pb.Breakpoint, value: str) -> None:
    for it in value.split(","):
        if it not in ("nan", "inf"):
            _wrong("has", value, "nan, inf, or nan,inf")
        setattr(message, it, True)


def _seconds(message: pb.Breakpoint, value: str) -> None:
    seconds = _float("slower", value, "seconds, more than 0")
    if not 0 < seconds * 1e6 < 2**63:
        _wrong("slower", value, "seconds, more than 0")
    message.slower_us = max(1, round(seconds * 1e6))


def _above(message: pb.Breakpoint, value: str) -> None:
    bound = _float("above", value, "a number, 0 or more")
    if not 0 <= bound < math.inf:
        _wrong("above", value, "a number, 0 or more")
    message.above = bound


def _float(name: str, value: str, expected: str) -> float:
    try:
        return float(value)
    except ValueError:
        _wrong(name, value, expected)


def _ranks(value: str) -> tuple[int, ...]:
    """Reads "0-2,5"."""
    found: list[int] = []
    for part in value.split(","):
        first, dash, last = part.partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()) or len(part) > 20:
            _wrong("ranks", value, "ranks, as 0-2,5")
        least, most = int(first), int(last or first)
        if not least <= most < least + 65_536:
            _wrong("ranks", value, "ranks, as 0-2,5")
        found += range(least, most + 1)
    return tuple(dict.fromkeys(found))


_SETTERS: Mapping[str, Callable[[pb.Breakpoint, str], Any]] = {
    "group": _text("group"),
    "kind": _text("operation"),
    "number": _number,
    "at": _text("site"),
    "function": _text("function"),
    "caller": _caller,
    "has": _has,
    "above": _above,
    "slower": _seconds,
}
WORDS: Sequence[str] = (*_SETTERS, "mismatch", "ranks")
"""What a breakpoint can say."""
