"""Copying large memory with a second thread."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt

# From so many bytes on, a second thread is worth its while; one alone does not use all that memory can give.
_LARGE = 8 << 20
_PIECE = 2 << 20
_ALONE = len(os.sched_getaffinity(0)) < 2 if hasattr(os, "sched_getaffinity") else False

_helper = ThreadPoolExecutor(1, thread_name_prefix="rankbridge-copying")


def copy(target: memoryview, source: memoryview) -> None:
    """Copies `source` to `target`: contiguous bytes, as many of either. Other threads run meanwhile."""
    to, of = np.frombuffer(target, np.uint8), np.frombuffer(source, np.uint8)
    if of.nbytes < _LARGE or _ALONE:
        np.copyto(to, of)
        return
    starts = iter(range(0, of.nbytes, _PIECE))
    helping = _helper.submit(_pieces, to, of, starts)
    _pieces(to, of, starts)
    # It may not have come to it at all, in a process that was forked it never does.
    if not helping.cancel():
        helping.result()


def _pieces(to: npt.NDArray[Any], of: npt.NDArray[Any], starts: Iterator[int]) -> None:
    for start in starts:
        np.copyto(to[start : start + _PIECE], of[start : start + _PIECE])
