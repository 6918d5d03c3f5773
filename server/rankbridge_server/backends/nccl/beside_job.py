"""NCCL in a process of somebody else's job, whose settings stay its own."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch

from ..errors import forming_failed
from .engine import GROUP_SETTINGS, CudaEngine, Engine, device_at
from .raw import NcclGroup, Store

_NONBLOCKING = "TORCH_NCCL_USE_COMM_NONBLOCKING"
MOST_RANKS = 128
"""With more, torch splits the making of a communicator by a setting that it reads when all have come."""

_LOCK = threading.Lock()


def engine_beside_job(index: int | None, local_rank: int, size: int) -> Engine:
    """NCCL on the device with the `index`, or on that of the rank's place on its host, for a job of `size` ranks.

    Raises BACKEND_FAILED when there is no device, and for a job with which groups of ours would not end in time.
    """
    if os.environ.get(_NONBLOCKING, "0") not in ("", "0"):
        raise forming_failed(
            "NCCL", f"the job sets {_NONBLOCKING}, and torch has one value for all groups of a process"
        )
    if size > MOST_RANKS:
        most = f"at most {MOST_RANKS}"
        raise forming_failed("NCCL", "the job has too many ranks", expected=most, got=str(size))
    device = device_at(local_rank) if index is None else torch.device("cuda", index)
    # NCCL has read the settings that graphs need as the job has them.
    return _EngineBesideJob(device, captures=False)


class _EngineBesideJob(CudaEngine):
    """Groups on the job's own device, each on a stream of its own."""

    def group(self, store: Store, rank_in_group: int, size: int) -> NcclGroup:
        """A ProcessGroupNCCL that is set as ours are. Those of the job are not."""
        with _set(GROUP_SETTINGS):
            return super().group(store, rank_in_group, size)


@contextmanager
def _set(settings: Mapping[str, str]) -> Iterator[None]:
    """Sets variables of the environment meanwhile."""
    with _LOCK:
        before = {name: os.environ.get(name) for name in settings}
        os.environ.update(settings)
        try:
            yield
        finally:
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value
