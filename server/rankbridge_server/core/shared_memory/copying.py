"""Copying memory while other threads run."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

# From this size on, a second thread pays: one thread alone does not use the memory's whole bandwidth.
_LARGE = 8 << 20
_PIECE = 2 << 20
_ALONE = len(os.sched_getaffinity(0)) < 2

_helper = ThreadPoolExecutor(1, thread_name_prefix="copying")


def copy(target: memoryview, source: memoryview) -> None:
    """Copies `source` to the beginning of `target`. Both are flat bytes, and `target` is at least as long."""
    nbytes = len(source)
    if not nbytes:
        return
    if source.readonly:
        target[:nbytes] = source
        return
    to, of = _address(target), _address(source)
    if nbytes < _LARGE or _ALONE:
        # A foreign call releases the interpreter lock; an assignment to a slice does not.
        ctypes.memmove(to, of, nbytes)
        return

    def piece(start: int) -> None:
        ctypes.memmove(to + start, of + start, min(_PIECE, nbytes - start))

    _shared(piece, nbytes)


def _shared(piece: Callable[[int], None], nbytes: int) -> None:
    """Copies all pieces, together with the helper thread if that starts in time."""
    starts = iter(range(0, nbytes, _PIECE))
    helping = _helper.submit(_each, piece, starts)
    _each(piece, starts)
    if not helping.cancel():
        helping.result()


def _each(piece: Callable[[int], None], starts: Iterator[int]) -> None:
    for start in starts:
        piece(start)


def _address(memory: memoryview) -> int:
    return ctypes.addressof(ctypes.c_char.from_buffer(memory))
