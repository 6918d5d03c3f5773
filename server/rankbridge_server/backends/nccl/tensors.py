"""Tensors in a device's memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import cast

import torch

from ...core.errors import BridgeError, ErrorCode
from ...core.refs.tensors import TensorSpec
from ..pieces import as_bytes
from ..torch_tensors import TorchTensors, check_bools, memory_of

# Among a tensor's attributes, so that it goes when the tensor does, written or not.
_STAGED = "rankbridge_staged"


class DeviceTensors(TorchTensors):
    """Tensors on a device; written and read by way of host memory, which is `pinned` if the device copies from there.

    `settle` waits until the device has done what the calling thread has begun. Every function waits for what it began:
    whoever gets a tensor may use it in any thread, in any order of work on the device. New tensors, unless constant,
    are made in host memory, so that they are the same on every backend.
    """

    def __init__(self, device: torch.device, settle: Callable[[], None], *, pinned: bool) -> None:
        super().__init__(device)
        self._settle = settle
        self._pinned = pinned

    def read(self, tensor: object) -> memoryview:
        """A copy of the elements in host memory."""
        given = cast(torch.Tensor, tensor)
        host = self._host(given.nbytes)
        with self._settled():
            host.copy_(as_bytes(given.contiguous()), non_blocking=True)
        return memory_of(host)

    def write(self, tensor: object) -> memoryview:
        """Host memory for the elements, which go to the device when they are `written`."""
        given = cast(torch.Tensor, tensor)
        host: torch.Tensor | None = vars(given).get(_STAGED)
        if host is None:
            host = self._host(given.nbytes)
            vars(given)[_STAGED] = host
        return memory_of(host)

    def adopted(self, spec: TensorSpec, memory: memoryview) -> object | None:
        """None: a device has memory of its own."""
        return None

    def written(self, tensor: object) -> None:
        """Copy what was written to the device."""
        given = cast(torch.Tensor, tensor)
        host: torch.Tensor | None = vars(given).pop(_STAGED, None)
        if host is None:
            return
        if given.dtype is torch.bool:
            check_bools(host)
        with self._settled():
            as_bytes(given).copy_(host, non_blocking=True)

    def _placed(self, made: torch.Tensor) -> torch.Tensor:
        return made.to(self._on)

    def _host(self, nbytes: int) -> torch.Tensor:
        return torch.empty(nbytes, dtype=torch.uint8, pin_memory=self._pinned and nbytes > 0)

    @contextmanager
    def _settled(self) -> Iterator[None]:
        try:
            yield
            self._settle()
        except torch.OutOfMemoryError as error:
            raise BridgeError.of(
                ErrorCode.RESOURCE_EXHAUSTED, f"no room on device {self.device}: {error}"
            ) from error
