"""Ranks that measure, each a process."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from typing import Any

from bench.native_rank import free_port


def first_report(target: Callable[..., None], size: int, blocks: int, calls: int) -> Any:
    """What rank 0 of so many ranks reports, which run `target`. 0: one rank, without Gloo.

    `target` gets its rank, `size`, a free port, `blocks`, `calls`, and the end of a pipe, to which it sends its report.
    """
    context = multiprocessing.get_context("spawn")
    port = free_port()
    pipes = [context.Pipe(duplex=False) for _ in range(max(size, 1))]
    ranks = [
        context.Process(target=target, args=(number, size, port, blocks, calls, theirs))
        for number, (_, theirs) in enumerate(pipes)
    ]
    for it in ranks:
        it.start()
    found = [mine.recv() for mine, _ in pipes]
    for it in ranks:
        it.join()
    return found[0]
