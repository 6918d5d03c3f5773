"""The members of one group on NCCL within the test's process: each has a device and a thread."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from tests.support.devices import device_of
from tests.support.members import Members
from tests.support.nccl_on_cpu import members_of

from rankbridge_server.backends.nccl import NcclBackend


class MembersOnDevices(Members):
    """Takes and gives tensors in host memory. What is given must be left as it is on the device."""

    def call(self, method: str, arguments: Iterable[tuple[object, ...]]) -> list[Any]:
        """As `Members.call`."""
        placed = [tuple(_placed(it, rank) for it in mine) for rank, mine in enumerate(arguments)]
        kept = [[_bytes(it) for it in mine] for mine in placed]
        results = super().call(method, placed)
        assert [[_bytes(it) for it in mine] for mine in placed] == kept
        for rank, it in enumerate(results):
            assert it is None or it.device == device_of(rank)
        return [None if it is None else it.cpu() for it in results]


@contextmanager
def members_on_devices(size: int) -> Iterator[MembersOnDevices]:
    """Form a group on the first `size` devices; on leaving, it is closed."""
    with members_of([NcclBackend(rank) for rank in range(size)], MembersOnDevices) as it:
        yield it


def _placed(it: object, rank: int) -> object:
    return it.to(device_of(rank)) if isinstance(it, torch.Tensor) else it


def _bytes(it: object) -> bytes:
    if not isinstance(it, torch.Tensor):
        return b""
    return it.cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
