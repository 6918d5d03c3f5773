"""torch.distributed.rpc as a controller of four ranks: a process that answers "name count" with times, one JSON line.

`python -m bench.peers.torch_rpc WORLD` is a further worker of the same job, and calls the others, each of which runs
the native call on a tensor of its own. It prints "ready" first, and ends with its standard input.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import socket
import sys
import time
from collections.abc import Callable
from typing import Any

_HERE: dict[str, Any] = {}
"""In a worker: its tensor."""


def _environment() -> None:
    for name in ("TP_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME"):
        os.environ[name] = "lo"
    os.environ["OMP_NUM_THREADS"] = "1"


def _rpc() -> Any:
    """The module, which has no types."""
    from torch.distributed import rpc

    return rpc


def _options(port: int) -> Any:
    return _rpc().TensorPipeRpcBackendOptions(init_method=f"tcp://127.0.0.1:{port}", rpc_timeout=60)


def set_up(rank: int, world: int, port: int) -> None:
    """In a worker: form the native group."""
    import torch
    from torch import distributed

    torch.set_num_threads(1)
    distributed.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=world)
    _HERE["tensor"] = torch.zeros(1)


def empty() -> None:
    """In a worker: nothing."""


def barrier() -> None:
    """In a worker: the native barrier."""
    from torch import distributed

    distributed.barrier()


def all_reduce() -> None:
    """In a worker: the native all_reduce of 4 bytes."""
    from torch import distributed

    distributed.all_reduce(_HERE["tensor"])


def _worker(rank: int, world: int, port: int) -> None:
    _environment()
    rpc = _rpc()
    rpc.init_rpc(f"rank{rank}", rank=rank + 1, world_size=world + 1, rpc_backend_options=_options(port))
    rpc.shutdown()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


def main() -> None:
    """Serve."""
    world, port = int(sys.argv[1]), _free_port()
    _environment()
    rpc = _rpc()
    from torch.futures import wait_all

    from bench.peers import torch_rpc as here

    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=here._worker, args=(rank, world, port)) for rank in range(world)]
    for worker in workers:
        worker.start()
    rpc.init_rpc("controller", rank=0, world_size=world + 1, rpc_backend_options=_options(port))
    native = _free_port()
    wait_all([rpc.rpc_async(f"rank{rank}", here.set_up, (rank, world, native)) for rank in range(world)])

    def everywhere(function: Callable[[], None]) -> None:
        wait_all([rpc.rpc_async(f"rank{rank}", function) for rank in range(world)])

    print("ready", flush=True)
    for line in sys.stdin:
        name, count = line.split()
        function = {"empty": here.empty, "barrier": here.barrier, "all_reduce": here.all_reduce}[name]
        times = []
        for _ in range(int(count)):
            start = time.perf_counter()
            everywhere(function)
            times.append(time.perf_counter() - start)
        print(json.dumps(times), flush=True)
    rpc.shutdown()
    for worker in workers:
        worker.join()


if __name__ == "__main__":
    main()
