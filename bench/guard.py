"""What guard adds to a call of a job: `python -m bench.guard` prints times of ranks, bare and guarded.

A `send` goes to a neighbour, which receives it and sends it back: shown is half of that, a `send` and its `recv`.

Both in turn in one run, block by block: the hook is installed and taken back in the same processes. Shown are medians
of the blocks' means on rank 0, and the median of the ratios of the blocks that follow each other.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from itertools import product
from multiprocessing.connection import Connection
from pathlib import Path

from bench.watch import measured

COUNTS = {"4 B": 1, "1 MB": 1 << 18, "16 MB": 1 << 22}
"""Elements of float32."""
KINDS = ("all_reduce", "send")
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
    tensors = {name: torch.zeros(count) for name, count in COUNTS.items()}
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


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints a table."""
    parser = argparse.ArgumentParser(prog="python -m bench.guard", description=__doc__)
    parser.add_argument("--blocks", type=int, default=20, metavar="N", help="of each (default: %(default)s)")
    parser.add_argument(
        "--calls",
        type=int,
        default=200,
        metavar="N",
        help="of 4 B in a block; a tenth of the others (default: %(default)s)",
    )
    parser.add_argument(
        "--size", type=int, default=4, choices=(2, 4, 8), help="ranks, in pairs (default: %(default)s)"
    )
    options = parser.parse_args(arguments)
    times: dict[tuple[str, str, bool], list[float]] = measured(
        rank, options.size, options.blocks, options.calls
    )
    print("| call | bare, us | guarded | added | ratio | in blocks |\n| --- | --- | --- | --- | --- | --- |")
    for kind, name in product(KINDS, COUNTS):
        bare, guarded = times[kind, name, False], times[kind, name, True]
        medians = [statistics.median(it) * 1e6 for it in (bare, guarded)]
        ratios = [b / a for a, b in zip(bare, guarded, strict=True)]
        print(
            f"| `{kind}` of {name} | {medians[0]:,.0f} | {medians[1]:,.0f} | {medians[1] - medians[0]:,.0f} "
            f"| {statistics.median(ratios):.2f} | {min(ratios):.2f} to {max(ratios):.2f} |"
        )


if __name__ == "__main__":
    main()
