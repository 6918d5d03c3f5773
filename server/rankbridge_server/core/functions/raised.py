"""Exceptions of the user's functions, in words."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import FrameType, TracebackType

from ..errors import BridgeError, ErrorCode, Raised, shown
from ..frames import current_frames

MAX_TRACEBACK = 16 * 1024
_OURS = str(Path(__file__).parents[2]) + "/"
_LIBRARIES = (*{f"{prefix}/lib" for prefix in (sys.prefix, sys.base_prefix)}, "<frozen", _OURS)


def function_failed(function: str, raised: Raised) -> BridgeError:
    """The error of a rank whose function has raised."""
    return BridgeError.of(
        ErrorCode.FUNCTION_FAILED, f"function {function!r} raised {raised}", indefinite=True, raised=raised
    )


def raised_by(error: BaseException, rank: int) -> Raised:
    """An exception with its traceback: the user's own frames first, the innermost at the top."""
    kind = type(error)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    own = list(_own_frames(error.__traceback__))
    whole = "".join(traceback.format_exception(_without_ours(error)))
    text = "\n".join([*own, "", whole] if own else [whole]).rstrip()
    return Raised(
        rank=rank,
        type=name,
        text=shown(str(error)),
        traceback=text[:MAX_TRACEBACK],
        where=own[0].partition(": ")[0] if own else "",
    )


def is_users(frame: FrameType) -> bool:
    """Whether a frame is of the user's own code: neither Python's, nor a library's, nor ours."""
    return is_users_file(frame.f_code.co_filename)


def place_of(thread: int) -> str:
    """Where a thread is: the innermost line of the user's own code, "data.py:88 in next_batch"; empty: in none."""
    with current_frames() as frames:
        frame = frames.get(thread)
        while frame is not None and not is_users(frame):
            frame = frame.f_back
        if frame is None:
            return ""
        return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno} in {frame.f_code.co_name}"


def is_users_file(file: str) -> bool:
    """Whether a file is the user's own."""
    return not file.startswith(_LIBRARIES)


def _own_frames(trace: TracebackType | None) -> Iterator[str]:
    frames = [
        summary
        for (frame, _), summary in zip(traceback.walk_tb(trace), traceback.extract_tb(trace), strict=True)
        if is_users(frame)
    ]
    for it in reversed(frames):
        yield f"{Path(it.filename).name}:{it.lineno} in {it.name}: {it.line}"


def _without_ours(error: BaseException) -> BaseException:
    """The exception from where the user's function began."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename.startswith(_OURS):
        trace = trace.tb_next
    return error if trace is None else error.with_traceback(trace)
