"""The lines of code that call, as the record has them."""

from __future__ import annotations

import os
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any, NamedTuple

_DEEPEST = 40
_FURTHEST = 12
"""Frames between the line of a library that calls and the script's: each costs time in every such call."""
_PACKAGES = ("/site-packages/", "/dist-packages/")
_STANDARD = (os.path.dirname(os.__file__) + os.sep, "<frozen ")


class Site(NamedTuple):
    """A line of code that calls. `number`: of its text in the record; 0: it has none.

    `text`: "file:line"; of a line of a library that a script's has led to, "loop.py:7 < file:line".
    """

    number: int
    text: str
    codes: tuple[CodeType, ...]
    """Kept, as their identities are the key."""
    is_of_library: bool = False


NOWHERE = Site(0, "", ())
"""No Python calls, as in a backward pass."""


class Sites:
    """Knows each line that has called. `write`: writes a text into the record and gives its number, or 0."""

    def __init__(self, torch: Any, write: Callable[[dict[str, Any]], int]) -> None:
        self._write = write
        self._sites: dict[tuple[int, ...], Site] = {}
        # Code of ours and of torch, by identity: a code object hashes all of its instructions.
        self._own_code: dict[int, CodeType] = {}
        self._library_code: dict[int, CodeType] = {}
        self._own = (os.path.dirname(torch.__file__) + os.sep, os.path.dirname(__file__) + os.sep)

    def forget(self) -> None:
        """Lets each line be written again, into a record that has begun after it was seen."""
        self._sites.clear()

    def of(self, frame: FrameType | None) -> Site:
        """The line outside of torch that calls, from this frame outwards; of a library, with the script's line."""
        for _ in range(_DEEPEST):
            # A thread of C++ alone has none.
            if frame is None:
                break
            code = frame.f_code
            key = id(code)
            if key not in self._own_code:
                known = self._sites.get((key, frame.f_lasti))
                if known is None and code.co_filename.startswith(self._own):
                    self._own_code[key] = code
                else:
                    known = known or self._new_site((frame,))
                    return self._with_script(known, frame) if known.is_of_library else known
            frame = frame.f_back
        return NOWHERE

    def _with_script(self, site: Site, library: FrameType) -> Site:
        frame = library.f_back
        for _ in range(_FURTHEST):
            if frame is None:
                break
            code = frame.f_code
            key = id(code)
            if key not in self._library_code:
                known = self._sites.get((id(library.f_code), library.f_lasti, key, frame.f_lasti))
                if known is not None:
                    return known
                if not _is_library(code.co_filename) and not code.co_filename.startswith(self._own):
                    return self._new_site((library, frame))
                self._library_code[key] = code
            frame = frame.f_back
        return site

    def _new_site(self, frames: tuple[FrameType, ...]) -> Site:
        """`frames`: of the line that calls, and of the script's, if that is another one."""
        inner, script = frames[0], frames[-1]
        code, file = script.f_code, script.f_code.co_filename
        via = via_name = ""
        if script is not inner:
            via = f"{os.path.basename(inner.f_code.co_filename)}:{inner.f_lineno} < "
            via_name = f"{inner.f_code.co_name} {via}"
        content = {"site": f"{via_name}{code.co_name}", "file": file, "line": script.f_lineno}
        number = self._write(content)
        key = tuple(part for it in frames for part in (id(it.f_code), it.f_lasti))
        site = self._sites[key] = Site(
            number, f"{via}{file}:{script.f_lineno}", tuple(it.f_code for it in frames), _is_library(file)
        )
        return site


def _is_library(file: str) -> bool:
    """Whether code of this file is of an installed package, or of Python itself."""
    return file.startswith(_STANDARD) or any(it in file for it in _PACKAGES)
