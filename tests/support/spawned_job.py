"""`foreign_job` in two processes of torch.multiprocessing.spawn, which also have a backend of their own, "mine"."""

from __future__ import annotations

import os
from typing import Any

import torch.distributed as dist
from tests.support import foreign_job
from torch._C import _distributed_c10d as c10d
from torch.multiprocessing.spawn import spawn

SIZE = 2


def run(rank: int) -> None:
    """One rank."""
    os.environ.update(RANK=str(rank), WORLD_SIZE=str(SIZE))
    gloo: Any = c10d.ProcessGroupGloo
    dist.Backend.register_backend("mine", gloo, devices=["cpu"])
    foreign_job.main()


if __name__ == "__main__":
    spawn(run, nprocs=SIZE)  # type: ignore[no-untyped-call]
