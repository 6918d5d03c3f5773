"""What every peer runs inside its ranks: a native group on Gloo, and its calls on tensors that stay there."""

from __future__ import annotations

import os
import socket
from datetime import timedelta
from functools import cache
from typing import TYPE_CHECKING, Any

from bench.operation import BY_NAME, TRANSFERRED

if TYPE_CHECKING:
    import torch

_FLOAT_BYTES = 4
_TIMEOUT = timedelta(seconds=60)


class NativeRank:
    """One rank of a native group."""

    def __init__(self, rank: int, size: int, port: int) -> None:
        """Forms the group; all ranks do it at once, rank 0 listens at `port`."""
        os.environ.update(GLOO_SOCKET_IFNAME="lo", OMP_NUM_THREADS="1")
        import torch
        from torch import distributed

        torch.set_num_threads(1)
        method = f"tcp://127.0.0.1:{port}"
        distributed.init_process_group(
            "gloo", init_method=method, rank=rank, world_size=size, timeout=_TIMEOUT
        )
        self._native: Any = distributed
        self._kept: object = None
        self._tensors = {
            name: torch.zeros(BY_NAME[name].nbytes // _FLOAT_BYTES)
            for name in ("all_reduce_4B", "all_reduce_4MB", "broadcast_4MB")
        }
        self._tensors["there"] = torch.zeros(1)

    def empty(self) -> None:
        """Nothing."""

    def barrier(self) -> None:
        """The native barrier."""
        self._native.barrier()

    def all_reduce_4B(self) -> None:
        """The native all_reduce of one float32."""
        self._native.all_reduce(self._tensors["all_reduce_4B"])

    def all_reduce_4MB(self) -> None:
        """The native all_reduce of 2**20 float32."""
        self._native.all_reduce(self._tensors["all_reduce_4MB"])

    def broadcast_4MB(self) -> None:
        """The native broadcast of 2**20 float32 from rank 0."""
        self._native.broadcast(self._tensors["broadcast_4MB"], 0)

    def careful_all_reduce_4B(self) -> None:
        """As `all_reduce_4B`, into a copy, once all ranks are there."""
        self._all_reduce_carefully("all_reduce_4B")

    def careful_all_reduce_4MB(self) -> None:
        """As `all_reduce_4MB`, into a copy, once all ranks are there."""
        self._all_reduce_carefully("all_reduce_4MB")

    def _all_reduce_carefully(self, name: str) -> None:
        # Half the time of the native barrier.
        self._native.all_reduce(self._tensors["there"])
        result = self._tensors[name].clone()
        self._native.all_reduce(result)
        self._tensors[name] = result

    def fetch(self, name: str) -> torch.Tensor:
        """The tensor "64MB" or "1GiB"."""
        return _held(TRANSFERRED[name])

    def put(self, tensor: object) -> None:
        """Keeps a tensor in the place of the last one."""
        self._kept = tensor


@cache
def _held(nbytes: int) -> torch.Tensor:
    import torch

    return torch.ones(nbytes // _FLOAT_BYTES)


EVERYWHERE = {
    "empty_all": "empty",
    **{name: name for name in ("barrier", "all_reduce_4B", "all_reduce_4MB", "broadcast_4MB")},
}
"""Operations that every rank is called for, and the method of each."""


def free_port() -> int:
    """A TCP port of this host that nobody listens at."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])
