"""rankbridge from its Python client, on a gang on Gloo."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import rankbridge
from bench.gang import gang
from bench.subject import Ways, serve
from bench.ways import Stage, ways


@contextmanager
def started(size: int) -> Iterator[Ways]:
    """Starts the gang, and connects to it."""
    with gang(size) as endpoints, rankbridge.connect(endpoints) as connected, ExitStack() as stack:
        yield ways(Stage(endpoints, connected, stack))


if __name__ == "__main__":
    serve(started)
