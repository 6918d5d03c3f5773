"""NCCL's stand-in: torch's NCCL process group as the backend sees it, on Gloo and tensors in host memory.

It is as strict as the real one is: about dtypes, about what must be on a side, about the order of calls; and as lax.
"""

from __future__ import annotations

import atexit
import itertools
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar, cast
from weakref import WeakSet

import torch
from tests.support.members import PATIENCE_S, Members
from tests.support.sides_on_cpu import CapturedWork, CpuGraph, CpuSide, Refused, current_side
from torch._C import _distributed_c10d as c10d

from rankbridge_server.backends.cpu_coordinator import CpuGroup
from rankbridge_server.backends.gloo.raw import make_group, make_store
from rankbridge_server.backends.nccl import NcclBackend
from rankbridge_server.backends.nccl.raw import NcclGroup, Store, Work
from rankbridge_server.backends.nccl.tensors import DeviceTensors
from rankbridge_server.core.coordinator import GroupDescription

M = TypeVar("M", bound=Members)
CPU = torch.device("cpu")
GLOO_TIMEOUT = timedelta(seconds=20)
# NCCL's own has none; torch's, which waits for it, has.
ABORT_PATIENCE_S = 10.0
REDUCED = (
    *(torch.int8, torch.uint8, torch.int32, torch.int64),
    *(torch.float16, torch.bfloat16, torch.float32, torch.float64),
)
BITWISE = tuple(map(c10d.ReduceOp, (c10d.ReduceOp.BAND, c10d.ReduceOp.BOR, c10d.ReduceOp.BXOR)))
_stores: dict[bytes, Any] = {}
_stores_lock = threading.Lock()
# Gloo's groups of which something may still be waiting: to let go of one would wait for it.
_abandoned: list[CpuGroup] = []
# Threads that may still be waiting in one.
_waiting: WeakSet[threading.Thread] = WeakSet()


@atexit.register
def _end_all_waiting() -> None:
    """While there is an interpreter in which they can raise their errors; later, that ends the process by SIGABRT."""
    threads = [thread for thread in _waiting if thread.is_alive()]
    if threads:
        _shut_all_connections()
    for thread in threads:
        thread.join(ABORT_PATIENCE_S)


def _shut_all_connections() -> None:
    """Of Gloo, and of whatever else speaks TCP in this process, which has come to its end."""
    for name in os.listdir("/proc/self/fd"):
        # What is no socket, or not connected, or closed by now.
        with suppress(OSError), socket.socket(fileno=os.dup(int(name))) as it:
            # Gloo ends the process when a socket that listens is shut.
            if it.family == socket.AF_INET and it.getpeername():
                it.shutdown(socket.SHUT_RDWR)


class CpuWork:
    """Must be waited for with a timeout; when the group was aborted, it looks as if it had ended."""

    def __init__(
        self, works: Sequence[c10d.Work | None], group: NcclOnCpu, after: Callable[[], object]
    ) -> None:
        self._group = group
        self._after = after
        self._done: Future[None] = Future()
        thread = threading.Thread(target=self._run, args=(works,), daemon=True)
        _waiting.add(thread)
        thread.start()

    def wait(self, timeout: timedelta) -> bool:
        """As NCCL's does when TORCH_NCCL_BLOCKING_WAIT is set."""
        deadline = time.monotonic() + timeout.total_seconds()
        aborted = self._group.aborted
        self._group.waiting.set()
        while not self._done.done():
            if aborted.wait(0.001):
                return True
            if time.monotonic() > deadline:
                self._group.abort()
                raise Refused(f"Work timed out in blocking wait after {timeout.total_seconds():.1f} s")
        self._done.result()
        return True

    def is_completed(self) -> bool:
        """Or has failed."""
        return self._group.aborted.is_set() or self._done.done()

    def synchronize(self) -> None:
        """The current side goes on when it has ended; one that has failed never does, but when it is aborted."""
        self._group.waiting.set()
        current_side().follow(self.ended)

    def ended(self) -> bool:
        """Well, or because it was aborted: what has failed hangs until then."""
        well = self._done.done() and self._done.exception() is None
        return well or self._group.aborted.is_set()

    def _run(self, works: Sequence[c10d.Work | None]) -> None:
        # Gloo's own sends and receives end only when they are waited for.
        try:
            for work in filter(None, works):
                work.wait()
            self._after()
            self._done.set_result(None)
        except RuntimeError as error:
            self._done.set_exception(error)


Start = Callable[[CpuGroup], c10d.Work | None]


