"""Tensors by shared memory, and by streams where that cannot be: what is sent, without sending it."""

from __future__ import annotations

import threading
import time
from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from rankbridge import errors
from rankbridge._plan.calls import Call, Transfer
from rankbridge._plan.copying import copy
from rankbridge._plan.operations.declare import Scope
from rankbridge._plan.operations.shared_memory import close_memory, open_memory
from rankbridge._transport.segments import NotShared, Pool, Segment, fitting
from rankbridge.v1 import ref_service_pb2 as ref_pb

T = TypeVar("T")

MIN_BYTES = 1 << 20
"""Bytes from which on shared memory is used: with fewer, a stream takes as long."""

Steps = Generator[Call[Any], Any, T]
"""Calls that are made one after the other, each with the outcome of the one before, and what comes of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transfers:
    """How large tensors went to one rank and came from it.

    Attributes:
        shared: Number of those that went by shared memory.
        streamed: Number of those that did not.
        reason: Why the last one did not. Empty: every one has.
    """

    shared: int = 0
    streamed: int = 0
    reason: str = ""


class SharedMemory:
    """The memory that the ranks of a gang share with this process."""

    def __init__(self, targets: Sequence[str], session_id: str) -> None:
        """Shares none yet.

        Args:
            targets: gRPC target of each rank. By shared memory go tensors of those that are unix sockets.
            session_id: Session that the memory belongs to.
        """
        self._session_id = session_id
        self._lock = threading.Lock()
        self._pools = {rank: Pool() for rank, target in enumerate(targets) if target.startswith("unix:")}
        self._done = [Transfers() for _ in targets]

    def transfers(self, rank: int) -> Transfers:
        """Tells how tensors went so far."""
        with self._lock:
            return self._done[rank]

    def close(self) -> None:
        """Lets go of all memory that no array shows."""
        for pool in self._pools.values():
            pool.forget()

    def takes(self, call: Call[Any]) -> bool:
        """Says whether a call is to be made as `steps` of its own."""
        transfer = call.transfer
        return transfer is not None and transfer.nbytes >= MIN_BYTES and call.rank in self._pools

    def steps(self, call: Call[T]) -> Steps[T]:
        """The calls that are made in place of one that `takes` has accepted, and its result."""
        transfer: Transfer[T] | None = call.transfer
        assert transfer is not None, "only transfers go by shared memory"
        until = time.monotonic() + call.deadline
        pool = self._pools[call.rank]
        try:
            segment = yield from self._segment(call, transfer.nbytes, pool, until)
            result = yield from self._by_memory(call, transfer, segment, pool, until)
        except _Stream as stream:
            self._count(call.rank, str(stream))
        else:
            self._count(call.rank, "")
            return result
        streamed: T = yield replace(call, transfer=None, deadline=_left(until))
        return streamed

    def _by_memory(
        self, call: Call[T], transfer: Transfer[T], segment: Segment, pool: Pool, until: float
    ) -> Steps[T]:
        try:
            if transfer.fill is not None:
                transfer.fill(segment.memory(transfer.nbytes))
            made = transfer.make(self._session_id, segment.id)
            answer = yield replace(made, deadline=_left(until))
        except errors.UnknownSharedMemoryError as error:
            # The rank was replaced, or the session was closed and opened again.
            pool.give_up(segment)
            pool.forget()
            raise _Stream(error.message) from None
        except errors.SessionError as error:
            # Of the tensor, or of the memory. Whether the tensor's own is open, the stream finds out.
            pool.give_up(segment)
            raise _Stream(error.message) from None
        except BaseException:
            # Whether the rank is done with the memory is not known.
            pool.give_up(segment)
            raise
        adopted, nbytes = transfer.answered(answer)
        if adopted:
            pool.lend(segment)
            return transfer.result(answer, None)
        if transfer.fill is not None:
            pool.give_back(segment)
            return transfer.result(answer, None)
        if nbytes > segment.room:
            pool.give_up(segment)
            raise errors.ProtocolError(
                "a tensor is larger than the memory that it is in",
                expected=f"{segment.room} bytes",
                got=f"{nbytes} bytes",
            )
        view = pool.view(segment, nbytes)
        if view is not None:
            return transfer.result(answer, view)
        copied = np.empty(nbytes, np.uint8)
        copy(copied.data, segment.memory(nbytes))
        pool.give_back(segment)
        return transfer.result(answer, copied.data)

    def _segment(self, call: Call[Any], nbytes: int, pool: Pool, until: float) -> Steps[Segment]:
        if pool.off:
            raise _Stream(pool.off)
        free = pool.take(nbytes)
        if free is not None:
            return free
        try:
            yield from self._close(call, pool, until)
            try:
                memory = yield self._opens(call, nbytes, until)
            except errors.ResourceExhaustedError:
                if not (yield from self._close(call, pool, until, all_free=True)):
                    raise
                memory = yield self._opens(call, nbytes, until)
        except errors.CallCancelledError:
            raise
        except (errors.UnsupportedOperationError, errors.ProtocolError) as error:
            pool.off = error.message
            raise _Stream(error.message) from None
        except errors.RankBridgeError as error:
            raise _Stream(error.message) from None
        try:
            return pool.map(memory)
        except NotShared as error:
            pool.off = str(error)
            yield from self._close(call, pool, until, also=[memory.id])
            raise _Stream(pool.off) from None

    def _scope(self, call: Call[Any], until: float) -> Scope:
        return Scope(rank=call.rank, session_id=self._session_id, timeout=_left(until))

    def _opens(self, call: Call[Any], nbytes: int, until: float) -> Call[ref_pb.SharedMemory]:
        return open_memory(self._scope(call, until), fitting(nbytes))

    def _close(
        self,
        call: Call[Any],
        pool: Pool,
        until: float,
        *,
        all_free: bool = False,
        also: Sequence[str] = (),
    ) -> Steps[bool]:
        ids = [*pool.unwanted(all_free=all_free), *also]
        if ids:
            try:
                yield close_memory(self._scope(call, until), ids)
            except BaseException as error:
                # Without its session, a rank has none of them.
                if not isinstance(error, errors.UnknownSessionError):
                    pool.still_unwanted(ids)
                if not isinstance(error, errors.RankBridgeError) or isinstance(
                    error, errors.CallCancelledError
                ):
                    raise
                return False
        return bool(ids)

    def _count(self, rank: int, reason: str) -> None:
        with self._lock:
            done = self._done[rank]
            self._done[rank] = (
                replace(done, streamed=done.streamed + 1, reason=reason)
                if reason
                else replace(done, shared=done.shared + 1)
            )


class _Stream(Exception):
    """There is no shared memory for a tensor; says why."""


def _left(until: float) -> float:
    return max(0.001, until - time.monotonic())
