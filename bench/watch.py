"""What `rankbridge watch` adds to a call: `python -m bench.watch` prints CPU and wall time, bare and watched.

Between the two is a hook of torch's dispatcher that only goes on: what any hook in Python adds. All in turn in one run,
block by block: hooks are installed and taken back in the same processes. Shown are medians of the blocks; what is added
is the median of the differences within a turn. The call in C++ is one of torch's functional collectives. With
`--record-calls` it is what the record of a gang's rank adds, in place of the watch.

Torch's backend `fake` has no threads: a call's CPU time is its own. On Gloo a call wakes a thread and waits for it
asleep. A virtual machine halts a processor on which nobody runs, by its own judgement of how long nobody will, and the
first instructions after a halt take several times as long: the same bare call took 22 us or 32, and what was added had
the difference in it, or not. So a loop of idle priority keeps each processor awake. It gives way to any other thread.
"""

from __future__ import annotations

import argparse
import contextlib
import multiprocessing
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from bench.native_rank import free_port

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
        "watched": (begin, remove),
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


def measured(target: Callable[..., None], size: int, blocks: int, calls: int) -> Any:
    """What rank 0 of so many ranks has reported, which run `target` as they run `rank`. 0: one, without Gloo."""
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


@contextlib.contextmanager
def processors_awake() -> Iterator[None]:
    """Keeps each processor from halting meanwhile, by a loop of idle priority."""
    context = multiprocessing.get_context("spawn")
    loops = [context.Process(target=_loop, args=(it,), daemon=True) for it in sorted(os.sched_getaffinity(0))]
    for loop in loops:
        loop.start()
    try:
        yield
    finally:
        for loop in loops:
            loop.terminate()
            loop.join()


def _loop(processor: int) -> None:
    os.sched_setaffinity(0, {processor})
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    while True:
        pass


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints a table."""
    parser = argparse.ArgumentParser(prog="python -m bench.watch", description=__doc__)
    parser.add_argument("--blocks", type=int, default=100, metavar="N", help="of each (default: %(default)s)")
    parser.add_argument(
        "--calls", type=int, default=200, metavar="N", help="in a block (default: %(default)s)"
    )
    parser.add_argument(
        "--sizes",
        type=int,
        nargs="+",
        default=[0, 1, 2],
        metavar="N",
        help="ranks on Gloo; 0: one on torch's backend `fake` (default: 0 1 2)",
    )
    parser.add_argument(
        "--record-calls", action="store_true", help="measure the record of a gang's rank instead of the watch"
    )
    options = parser.parse_args(arguments)
    target = recorded if options.record_calls else rank
    print("| ranks | call | CPU us, bare | empty hook | watched | added | wall us, bare | watched |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    with processors_awake():
        for size in options.sizes:
            _show(size, measured(target, size, options.blocks, options.calls))


def _show(size: int, times: Times) -> None:
    for name in dict.fromkeys(name for name, _ in times):
        bare, empty, watched = (times[name, way] for way in ("bare", "empty", "watched"))
        added = statistics.median(after[0] - before[0] for before, after in zip(bare, watched, strict=True))
        cpu = [statistics.median(it for it, _ in blocks) for blocks in (bare, empty, watched)]
        wall = [statistics.median(it for _, it in blocks) for blocks in (bare, watched)]
        numbers = [f"{it * 1e6:.1f}" for it in (*cpu, added)] + [f"{it * 1e6:.0f}" for it in wall]
        print(f"| {size or '1, `fake`'} | {name} | {' | '.join(numbers)} |", flush=True)


if __name__ == "__main__":
    main()