class NcclOnCpu:
    """A process group. `waiting`: somebody has waited for an operation of it. `aborted`: nobody will any more.

    `begun`: how many operations were, in no graph. `holders`: graphs that are not reset; who aborts waits for them, and
    may be `held_up`.
    """

    def __init__(self, store: Store, rank_in_group: int, size: int, stores: Path | None = None) -> None:
        self.rank_in_group = rank_in_group
        self._stores = stores
        self.size = size
        self.waiting = threading.Event()
        self.aborted = threading.Event()
        self.begun = 0
        self.holders: WeakSet[CpuGraph] = WeakSet()
        self.held_up = False
        self._store: Store | None = store
        self._gloo: CpuGroup | None = None
        self._coalesced: list[Start] | None = None
        self._is_connected = False

    def eager_connect_single_device(self, device: torch.device) -> None:
        """The member of rank 0 makes an id and leaves it; the others take it; all wait for all."""
        assert device == CPU
        store: Any = self._store
        if self.rank_in_group == 0:
            unique_id = os.urandom(128)
            store.set("0", unique_id)
        else:
            unique_id = bytes(store.get("0"))
        self._gloo = make_group(
            self._shared(unique_id), self.rank_in_group, self.size, "127.0.0.1", 2, GLOO_TIMEOUT
        )

    def _shared(self, unique_id: bytes) -> Store:
        if self._stores is not None:
            return c10d.FileStore(str(self._stores / unique_id[:16].hex()), self.size)
        with _stores_lock:
            return cast(Store, _stores.setdefault(unique_id, make_store(GLOO_TIMEOUT)))

    def allreduce(self, tensors: Sequence[torch.Tensor], opts: c10d.AllreduceOptions) -> Begun:
        """In place."""
        check_reduced(tensors[0], opts.reduceOp)
        return self._work(lambda gloo: gloo.allreduce(tensors, opts))

    def reduce(self, tensors: Sequence[torch.Tensor], opts: c10d.ReduceOptions) -> Begun:
        """In place at the root."""
        check_reduced(tensors[0], opts.reduceOp)
        return self._work(lambda gloo: gloo.reduce(tensors, opts))

    def _reduce_scatter_base(
        self, outputTensor: torch.Tensor, inputTensor: torch.Tensor, opts: c10d.ReduceScatterOptions
    ) -> Begun:
        check_reduced(inputTensor, opts.reduceOp)
        assert outputTensor.is_contiguous()
        assert outputTensor.dtype is inputTensor.dtype
        assert outputTensor.numel() * self.size == inputTensor.numel()
        whole = inputTensor.clone()
        options = c10d.AllreduceOptions()
        options.reduceOp = opts.reduceOp
        mine = whole.chunk(self.size)[self.rank_in_group]
        return self._work(lambda gloo: gloo.allreduce([whole], options), lambda: outputTensor.copy_(mine))

    def broadcast(self, tensors: Sequence[torch.Tensor], opts: c10d.BroadcastOptions) -> Begun | None:
        """Alone or with others."""
        check_moved(tensors[0])
        if self._coalesced is None:
            return self._work(lambda gloo: gloo.broadcast(tensors, opts))
        self._coalesced.append(lambda gloo: gloo.broadcast(tensors, opts))
        return None

    def _allgather_base(
        self, output: torch.Tensor, input: torch.Tensor, opts: c10d.AllgatherOptions
    ) -> Begun:
        check_moved(output)
        check_moved(input)
        assert output.numel() == self.size * input.numel()
        return self._work(lambda gloo: gloo.allgather([output.chunk(self.size)], [input], opts))

    def alltoall_base(
        self,
        output: torch.Tensor,
        input: torch.Tensor,
        output_split_sizes: Sequence[int],
        input_split_sizes: Sequence[int],
        opts: c10d.AllToAllOptions,
    ) -> Begun:
        """Sizes must be said and add up."""
        check_moved(output)
        check_moved(input)
        for tensor, sizes in ((output, output_split_sizes), (input, input_split_sizes)):
            assert len(sizes) == self.size
            assert sum(sizes) == len(tensor)
        return self._work(
            lambda gloo: gloo.alltoall_base(output, input, output_split_sizes, input_split_sizes, opts)
        )

    def send(self, tensors: Sequence[torch.Tensor], dstRank: int, tag: int) -> None:
        """Alone it would look for a communicator of two members, whose id nobody has."""
        assert self._coalesced is not None
        check_moved(tensors[0])
        self._coalesced.append(lambda gloo: gloo.send(tensors, dstRank, 0))

    def recv(self, tensors: Sequence[torch.Tensor], srcRank: int, tag: int) -> None:
        """As `send`."""
        assert self._coalesced is not None
        check_moved(tensors[0])
        self._coalesced.append(lambda gloo: gloo.recv(tensors, srcRank, 0))

    def _start_coalescing(self) -> None:
        assert self._coalesced is None
        self._coalesced = []

    def _end_coalescing(self) -> Begun | None:
        assert self._coalesced is not None
        starts, self._coalesced = self._coalesced, None
        return self._begin(starts, list) if starts else None

    def abort(self) -> None:
        """Whoever waits ends as if all were well. Returns when no graph holds the communicator, as NCCL's does."""
        self.aborted.set()
        if self._gloo is not None:
            _abandoned.append(self._gloo)
        deadline = time.monotonic() + ABORT_PATIENCE_S
        while self.holders:
            if time.monotonic() > deadline:
                self.held_up = True
                raise Refused("abort timed out: graphs hold the communicator")
            time.sleep(0.001)

    def _work(self, start: Start, after: Callable[[], object] = list) -> Begun:
        """A collective. The first connects the members."""
        assert self._coalesced is None
        gloo = self._gloo
        if gloo is not None and not self._is_connected and current_side().capturing is None:
            self._connect(gloo)
        return self._begin([start], after)

    def _connect(self, gloo: CpuGroup) -> None:
        """Keeps the caller until all members have come, however long, unless somebody aborts the group."""
        connecting = CpuWork([gloo.allreduce([torch.zeros(1)], c10d.AllreduceOptions())], self, list)
        self.waiting.set()
        while not connecting.is_completed():
            self.aborted.wait(0.001)
        if self.aborted.is_set():
            raise Refused("the communicator was aborted")
        connecting.wait(GLOO_TIMEOUT)
        self._is_connected = True

    def _begin(self, starts: Sequence[Start], after: Callable[[], object]) -> Begun:
        gloo = self._gloo
        assert gloo is not None
        graph = current_side().capturing
        if graph is not None:
            return graph.add_operation(self, lambda: CpuWork([start(gloo) for start in starts], self, after))
        self.begun += 1
        return CpuWork([start(gloo) for start in starts], self, after)


