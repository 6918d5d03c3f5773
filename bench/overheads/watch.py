"""What `rankbridge watch`, and the record of calls of the user's own code, add to a call, beside the bare call.

Between the two is a hook of torch's dispatcher that only goes on: what any hook in Python adds. All in turn in one run,
block by block: hooks are installed and taken back in the same processes.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from bench.overheads.awake import processors_awake
from bench.overheads.overhead import Overhead, judged
from bench.overheads.ranks import first_report

_LIMIT_US = 15.0
_SIZES = (0, 1, 2)
"""Ranks on Gloo; 0: one on torch's backend `fake`."""
_WARM_UP = 20
Times = dict[tuple[str, str], list[tuple[float, float]]]
"""By call and way, for each block: CPU and wall time of one call, in seconds."""


def rank(number: int, size: int, port: int, blocks: int, calls: int, report: Connection) -> None:
    """One rank: blocks of calls, bare and watched in turn; reports each block's seconds a call, CPU and wall."""
    from rankbridge_server.job.watch.hook import install
    from rankbridge_server.job.watch.ring import Ring

    with tempfile.TemporaryDirectory() as folder:
        ring = Ring.create(Path(folder), number, size)
        _in_turn(lambda: install(lambda *_: ring), number, size, port, blocks, calls, report)


def recorded(number: int, size: int, port: int, blocks: int, calls: int, report: Connection) -> None:
    """As `rank`, with the calls written into the record that a rank of a gang has, as by `--record-calls`."""
    from rankbridge_server.core.limits import Limits
    from rankbridge_server.core.record.record import Record
    from rankbridge_server.core.record.script_calls import ScriptCalls
    from rankbridge_server.job.recorded_calls import begin

    script_calls = ScriptCalls(Record(Limits().max_record), lambda: (number, 1))
    _in_turn(lambda: begin(script_calls), number, size, port, blocks, calls, report)


def _in_turn(
    begin: Callable[[], object],
    number: int,
    size: int,
    port: int,
    blocks: int,
    calls: int,
    report: Connection,
) -> None:
    import torch
    import torch.distributed as dist
    from torch.testing._internal.distributed.fake_pg import FakeStore

    from rankbridge_server.job.watch.hook import remove

    ways: dict[str, tuple[Callable[[], object], Callable[[], None]]] = {
        "bare": (lambda: None, lambda: None),
        "empty": _empty_hook(torch),
        "whole": (begin, remove),
    }
    torch.set_num_threads(1)
    if size:
        address = f"tcp://127.0.0.1:{port}"
        dist.init_process_group("gloo", address, rank=number, world_size=size, timeout=timedelta(seconds=60))
    else:
        dist.init_process_group("fake", rank=number, world_size=1, store=FakeStore())
    tensor, group = torch.zeros(1), dist.distributed_c10d._get_default_group().group_name
    in_cpp, wait = (
        torch.ops._c10d_functional.all_reduce_.default,
        torch.ops._c10d_functional.wait_tensor.default,
    )
    kinds: dict[str, Callable[[], Any]] = {
        "all_reduce": lambda: dist.all_reduce(tensor),
        "broadcast": lambda: dist.broadcast(tensor, 0),
        "barrier": lambda: dist.barrier(),
        "all_reduce in C++": lambda: wait(in_cpp(tensor, "sum", group)),
    }
    times: Times = {}
    for _ in range(blocks):
        for way, (install, undo) in ways.items():
            install()
            for name, call in kinds.items():
                _timed(call, _WARM_UP)
                times.setdefault((name, way), []).append(_timed(call, calls))
            undo()
    report.send(times)
    dist.destroy_process_group()


def _empty_hook(torch: Any) -> tuple[Callable[[], None], Callable[[], None]]:
    """What installs it at the operators of these calls, and what takes it back."""
    key = torch._C.DispatchKey.BackendSelect
    installed: list[Any] = []

    def install() -> None:
        library = torch.library.Library("c10d", "IMPL")
        for name in ("allreduce_", "broadcast_", "barrier"):
            go_on = getattr(torch.ops.c10d, name).default._handle.redispatch_boxed

            def hook(keys: Any, *arguments: Any, go_on: Any = go_on) -> Any:
                return go_on(keys.remove(key), *arguments)

            library.impl(name, hook, "BackendSelect", with_keyset=True)
        installed.append(library)

    return install, lambda: installed.pop()._destroy()


def _timed(call: Callable[[], Any], calls: int) -> tuple[float, float]:
    cpu, wall = time.thread_time(), time.perf_counter()
    for _ in range(calls):
        call()
    return (time.thread_time() - cpu) / calls, (time.perf_counter() - wall) / calls


def watch(*, quick: bool) -> Overhead:
    """What the watch adds."""
    return Overhead(
        "The watch",
        "CPU time of a call of the smallest tensor, in a job under `rankbridge watch`. The empty hook at torch's "
        "dispatcher only goes on; the call in C++ is one of torch's functional collectives. Medians of blocks; what is "
        "added is the median of the differences within a turn. Torch's backend `fake` has no threads.",
        (*_HEADS, "limit", ""),
        [
            (*cells, *judged(added, _LIMIT_US, " us"))
            for added, cells in _measured(rank, blocks=4 if quick else 100, calls=200)
        ],
    )


def record_of_calls(*, quick: bool) -> Overhead:
    """What the record of a gang's or an attached job's own calls adds."""
    return Overhead(
        "The record of the user's own calls",
        "As the watch, with `--record-calls` in place of it.",
        _HEADS,
        [cells for _, cells in _measured(recorded, blocks=2 if quick else 40, calls=200)],
    )


_HEADS = ("ranks", "call", "CPU us, bare", "empty hook", "with it", "added", "wall us, bare", "with it")


def _measured(
    target: Callable[..., None], blocks: int, calls: int
) -> Iterator[tuple[float, tuple[str, ...]]]:
    """Of each number of ranks and kind of call, what is added, in us, and cells under `_HEADS`."""
    with processors_awake():
        for size in _SIZES:
            times: Times = first_report(target, size, blocks, calls)
            for name in dict.fromkeys(name for name, _ in times):
                bare, empty, whole = (times[name, way] for way in ("bare", "empty", "whole"))
                differences = [after[0] - before[0] for before, after in zip(bare, whole, strict=True)]
                added = statistics.median(differences) * 1e6
                cpu = [statistics.median(it for it, _ in way) * 1e6 for way in (bare, empty, whole)]
                wall = [statistics.median(it for _, it in way) * 1e6 for way in (bare, whole)]
                numbers = [*(f"{it:.1f}" for it in (*cpu, added)), *(f"{it:.0f}" for it in wall)]
                yield added, (str(size or "1, `fake`"), name, *numbers)
