"""Ray: the driver calls an actor for each rank, which calls torch.distributed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from bench import usage
from bench.native_rank import EVERYWHERE, NativeRank, free_port
from bench.operation import TRANSFERRED
from bench.subject import Ways, serve, timed

ROOT = Path(__file__).resolve().parents[2]
# As many bytes of the object store as the largest tensors need.
_STORE_BYTES = 3 << 30


@contextmanager
def started(size: int) -> Iterator[Ways]:
    """Starts Ray on this host alone, and its actors."""
    os.environ.update(RAY_USAGE_STATS_ENABLED="0", RAY_DEDUP_LOGS="0")
    import ray  # type: ignore[import-not-found, unused-ignore]

    variables = {"PYTHONPATH": str(ROOT), "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
    ray.init(
        num_cpus=size + 1,
        include_dashboard=False,
        _node_ip_address="127.0.0.1",
        object_store_memory=_STORE_BYTES,
        log_to_driver=False,
        configure_logging=False,
        runtime_env={"env_vars": variables},
    )
    try:
        yield _ways(ray, size)
    finally:
        ray.shutdown()


class _Actor:
    def __init__(self, rank: int, size: int, port: int) -> None:
        self._native = NativeRank(rank, size, port)

    def do(self, method: str, *args: Any) -> Any:
        return getattr(self._native, method)(*args)

    def fetch_array(self, name: str) -> Any:
        return self._native.fetch(name).numpy()


def _ways(ray: Any, size: int) -> Ways:
    from bench.subjects.ray import _Actor as here

    port, actor = free_port(), ray.remote(num_cpus=1)(here)
    actors = [actor.remote(rank, size, port) for rank in range(size)]
    ray.get([each.do.remote("empty") for each in actors])
    far = actors[1 % size]

    def everywhere(method: str) -> None:
        ray.get([each.do.remote(method) for each in actors])

    calls = {name: timed(partial(everywhere, method)) for name, method in EVERYWHERE.items()}
    calls["empty_one"] = timed(lambda: ray.get(actors[0].do.remote("empty")))
    # numpy arrays are in shared memory, which whoever fetches them maps; torch tensors are copied.
    shared = {}
    for name, nbytes in TRANSFERRED.items():
        calls[f"fetch_{name}"] = timed(_fetching(ray, far.do, "fetch", name))
        shared[f"fetch_{name}"] = timed(_fetching(ray, far.fetch_array, name))
        shared[f"put_{name}"] = timed(_putting(ray, far, nbytes))
    # Its daemons and idle workers wake up some 1,500 times in a second.
    restless = usage.tree(os.getpid())[1:]
    return Ways({"ray": version("ray")}, {"calls": calls, "shared_memory": shared}, {}, restless)


def _fetching(ray: Any, method: Any, *args: str) -> Callable[[], Any]:
    return lambda: ray.get(method.remote(*args))


def _putting(ray: Any, actor: Any, nbytes: int) -> Callable[[], Any]:
    return lambda: ray.get(actor.do.remote("put", _whole(nbytes)))


@cache
def _whole(nbytes: int) -> Any:
    import numpy

    return numpy.ones(nbytes, numpy.uint8)


if __name__ == "__main__":
    serve(started)
