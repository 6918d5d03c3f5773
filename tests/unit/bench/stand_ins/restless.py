"""A subject that is to be stopped while others are measured. Its version is its process id."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from bench.lifetime import end_with_parent
from bench.subject import Ways, serve


@contextmanager
def started(size: int) -> Iterator[Ways]:
    end_with_parent()
    calls = {"barrier": lambda count: [1.0] * count}
    yield Ways({"pid": str(os.getpid())}, {"calls": calls}, {}, [os.getpid()])


if __name__ == "__main__":
    serve(started)
