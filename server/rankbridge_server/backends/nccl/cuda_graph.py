"""A CUDA graph, as torch has it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

import torch

from .raw import ENGINE_ERRORS

# torch's allocator may ask a graph whose capture failed again, and would ask what is no longer there.
_failed: list[torch.cuda.CUDAGraph] = []


def can_capture() -> bool:
    """Whether this torch captures what ProcessGroupNCCL does without a watchdog.

    Before 2.8 a capture waits until the watchdog has seen the end of all that was begun before: forever.
    """
    major, minor, *_ = torch.__version__.split(".")
    return (int(major), int(minor)) >= (2, 8)


class CudaGraph:
    """Work of the current stream, captured once and launched any number of times. Its memory is its own."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._graph = torch.cuda.CUDAGraph()
        self._pool = torch.cuda.graph_pool_handle()

    @contextmanager
    def capturing(self) -> Iterator[None]:
        """Capture what is done meanwhile. Raises what torch raises; then there is nothing to launch."""
        # Other threads of the rank make tensors and move data meanwhile: only this one must do nothing unsafe.
        try:
            self._graph.capture_begin(pool=self._pool, capture_error_mode="thread_local")
            yield
            self._graph.capture_end()
        except BaseException:
            self._give_up()
            raise

    def launch(self) -> None:
        """Begin to run it on the current stream."""
        self._graph.replay()

    def reset(self) -> None:
        """Let go of all that it holds; of what it runs, when that has ended."""
        self._graph.reset()

    def _give_up(self) -> None:
        _failed.append(self._graph)
        with suppress(*ENGINE_ERRORS):
            # Also what was captured in vain takes its stream back; after the end it is refused.
            self._graph.capture_end()
        with suppress(*ENGINE_ERRORS):
            # torch does this only at an end that goes well, and defers freeing memory for as long.
            torch._C._cuda_endAllocateToPool(self._device.index, self._pool)
            torch._C._cuda_releasePool(self._device.index, self._pool)
        with suppress(*ENGINE_ERRORS):
            self._graph.reset()
