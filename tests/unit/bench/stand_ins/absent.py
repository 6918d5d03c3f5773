"""A subject whose peer is not installed."""

from collections.abc import Iterator
from contextlib import contextmanager

from bench.subject import Ways, serve


@contextmanager
def started(size: int) -> Iterator[Ways]:
    import a_peer_that_nobody_has  # type: ignore[import-not-found]

    yield Ways({}, {"calls": {"barrier": a_peer_that_nobody_has.barrier}}, {})


if __name__ == "__main__":
    serve(started)
