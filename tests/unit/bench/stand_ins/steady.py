"""A subject whose every call takes as many seconds as there are ranks, as it says; some of its ways are wanting."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from bench.subject import Ways, serve


def _fail(count: int) -> list[float]:
    raise ValueError(f"{count} calls too many")


def _die(count: int) -> list[float]:
    os._exit(3)


@contextmanager
def started(size: int) -> Iterator[Ways]:
    def steady(count: int) -> list[float]:
        # What engines print there is no answer.
        print("a line on standard output", flush=True)
        return [float(size)] * count

    calls = {"barrier": steady, "all_reduce_4B": _fail, "broadcast_4MB": _die, "put_1GiB": steady}
    missing = {"stream": "no streams", "calls/fetch_64MB": "no fetch"}
    yield Ways({"steady": "1.0"}, {"calls": calls}, missing)


if __name__ == "__main__":
    serve(started)
