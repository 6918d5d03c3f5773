"""A subject with a process of its own that is to be stopped while others are measured. Its version is that one's id."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from bench.subject import Ways, serve

READ_ALL = "import sys; sys.stdin.read()"


@contextmanager
def started(size: int) -> Iterator[Ways]:
    kept = subprocess.Popen([sys.executable, "-c", READ_ALL], stdin=subprocess.PIPE)
    try:
        yield Ways(
            {"pid": str(kept.pid)}, {"calls": {"barrier": lambda count: [1.0] * count}}, {}, [kept.pid]
        )
    finally:
        # Waits for its end, to which one that is stopped does not come.
        kept.communicate()


if __name__ == "__main__":
    serve(started)
