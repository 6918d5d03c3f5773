"""The device of a rank, and NCCL on it: all that cannot be had without a GPU."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import Any, Protocol, cast

import torch

from ..errors import forming_failed
from ..torch_tensors import TorchTensors
from .cuda_graph import CudaGraph, can_capture
from .installed import missing
from .raw import NcclGroup, Store, make_group
from .tensors import DeviceTensors

GROUP_SETTINGS = {
    # No watchdog thread: it would end the process. Whoever waits gets the error, and always has a deadline.
    "TORCH_NCCL_BLOCKING_WAIT": "1",
    "TORCH_NCCL_ASYNC_ERROR_HANDLING": "0",
    "TORCH_NCCL_ENABLE_MONITORING": "0",
    "TORCH_NCCL_DUMP_ON_TIMEOUT": "0",
    # Communicators are made in the calling thread, and from one id, however many members there are.
    "TORCH_NCCL_USE_COMM_NONBLOCKING": "0",
    "TORCH_NCCL_BCAST_UNIQUEID": "1",
    "TORCH_NCCL_RANKS_PER_ROOT": "1000000",
}
"""What torch reads when it makes a group."""
_SETTINGS = {
    **GROUP_SETTINGS,
    # To capture takes no other member: no memory is made known to them. Between launches, anything else may run.
    "NCCL_GRAPH_REGISTER": "0",
    "NCCL_GRAPH_MIXING_SUPPORT": "1",
}
_ABORT_TIMEOUT = timedelta(seconds=10)


class Side(Protocol):
    """An order of work on the device, beside all others."""

    def current(self) -> AbstractContextManager[object]:
        """Have this thread's work done in it."""

    def synchronize(self) -> None:
        """Wait until it has all been done."""

    def idle(self) -> bool:
        """Whether it has all been done. Raises what torch raises when it failed."""

    def graph(self) -> DeviceGraph | None:
        """A graph that nothing was captured in yet, asked for on the side; None where captures are not possible."""


class DeviceGraph(Protocol):
    """Work of one side, captured once and launched any number of times. Its memory is its own."""

    def capturing(self) -> AbstractContextManager[None]:
        """Capture what this thread does meanwhile, on the side. Nobody may wait for the device meanwhile."""

    def launch(self) -> None:
        """Begin to run it, on the side."""

    def reset(self) -> None:
        """Let go of all that it holds; of what it runs, when that has ended."""


class Engine(Protocol):
    """A device and the engine on it."""

    @property
    def device(self) -> torch.device:
        """Where tensors are."""

    @property
    def identity(self) -> str:
        """A name of the device that no other has, on any host."""

    @property
    def memory(self) -> int:
        """Bytes of the device."""

    @property
    def tensors(self) -> TorchTensors:
        """Tensors on it."""

    def group(self, store: Store, rank_in_group: int, size: int) -> NcclGroup:
        """A process group that is not connected yet."""

    def side(self) -> Side:
        """A new order of work."""


class CudaEngine:
    """NCCL on one of the visible devices.

    Begins CUDA in this process, which cannot be forked any more. `captures`: work can be captured in graphs.
    """

    def __init__(self, device: torch.device, *, captures: bool) -> None:
        self.device = device
        self._captures = captures
        torch.cuda.set_device(device)
        properties = cast(Any, torch.cuda.get_device_properties(device))
        self.identity = str(properties.uuid)
        self.memory = int(properties.total_memory)
        self.tensors = DeviceTensors(device, self._settle, pinned=True)

    @classmethod
    def of_rank(cls, local_rank: int) -> CudaEngine:
        """That of a process of ours, on the device of its place on its host. Raises BACKEND_FAILED without one."""
        os.environ.update(_SETTINGS)
        return cls(device_at(local_rank), captures=True)

    def group(self, store: Store, rank_in_group: int, size: int) -> NcclGroup:
        """A ProcessGroupNCCL."""
        return make_group(store, rank_in_group, size, _ABORT_TIMEOUT)

    def side(self) -> Side:
        """A CUDA stream."""
        return _CudaStream(self.device, self._captures)

    def _settle(self) -> None:
        # What is captured is not begun: to wait for it is an error.
        if not torch.cuda.is_current_stream_capturing():
            torch.cuda.current_stream(self.device).synchronize()


def device_at(local_rank: int) -> torch.device:
    """The device of the rank that is the `local_rank`th on its host: they are shared out in turn.

    Raises BACKEND_FAILED when there is none.
    """
    if lack := missing():
        raise forming_failed("NCCL", lack)
    visible = torch.cuda.device_count()
    if not visible:
        raise forming_failed(
            "NCCL", "no CUDA device is visible on this host", expected="1 device or more", got="0"
        )
    return torch.device("cuda", local_rank % visible)


class _CudaStream:
    def __init__(self, device: torch.device, captures: bool) -> None:
        self._device = device
        self._captures = captures
        self._stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]

    def current(self) -> AbstractContextManager[object]:
        return cast(AbstractContextManager[object], torch.cuda.stream(self._stream))

    def synchronize(self) -> None:
        self._stream.synchronize()

    def idle(self) -> bool:
        return bool(self._stream.query())

    def graph(self) -> DeviceGraph | None:
        return CudaGraph(self._device) if self._captures and can_capture() else None
