"""The line of the caller's own code that makes a call."""

from __future__ import annotations

import inspect
import os
import sys
import sysconfig
from contextlib import AbstractContextManager
from contextvars import ContextVar, Token
from types import CodeType, FrameType
from typing import NamedTuple

_MOST_KEPT = 4096

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_STANDARD_LIBRARY = sysconfig.get_path("stdlib") + os.sep
_INSTALLED = tuple(
    os.path.join(_STANDARD_LIBRARY, name) + os.sep for name in ("site-packages", "dist-packages")
)
_COROUTINE = inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR | inspect.CO_ITERABLE_COROUTINE


class _Known(NamedTuple):
    """What is kept of a piece of code. `lines`: its sites, by instruction; None: it is nobody's own."""

    # Also keeps the id, by which it is found, from becoming another's: to hash code takes longer.
    code: CodeType
    is_coroutine: bool
    lines: dict[int, str] | None


_KNOWN: dict[int, _Known] = {}
_SAID: ContextVar[str | None] = ContextVar("site", default=None)


def at_site(site: str) -> AbstractContextManager[None]:
    """Lets the calls that are made within it say `site`, in place of the line of code that makes them.

    For a program that calls for somebody else: ``with rankbridge.at_site("jobs/nightly.toml, step 3"): ...``. Errors
    about several ranks show it. Of a longer text the ranks keep the last 256 bytes.
    """
    return _AtSite(site)


class _AtSite(AbstractContextManager[None]):
    # `contextlib.contextmanager` cannot pass on exceptions that are frozen dataclasses with slots.
    def __init__(self, site: str) -> None:
        self._site = site
        self._tokens: list[Token[str | None]] = []

    def __enter__(self) -> None:
        self._tokens.append(_SAID.set(self._site))

    def __exit__(self, *_: object) -> None:
        _SAID.reset(self._tokens.pop())


def call_site() -> str:
    """Gives "file:line" of the innermost caller that is neither this package nor Python's own library.

    Empty: there is none, as in a task that was made of the call itself: its coroutine is called by the event loop.
    """
    said = _SAID.get()
    if said is not None:
        return said
    frame: FrameType | None = sys._getframe(1)
    is_awaited = False
    while frame is not None:
        code = frame.f_code
        known = _KNOWN.get(id(code)) or _learn(code)
        if is_awaited and not known.is_coroutine:
            return ""
        if known.lines is not None:
            at = frame.f_lasti
            return known.lines.get(at) or known.lines.setdefault(at, _site(code, frame.f_lineno))
        is_awaited = known.is_coroutine
        frame = frame.f_back
    return ""


def _learn(code: CodeType) -> _Known:
    if len(_KNOWN) >= _MOST_KEPT:
        # A program that makes code all the time, as a notebook does.
        _KNOWN.clear()
    lines: dict[int, str] | None = None if _is_nobodys_own(code.co_filename) else {}
    known = _KNOWN[id(code)] = _Known(code, bool(code.co_flags & _COROUTINE), lines)
    return known


def _is_nobodys_own(file: str) -> bool:
    if file.startswith(_STANDARD_LIBRARY) and not file.startswith(_INSTALLED):
        return True
    # The functions of operations are made when the package is imported; frozen modules are Python's own.
    return file.startswith((_PACKAGE, "<frozen ")) or file.endswith(" of rankbridge>")


def _site(code: CodeType, line: int | None) -> str:
    # The bytes of a file's name that are no text cannot be written.
    return f"{code.co_filename}:{line or code.co_firstlineno}".encode(errors="replace").decode()
