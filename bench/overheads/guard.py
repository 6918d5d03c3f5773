"""What `rankbridge watch --guard` adds to a call of a job.

A `send` goes to a neighbour, which receives it and sends it back: shown is half of that, a `send` and its `recv`.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from itertools import product
from multiprocessing.connection import Connection
from pathlib import Path

from bench.overheads.overhead import Overhead, judged
from bench.overheads.ranks import first_report

_COUNTS = {"4 B": 1, "1 MB": 1 << 18, "16 MB": 1 << 22}
"""Elements of float32."""
_KINDS = ("all_reduce", "send")
_SIZES = (4, 2)
_LARGE = 1 << 18
_LIMIT_US, _LIMIT_RATIO = 150.0, 1.3
"""Of small tensors, and of large ones."""
_WARM_UP = 5
_TIMEOUT_S = 60.0


def rank(number: int, size: int, port: int, blocks: int, calls: int, report: Connection) -> None:
    """One rank: blocks of calls, bare and guarded in turn; reports each block's seconds a call."""
    import torch
    import torch.distributed as dist

    from rankbridge_server.backends.gloo.yielding import let_loops_yield
    from rankbridge_server.job.guard.guard import Guard
    from rankbridge_server.job.watch.hook import install, remove
    from rankbridge_server.job.watch.ring import Ring

    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo",
        f"tcp://127.0.0.1:{port}",
        rank=number,
        world_size=size,
        timeout=timedelta(seconds=_TIMEOUT_S),
    )
    # The record is mapped: it needs no name once it is there.
    with tempfile.TemporaryDirectory(prefix="rankbridge-bench-") as folder:
        ring = Ring.create(Path(folder), number, size)
    guard = Guard(_TIMEOUT_S)
    tensors = {name: torch.zeros(count) for name, count in _COUNTS.items()}
    neighbour = number ^ 1

    def there_and_back(tensor: torch.Tensor) -> None:
        for sends in (not number % 2, bool(number % 2)):
            if sends:
                dist.send(tensor, neighbour)
            else:
                dist.recv(tensor, neighbour)

    # How many calls each is.
    kinds: dict[str, tuple[Callable[[torch.Tensor], object], int]]
    kinds = {"all_reduce": (dist.all_reduce, 1), "send": (there_and_back, 2)}
    times: dict[tuple[str, str, bool], list[float]] = {}
    for block in range(2 * blocks):
        guarded = bool(block % 2)
        # As in a job that is not guarded, and in one that is.
        let_loops_yield(yields=guarded)
        if guarded:
            install(lambda *_: ring, admit=guard.admit)
        for (kind, (call, parts)), (name, tensor) in product(kinds.items(), tensors.items()):
            number_of_calls = calls if tensor.numel() == 1 else max(2, calls // 10)
            for _ in range(_WARM_UP):
                call(tensor)
            dist.barrier()
            began = time.perf_counter()
            for _ in range(number_of_calls):
                call(tensor)
            seconds = (time.perf_counter() - began) / number_of_calls / parts
            times.setdefault((kind, name, guarded), []).append(seconds)
        if guarded:
            remove()
    report.send(times)
    dist.barrier()
    dist.destroy_process_group()


def guard(*, quick: bool) -> Overhead:
    """What the guard adds."""
    return Overhead(
        "The guard",
        "A call under `rankbridge watch --guard`, bare and guarded in turn in one run. Medians of blocks; the median "
        "and range of the ratios within a turn. The guard lets Gloo's loop threads yield, as a gang's do.",
        ("ranks", "call", "bare, us", "guarded", "added", "ratio", "in blocks", "limit", ""),
        [row for size in _SIZES for row in _measured(size, blocks=2 if quick else 20)],
    )


def _measured(size: int, blocks: int) -> Iterator[tuple[str, ...]]:
    times: dict[tuple[str, str, bool], list[float]] = first_report(rank, size, blocks, 200)
    for kind, name in product(_KINDS, _COUNTS):
        bare, guarded = times[kind, name, False], times[kind, name, True]
        before, after = (statistics.median(it) * 1e6 for it in (bare, guarded))
        ratios = [b / a for a, b in zip(bare, guarded, strict=True)]
        ratio = statistics.median(ratios)
        is_large = _COUNTS[name] >= _LARGE
        yield (
            str(size),
            f"`{kind}` of {name}",
            f"{before:,.0f}",
            f"{after:,.0f}",
            f"{after - before:,.0f}",
            f"{ratio:.2f}",
            f"{min(ratios):.2f} to {max(ratios):.2f}",
            *(judged(ratio, _LIMIT_RATIO) if is_large else judged(after - before, _LIMIT_US, " us")),
        )
