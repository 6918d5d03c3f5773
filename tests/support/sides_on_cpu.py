"""CUDA's stand-in: streams, and graphs of what was captured on them, on tensors in host memory.

What is captured is kept and not done: whatever it wrote is overwritten with nonsense when the capture ends. A launch
does it anew, in the memory that was captured, in a thread beside all others. It is as strict as CUDA and torch are
about what may be done when, and as lax.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from tests.support.members import PATIENCE_S
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

if TYPE_CHECKING:
    from tests.support.nccl_on_cpu import CpuWork, NcclOnCpu

NONSENSE = 0xA5
_on_side = threading.local()


class Refused(RuntimeError):
    """The real one would refuse, or fail."""


def current_side() -> CpuSide:
    """The calling thread's; there must be one."""
    side = getattr(_on_side, "it", None)
    assert isinstance(side, CpuSide)
    return side


class CpuSide:
    """Counts how often it was left, waited for, and told to launch a graph.

    `capturing`: the graph that takes what is done on it. `captures`: says how captures go, as of `CpuEngine`. `going`:
    the device does what it was told to.
    """

    def __init__(self, captures: Callable[[], bool | None] = lambda: True) -> None:
        self.left = 0
        self.synchronized = 0
        self.launched = 0
        self.captured = 0
        self.capturing: CpuGraph | None = None
        self.captures = captures
        self.going = threading.Event()
        self.going.set()
        self._followed: list[Callable[[], bool]] = []

    @contextmanager
    def current(self) -> Iterator[object]:
        """Be on it."""
        before, _on_side.it = getattr(_on_side, "it", None), self
        try:
            yield self
        finally:
            _on_side.it = before
            self.left += 1

    def synchronize(self) -> None:
        """Count, and wait."""
        self.synchronized += 1
        deadline = time.monotonic() + PATIENCE_S
        while not self.idle():
            assert time.monotonic() < deadline
            time.sleep(0.001)

    def idle(self) -> bool:
        """Whether all that it follows has ended."""
        if self.capturing is not None:
            raise self.capturing.spoil("operation not permitted when stream is capturing")
        self._followed = [ended for ended in self._followed if not ended()]
        return not self._followed

    def follow(self, ended: Callable[[], bool]) -> None:
        """Go on when that has ended."""
        self._followed.append(ended)

    def graph(self) -> CpuGraph | None:
        """A new one, if there are any."""
        return None if self.captures() is None else CpuGraph(self)


class CapturedWork:
    """Was not begun, so that nobody can wait for it; its side must go on after it."""

    def __init__(self, graph: CpuGraph) -> None:
        self._graph = graph

    def wait(self, timeout: object) -> bool:
        """Refused."""
        raise self._graph.spoil("operation not permitted on an event last recorded in a capturing stream")

    def is_completed(self) -> bool:
        """Refused."""
        raise self._graph.spoil("operation not permitted on an event last recorded in a capturing stream")

    def synchronize(self) -> None:
        """The side goes on after it."""
        assert current_side().capturing is self._graph
        self._graph.unjoined.discard(self)


class CpuGraph:
    """What was captured, in order. It holds the communicators that are in it until it is reset."""

    def __init__(self, side: CpuSide) -> None:
        self.unjoined: set[CapturedWork] = set()
        self._side = side
        self._nodes: list[Callable[[], object]] = []
        self._groups: set[NcclOnCpu] = set()
        self._memory: dict[int, torch.UntypedStorage] = {}
        self._spoilt = ""
        self._state = "new"

    @contextmanager
    def capturing(self) -> Iterator[None]:
        """Keep what is done on the side meanwhile."""
        side = current_side()
        if side is not self._side or side.capturing is not None or self._state != "new":
            raise Refused("capture cannot begin here")
        side.capturing, self._state = self, "capturing"
        try:
            with _Captures(self):
                yield
            if side.captures() is not True:
                raise self.spoil("the device refuses")
            if self._spoilt:
                raise Refused(f"operation failed due to a previous error during capture: {self._spoilt}")
            if self.unjoined:
                raise Refused("capturing stream has unjoined work")
            self._state = "captured"
            side.captured += 1
        finally:
            side.capturing = None
            if self._state != "captured":
                self.reset()
        for memory in self._memory.values():
            torch.empty(0, dtype=torch.uint8).set_(memory).fill_(NONSENSE)

    def launch(self) -> None:
        """Begin to do it."""
        if self._state != "captured" or current_side() is not self._side:
            raise Refused("there is nothing to launch")
        if any(group.aborted.is_set() for group in self._groups):
            raise Refused("launch of a graph whose communicator is gone")
        self._side.idle()
        self._side.launched += 1
        ended = threading.Event()
        self._side.follow(ended.is_set)
        threading.Thread(target=self._run, args=(ended,), daemon=True).start()

    def reset(self) -> None:
        """Hold nothing any more."""
        self._state = "reset"
        for group in self._groups:
            group.holders.discard(self)

    def spoil(self, why: str) -> Refused:
        """What was done cannot be captured, and ends the capture; gives what to raise."""
        self._spoilt = why
        return Refused(why)

    def add_operation(self, group: NcclOnCpu, begin: Callable[[], CpuWork]) -> CapturedWork:
        """An operation of a communicator, which does not fail: it ends, or hangs until it is aborted."""

        def node() -> None:
            if not group.aborted.is_set():
                work = begin()
                while not work.ended():
                    time.sleep(0.001)

        self._groups.add(group)
        group.holders.add(self)
        self._nodes.append(node)
        work = CapturedWork(self)
        self.unjoined.add(work)
        return work

    def add_call(self, func: Any, args: Any, kwargs: Any, given: object) -> None:
        """A call of torch's, which gave that."""
        if func is torch.ops.aten._local_scalar_dense.default:
            raise self.spoil("operation not permitted when stream is capturing")
        written = [
            it
            for argument, it in zip(func._schema.arguments, args, strict=False)
            if argument.alias_info is not None and argument.alias_info.is_write
        ]
        if written:
            assert all(_memory(it) in self._memory for it in tree_leaves(written)), "writes to others' memory"
            self._nodes.append(lambda: func(*args, **kwargs))
            return
        known = {_memory(it) for it in tree_leaves((args, kwargs)) if isinstance(it, torch.Tensor)}
        places = [
            it for it in tree_leaves(given) if isinstance(it, torch.Tensor) and _memory(it) not in known
        ]
        if not places:
            return
        for place in places:
            self._memory[_memory(place)] = place.untyped_storage()

        def node() -> None:
            for place, made in zip(places, tree_leaves(func(*args, **kwargs)), strict=True):
                place.untyped_storage().copy_(made.untyped_storage())

        self._nodes.append(node)

    def _run(self, ended: threading.Event) -> None:
        self._side.going.wait(PATIENCE_S)
        for node in self._nodes:
            node()
        ended.set()


class _Captures(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Tells a graph of every call of torch's in this thread."""

    def __init__(self, graph: CpuGraph) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._graph = graph

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> object:
        given: object = func(*args, **(kwargs or {}))
        self._graph.add_call(func, args, kwargs or {}, given)
        return given


def _memory(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage().data_ptr()
