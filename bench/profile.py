"""Where the microseconds of a small gang call go: CPU time by process and kind of thread, beside what bounds it.

`python -m bench.profile` starts 4 ranks on Gloo, calls them, and reads from the kernel what each thread has used
meanwhile. It measures what bounds a call in the same run: an echo by bare grpcio, as unary call and as message of a
stream. Times are p50 and mean in microseconds; CPU is microseconds for each call, of all threads of a kind.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import grpc

import rankbridge
from bench.gang import gang

WORLD = 4
KINDS = {"event_engine": "gRPC", "grpc": "gRPC", "gloo_tcp_loop": "Gloo", "pt_gloo_runloop": "Gloo"}
"""Kinds of threads by the names that their libraries give them; all others run Python."""
PYTHON = "Python"

Call = Callable[[], object]


def used(pid: int) -> Counter[str]:
    """CPU nanoseconds that a process has used, by kind of thread."""
    told: Counter[str] = Counter()
    for task in Path(f"/proc/{pid}/task").iterdir():
        # One that has ended since it was listed has nothing to tell.
        with suppress(FileNotFoundError, ProcessLookupError):
            name = (task / "comm").read_text().strip()
            kind = next((kind for start, kind in KINDS.items() if name.startswith(start)), PYTHON)
            told[kind] += int((task / "schedstat").read_text().split()[0])
    return told


def measured(call: Call, calls: int, pids: Mapping[str, list[int]]) -> dict[str, float]:
    """Makes so many calls after a tenth as many; gives times, and CPU by process and kind."""
    for _ in range(calls // 10):
        call()
    before = {name: sum(map(used, its), Counter()) for name, its in pids.items()}
    seconds = []
    for _ in range(calls):
        begin = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - begin)
    row = {"p50": statistics.median(seconds) * 1e6, "mean": statistics.mean(seconds) * 1e6}
    total = 0.0
    for name, its in pids.items():
        now = sum(map(used, its), Counter())
        for kind in sorted(now):
            each = (now[kind] - before[name][kind]) / calls / 1e3
            total += each
            row[f"{name}, {kind}"] = each
    return {**row, "CPU of all": total}


@contextmanager
def echo() -> Iterator[tuple[int, Mapping[str, Call]]]:
    """A process that echoes by bare grpcio; gives its pid, and the calls of it."""
    with tempfile.TemporaryDirectory(prefix="rankbridge-bench-") as directory:
        address = f"unix:{directory}/echo"
        command = [sys.executable, "-m", "bench.profile", "--echo", address]
        with (
            subprocess.Popen(command, stdin=subprocess.PIPE) as process,
            grpc.insecure_channel(address) as channel,
        ):
            unary: Any = channel.unary_unary("/echo/Unary")
            unary(b"", wait_for_ready=True, timeout=60)
            requests: SimpleQueue[bytes | None] = SimpleQueue()
            stream: Any = channel.stream_stream("/echo/Stream")
            responses = stream(iter(requests.get, None))

            def by_stream() -> object:
                requests.put(bytes(64))
                return next(responses)

            yield process.pid, {"unary": lambda: unary(bytes(64)), "stream": by_stream}
            requests.put(None)


def serve(address: str) -> None:
    """Echoes until standard input ends."""
    server = grpc.server(ThreadPoolExecutor(4))
    methods: dict[str, Any] = {
        "Unary": grpc.unary_unary_rpc_method_handler(lambda request, _: request),
        "Stream": grpc.stream_stream_rpc_method_handler(lambda requests, _: (each for each in requests)),
    }
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("echo", methods),))
    server.add_insecure_port(address)
    server.start()
    sys.stdin.read()
    server.stop(None)


def profile(calls: int) -> dict[str, dict[str, float]]:
    """Every row by its name."""
    rows = {}
    me = os.getpid()
    with echo() as (pid, echoes):
        for name, call in echoes.items():
            rows[f"bare grpcio, {name}"] = measured(call, calls, {"client": [me], "server": [pid]})
    with gang(WORLD) as endpoints, rankbridge.connect(endpoints) as here:
        ranks = [each["pid"] for each in json.loads(endpoints.read_text())["ranks"]]
        pids = {"client": [me], "leader": ranks[:1], "followers": ranks[1:]}
        refs = here.create("float32", 1)
        ways: dict[str, Call] = {
            "ping": here.ping,
            "barrier": lambda: here.barrier(calls="gang"),
            "an empty function": lambda: here.call("empty"),
            "all_reduce 4 B, in place": lambda: here.all_reduce(refs, in_place=True, calls="gang"),
            "barrier, by calls of ranks": lambda: here.barrier(calls="ranks"),
        }
        for name, call in ways.items():
            rows[name] = measured(call, calls, pids)
    return rows


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=2000, help="of each (default: %(default)s)")
    parser.add_argument("--echo", metavar="ADDRESS", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.echo:
        serve(args.echo)
        return
    for name, row in profile(args.calls).items():
        print(
            f"{name}: p50 {row.pop('p50'):.0f}, mean {row.pop('mean'):.0f}, CPU {row.pop('CPU of all'):.0f} us"
        )
        for part, each in row.items():
            print(f"    {part:20} {each:6.0f}")


if __name__ == "__main__":
    main()
