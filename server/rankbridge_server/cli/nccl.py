"""Ranks that each have a CUDA device."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ..core.limits import Limits

if TYPE_CHECKING:
    from ..backends.nccl import NcclBackend


class NoNccl(Exception):
    """This torch has no CUDA, or no NCCL; says which."""


def import_nccl() -> None:
    """Import the backend. Begins nothing on a device, so that processes can be forked. Raises NoNccl."""
    from ..backends import nccl

    if lack := nccl.missing():
        raise NoNccl(f"the backend nccl needs a torch with CUDA and NCCL: {lack}")


def begin(local_rank: int) -> NcclBackend:
    """The backend on the device of a rank that is the `local_rank`th on its host. Raises NoNccl or BridgeError."""
    import_nccl()
    from ..backends.nccl import NcclBackend

    return NcclBackend(local_rank)


def limits_on(backend: NcclBackend, limits: Limits, max_bytes: int) -> Limits:
    """`limits`, with half of the device's memory for tensors unless `max_bytes` were asked for."""
    return limits if max_bytes else replace(limits, max_bytes=backend.memory // 2)
