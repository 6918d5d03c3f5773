"""One copy of memory within a process: the floor of what a tensor takes to another process of the same host."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib.metadata import version

import numpy

from bench.operation import TRANSFERRED
from bench.subject import Ways, serve, timed


@cache
def _arrays(nbytes: int) -> tuple[numpy.ndarray, numpy.ndarray]:
    # Both touched: no page is made while it is measured.
    return numpy.ones(nbytes, numpy.uint8), numpy.zeros(nbytes, numpy.uint8) + 1


def _copying(nbytes: int) -> Callable[[], None]:
    def copy() -> None:
        source, destination = _arrays(nbytes)
        numpy.copyto(destination, source)

    return copy


@contextmanager
def started(size: int) -> Iterator[Ways]:
    """Nothing is started: the number of ranks makes no difference."""
    operations = {f"copy_{name}": timed(_copying(nbytes)) for name, nbytes in TRANSFERRED.items()}
    yield Ways({"numpy": version("numpy")}, {"memcpy": operations}, {})


if __name__ == "__main__":
    serve(started)
