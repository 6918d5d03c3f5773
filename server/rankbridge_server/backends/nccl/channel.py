"""One communicator of a group, and the order of work on the device that goes with it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import cast
from weakref import WeakSet

import torch

from ...core.alarms import Alarms
from ...core.errors import BridgeError
from ..errors import data_failed
from ..pieces import copied
from .engine import DeviceGraph, Side
from .raw import ENGINE_ERRORS, NcclGroup, Work, let_stream_follow

# Between two looks at the device, in seconds: at first, and at most.
_SHORTEST, _LONGEST = 2e-5, 1e-3
# Seconds in which the side of an operation that has ended follows it; if it does not, the operation has failed.
_FOLLOWING = 1.0
_ALARMS = Alarms("nccl")


class Channel:
    """Runs operations on a communicator, one at a time. Two channels never wait for each other.

    Their sides are their own: torch makes the current stream wait for an operation that is waited for, and every
    operation for the current stream.

    Graphs that operations were captured in hold the communicator: NCCL frees it when the last of them is gone, and
    whoever aborts it waits for that. So they are reset before.
    """

    def __init__(self, group: NcclGroup, side: Side) -> None:
        self._group: NcclGroup | None = group
        self._side = side
        self._lock = threading.Lock()
        self._graphs: WeakSet[CapturedGraph] = WeakSet()
        self._capturing = False
        self._why_closed = "the group was closed"

    @contextmanager
    def inside(self) -> Iterator[None]:
        """Work on the device; on leaving, all of it is done, or captured. Raises BACKEND_FAILED."""
        try:
            with self._side.current():
                yield
            if not self._capturing:
                self._side.synchronize()
        except ENGINE_ERRORS as error:
            raise data_failed("NCCL", str(error)) from error

    def run(self, start: Callable[[NcclGroup], Work | None], timeout: float) -> None:
        """Start something and wait for it, `timeout` seconds. Raises BACKEND_FAILED, or what torch raises."""
        group = self._open()
        deadline = time.monotonic() + timeout
        try:
            with self._begins_within(timeout):
                work = start(group)
        except ENGINE_ERRORS:
            self._open()
            raise
        if work is not None:
            self._await(work, max(_LONGEST, deadline - time.monotonic()))
        # An operation that was ended by `close` looks as if it had been done.
        self._open()

    def run_together(self, starts: Sequence[Callable[[NcclGroup], object]], timeout: float) -> None:
        """The same with several, none of which waits for another."""

        def start(group: NcclGroup) -> Work | None:
            group._start_coalescing()
            try:
                for each in starts:
                    each(group)
            except BaseException:
                with suppress(*ENGINE_ERRORS):
                    group._end_coalescing()
                raise
            return group._end_coalescing()

        self.run(start, timeout)

    def capture(
        self,
        inputs: Sequence[torch.Tensor],
        enter: Callable[[Sequence[object]], Sequence[object]],
        timeout: float,
    ) -> CapturedGraph | None:
        """Capture what `enter` runs on this channel, with tensors like `inputs`, in `timeout` seconds.

        None: it cannot be captured. Raises BACKEND_FAILED when the channel was closed.
        """
        with self._side.current():
            graph = self._side.graph()
        if graph is None:
            return None
        try:
            with self.inside():
                standing = [torch.empty_like(it, memory_format=torch.contiguous_format) for it in inputs]
            with self._begins_within(timeout):
                results = self._captured(graph, standing, enter)
        except (BridgeError, *ENGINE_ERRORS):
            self._open()
            return None
        captured = CapturedGraph(self, graph, standing, results)
        with self._lock:
            if self._group is not None:
                self._graphs.add(captured)
                return captured
        captured.reset()
        raise data_failed("NCCL", self._why_closed)

    def launch(
        self, captured: CapturedGraph, inputs: Sequence[torch.Tensor], timeout: float
    ) -> Sequence[torch.Tensor]:
        """Run a graph on copies of `inputs`, and give copies of its results. Raises BACKEND_FAILED."""
        # Whoever closes the channel meanwhile lets the graph forget them.
        standing, results = captured.standing, captured.results
        self._open()
        with self.inside():
            for place, given in zip(standing, inputs, strict=True):
                place.copy_(given)
            with self._lock:
                self._open()
                captured.graph.launch()
            if not _until(self._side.idle, timeout):
                self.close()
                raise data_failed("NCCL", f"a graph did not end in {timeout:.1f} s")
            # As after `run`.
            self._open()
            return [copied(it) for it in results]

    def close(self) -> None:
        """End what runs, and free the communicator."""
        with self._lock:
            group, self._group = self._group, None
            graphs = list(self._graphs)
            self._reset_graphs()
        if group is None:
            return
        # One that cannot be ended in time is left behind, with the memory that it may yet write to; nobody uses it.
        with suppress(*ENGINE_ERRORS):
            group.abort()
            for graph in graphs:
                graph.forget()

    @contextmanager
    def _begins_within(self, timeout: float) -> Iterator[None]:
        """Closes the channel when that takes longer.

        NCCL connects two members when an operation first needs it, and waits for the other one before it returns.
        """

        def late() -> None:
            self._why_closed = f"it did not begin in {timeout:.1f} s: NCCL waits for another member"
            threading.Thread(target=self.close, name="nccl-late", daemon=True).start()

        key = object()
        _ALARMS.set(key, time.monotonic() + timeout, late)
        try:
            yield
        finally:
            _ALARMS.cancel(key)

    def _captured(
        self,
        graph: DeviceGraph,
        standing: Sequence[torch.Tensor],
        enter: Callable[[Sequence[object]], Sequence[object]],
    ) -> Sequence[torch.Tensor]:
        self._capturing = True
        try:
            with self._side.current(), graph.capturing():
                return cast(Sequence[torch.Tensor], enter(standing))
        finally:
            self._capturing = False

    def _await(self, work: Work, timeout: float) -> None:
        if self._capturing:
            # The side goes on after it; nothing runs yet that could be waited for.
            let_stream_follow(work)
            return
        if self._graphs:
            let_stream_follow(work)
            if self._has_ended(work, timeout):
                return
            # torch aborts the communicator of what has failed, in `wait`.
            with self._lock:
                self._reset_graphs()
            timeout = _LONGEST
        work.wait(timedelta(seconds=timeout))

    def _has_ended(self, work: Work, timeout: float) -> bool:
        """Wait until it has ended well; False when it failed, or has not ended in time."""
        following: list[float] = []

        def ended() -> bool:
            if self._side.idle():
                return True
            # NCCL's errors are known at once; the device itself does not end then.
            if not following and work.is_completed():
                following.append(time.monotonic() + _FOLLOWING)
            return bool(following) and time.monotonic() > following[0]

        return _until(ended, timeout) and self._side.idle()

    def _reset_graphs(self) -> None:
        for graph in list(self._graphs):
            graph.reset()
        self._graphs.clear()

    def _open(self) -> NcclGroup:
        if self._group is None:
            raise data_failed("NCCL", self._why_closed)
        return self._group


@dataclass(eq=False)
class CapturedGraph:
    """Collectives that were captured on a channel. Implements `core.coordinator.Captured`.

    `standing` are its inputs' places and `results` its own: what comes from elsewhere is copied, and what goes to refs
    too, so that nobody sees it change.
    """

    channel: Channel
    graph: DeviceGraph
    standing: Sequence[torch.Tensor]
    results: Sequence[torch.Tensor]

    def replay(self, inputs: Sequence[object], timeout: float) -> Sequence[object]:
        """One launch."""
        return self.channel.launch(self, cast(Sequence[torch.Tensor], inputs), timeout)

    def reset(self) -> None:
        """Let go of the communicator; of the memory, when whoever has this does."""
        with suppress(*ENGINE_ERRORS):
            self.graph.reset()

    def forget(self) -> None:
        """Let go of the memory; nothing runs in it any more."""
        self.standing = self.results = ()


def _until(done: Callable[[], bool], timeout: float) -> bool:
    """Wait until it is done; False when it is not after `timeout` seconds."""
    deadline, pause = time.monotonic() + timeout, _SHORTEST
    while not done():
        if time.monotonic() > deadline:
            return False
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST)
    return True
