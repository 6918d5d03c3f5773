"""The variables of a thread that is held, in words that run no code of the user's."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from types import FrameType
from typing import Any, NamedTuple

from ..frames import current_frames
from ..functions.raised import is_users

MAX_FRAMES = 32
MAX_VARIABLES = 64
_MAX_TEXT = 200
_MAX_ITEMS = 8
_MAX_DEPTH = 3
_MAX_BITS = 512
_PLAIN = (bool, float, complex, type(None))
_TENSORS = ("torch.Tensor", "torch.nn.parameter.Parameter")


class FrameVariables(NamedTuple):
    """A call of the user's code. `function`: with its class. `variables`: by name, what each is in words."""

    function: str
    file: str
    line: int
    variables: tuple[tuple[str, str], ...]


def variables_of(thread: int) -> list[FrameVariables]:
    """The calls of the user's code in which a thread is, the innermost first; by Python's number of the thread."""
    with current_frames() as frames:
        return [
            FrameVariables(it.f_code.co_qualname, it.f_code.co_filename, it.f_lineno, _variables(it))
            for it in islice(_users_frames(frames.get(thread)), MAX_FRAMES)
        ]


def _users_frames(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        if is_users(frame):
            yield frame
        frame = frame.f_back


def _variables(frame: FrameType) -> tuple[tuple[str, str], ...]:
    # Of a module, these are its functions and imports, too.
    named = ((name, it) for name, it in frame.f_locals.items() if not name.startswith("__"))
    return tuple((name, written(it)) for name, it in islice(named, MAX_VARIABLES))


def written(value: Any, depth: int = 0) -> str:
    """A value in at most 200 characters. Only types of Python's own are looked into: others may do anything."""
    kind = type(value)
    text = _written(value, kind, depth)
    return text if len(text) <= _MAX_TEXT else f"{text[: _MAX_TEXT - 3]}..."


def _written(value: Any, kind: type, depth: int) -> str:
    if kind in _PLAIN:
        return repr(value)
    if kind is int:
        return repr(value) if value.bit_length() <= _MAX_BITS else f"int of {value.bit_length()} bits"
    if kind in (str, bytes):
        return repr(value[:_MAX_TEXT])
    name = f"{kind.__module__}.{kind.__qualname__}"
    if name in _TENSORS:
        return f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}"
    if depth < _MAX_DEPTH:
        if kind is list:
            return f"[{_items(value, depth)}]"
        if kind is tuple:
            return f"({_items(value, depth)}{',' if len(value) == 1 else ''})"
        if kind in (set, frozenset):
            return f"{{{_items(value, depth)}}}" if value else f"{kind.__name__}()"
        if kind is dict:
            pairs = islice(value.copy().items(), _MAX_ITEMS)
            parts = [f"{written(key, depth + 1)}: {written(it, depth + 1)}" for key, it in pairs]
            return f"{{{', '.join(_and_more(parts, len(value)))}}}"
    return kind.__qualname__ if kind.__module__ == "builtins" else name


def _items(values: Any, depth: int) -> str:
    # Of a copy: another thread may change it.
    parts = [written(it, depth + 1) for it in islice(tuple(values), _MAX_ITEMS)]
    return ", ".join(_and_more(parts, len(values)))


def _and_more(parts: list[str], size: int) -> Iterable[str]:
    return [*parts, "..."] if size > len(parts) else parts
