"""torch.distributed.rpc, over TensorPipe: the controller is one worker more, and has the others call natively.

TensorPipe polls: each of its processes uses the CPU for as long as it lives, also while nothing is called.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, partial
from importlib.metadata import version
from typing import Any

from bench.lifetime import end_with_parent
from bench.looping import Place, looping
from bench.native_rank import EVERYWHERE, NativeRank, free_port
from bench.operation import TRANSFERRED
from bench.subject import NotThere, Timed, Ways, serve, timed

_HERE: dict[str, NativeRank] = {}
"""In a worker: its rank."""


def do(method: str, *args: object) -> Any:
    """In a worker: one call of its rank."""
    return getattr(_HERE["rank"], method)(*args)


def _rpc() -> Any:
    os.environ.update(TP_SOCKET_IFNAME="lo", GLOO_SOCKET_IFNAME="lo", OMP_NUM_THREADS="1")
    warnings.filterwarnings("ignore")
    from torch.distributed import rpc

    if not hasattr(rpc, "init_rpc"):
        raise NotThere("this build of torch has no torch.distributed.rpc")
    return rpc


def _join(name: str, rank: int, size: int, port: int) -> Any:
    rpc = _rpc()
    options = rpc.TensorPipeRpcBackendOptions(init_method=f"tcp://127.0.0.1:{port}", rpc_timeout=120)
    rpc.init_rpc(name, rank=rank, world_size=size + 1, rpc_backend_options=options)
    return rpc


def enter(place: Place) -> Mapping[str, Timed]:
    """Becomes a worker."""
    port, rpc_port, _ = place.meet((free_port(), free_port(), os.getpid()))[0]
    _HERE["rank"] = NativeRank(place.rank, place.size, port)
    _join(f"rank{place.rank}", place.rank + 1, place.size, rpc_port)
    return {}


@contextmanager
def started(size: int) -> Iterator[Ways]:
    """Starts the workers, and joins them as the one that calls them."""
    end_with_parent()
    processes = [os.getpid()]

    def join(said: list[Any]) -> None:
        processes.extend(pid for _, _, pid in said)
        _join("controller", 0, size, said[0][1])

    _rpc()
    with looping(size, [], enter, preload=["torch.distributed"], overheard=join):
        yield _ways(_rpc(), size, processes)
        _rpc().shutdown(graceful=False)


def _ways(rpc: Any, size: int, processes: list[int]) -> Ways:
    from torch.futures import wait_all

    # As the workers know it.
    from bench.subjects.torch_rpc import do

    names = [f"rank{rank}" for rank in range(size)]
    far = names[1 % size]

    def everywhere(method: str) -> None:
        wait_all([rpc.rpc_async(name, do, (method,)) for name in names])

    operations = {name: timed(partial(everywhere, method)) for name, method in EVERYWHERE.items()}
    operations["empty_one"] = timed(lambda: rpc.rpc_sync(names[0], do, ("empty",)))
    for name, nbytes in TRANSFERRED.items():
        operations[f"fetch_{name}"] = timed(partial(rpc.rpc_sync, far, do, ("fetch", name)))
        operations[f"put_{name}"] = timed(_putting(rpc, far, nbytes))
    return Ways({"torch": version("torch")}, {"calls": operations}, {}, processes)


def _putting(rpc: Any, worker: str, nbytes: int) -> Callable[[], None]:
    from bench.subjects.torch_rpc import do

    return lambda: rpc.rpc_sync(worker, do, ("put", _whole(nbytes)))


@cache
def _whole(nbytes: int) -> Any:
    import torch

    return torch.ones(nbytes, dtype=torch.uint8)


if __name__ == "__main__":
    from bench.subjects import torch_rpc

    serve(torch_rpc.started)