Begun = CpuWork | CapturedWork


def check_moved(tensor: torch.Tensor) -> None:
    """What moves must be bytes, contiguous, and on a side."""
    assert current_side() is not None
    assert tensor.is_contiguous()
    assert (tensor.dtype, tensor.dim()) == (torch.uint8, 1)


def check_reduced(tensor: torch.Tensor, op: c10d.ReduceOp) -> None:
    """What is reduced must be of a dtype that NCCL knows."""
    assert current_side() is not None
    assert tensor.is_contiguous()
    assert tensor.numel()
    if tensor.dtype not in REDUCED or op in BITWISE:
        raise Refused(f"{op} of {tensor.dtype} is not supported for NCCL process group")


class CpuEngine:
    """A device that is the host, under a name of its own; keeps what it was asked for.

    `stores`: a folder in which members in other processes meet; None: all are in this one. `captures`: whether its
    captures go well; None: there are none.
    """

    device = CPU
    memory = 2**30
    _number = itertools.count()

    def __init__(self, identity: str = "", stores: Path | None = None) -> None:
        self._stores = stores
        self.identity = identity or f"device-{next(self._number)}"
        self.tensors = DeviceTensors(CPU, lambda: None, pinned=False)
        self.groups: list[NcclOnCpu] = []
        self.sides: list[CpuSide] = []
        self.captures: bool | None = True

    def group(self, store: Store, rank_in_group: int, size: int) -> NcclGroup:
        """A group on Gloo."""
        self.groups.append(NcclOnCpu(store, rank_in_group, size, self._stores))
        return cast(NcclGroup, self.groups[-1])

    def side(self) -> CpuSide:
        """One that counts."""
        self.sides.append(CpuSide(lambda: self.captures))
        return self.sides[-1]


@contextmanager
def members_on_cpu(size: int) -> Iterator[tuple[Members, list[CpuEngine]]]:
    """Form a group of the stand-in; on leaving, it is closed."""
    engines = [CpuEngine() for _ in range(size)]
    backends = [NcclBackend(rank, engine) for rank, engine in enumerate(engines)]
    with members_of(backends, Members) as it:
        yield it, engines


@contextmanager
def members_of(backends: Sequence[NcclBackend], kind: type[M]) -> Iterator[M]:
    """Form a group of these, each in a thread of its own; on leaving, it is closed."""
    group = GroupDescription("group", tuple(range(len(backends))))
    joining = [it.join(group, rank, 1) for rank, it in enumerate(backends)]
    addresses = [it.address for it in joining]
    with ThreadPoolExecutor(len(backends)) as threads:
        connecting = [threads.submit(it.connect, addresses, PATIENCE_S) for it in joining]
        coordinators = [it.result(PATIENCE_S) for it in connecting]
        try:
            yield kind(coordinators, threads)
        finally:
            for coordinator in coordinators:
                coordinator.close()


__all__ = ["CpuEngine", "CpuSide", "NcclOnCpu", "Work", "members_of", "members_on_cpu"]
