"""Small messages, which travel with what announces them: they need no backend, and no answer before they move."""

from __future__ import annotations

import ctypes
from datetime import timedelta
from typing import Any

MOST_BYTES = 2048
"""Of a tensor that is carried. With its announcement it is read from a link at once."""


def is_carried(tensor: Any) -> bool:
    """Whether a tensor is small enough: both ends say the same, once they agree."""
    return bool(tensor.numel() * tensor.element_size() <= MOST_BYTES)


def content_of(tensor: Any) -> bytes:
    """The bytes of a contiguous tensor on the CPU."""
    return ctypes.string_at(tensor.data_ptr(), tensor.numel() * tensor.element_size())


def fill(tensor: Any, content: bytes) -> None:
    """Writes them. Raises ValueError where they are not as many as the tensor has."""
    size = tensor.numel() * tensor.element_size()
    if len(content) != size:
        raise ValueError(f"{len(content)} bytes came for a tensor of {size}")
    ctypes.memmove(tensor.data_ptr(), content, size)


class CarriedWork:
    """What a backend's work says of a send or a receive that is done. `source`: of a receive, by rank in the group."""

    def __init__(self, source: int | None) -> None:
        self._source = source

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Nothing is left to be waited for."""
        return True

    def is_completed(self) -> bool:
        """It is."""
        return True

    def is_success(self) -> bool:
        """It has not failed."""
        return True

    def exception(self) -> None:
        """It has not failed."""

    def result(self) -> Any:
        """As Gloo's."""
        raise RuntimeError("result() not implemented.")

    def _source_rank(self) -> int:
        if self._source is None:
            raise RuntimeError("a send has no source")
        return self._source
