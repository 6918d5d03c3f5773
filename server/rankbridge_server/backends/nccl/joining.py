"""A member of a group that has given its address and waits for the others'."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future, TimeoutError as FutureTimeoutError
from contextlib import suppress

from ...core.coordinator import Coordinator
from ..errors import forming_failed
from .address import Address, check
from .channel import Channel
from .coordinator import NcclCoordinator
from .engine import Engine
from .raw import ENGINE_ERRORS, NcclGroup, Store
from .stores import ReadingStore, WritingStore


class NcclJoining:
    """A member of `size`. Groups of two and more have a communicator for collectives and one for sends and receives.

    `patience`: seconds in which the member of rank 0 makes an id; the first one begins NCCL.
    """

    def __init__(self, engine: Engine, rank_in_group: int, size: int, patience: float) -> None:
        self._engine = engine
        self._rank_in_group = rank_in_group
        self._size = size
        count = 1 if size == 1 else 2
        ids: tuple[bytes, ...] = ()
        self._communicators: list[_First | _Other] = []
        if rank_in_group:
            self._communicators += [_Other(engine, rank_in_group, size) for _ in range(count)]
        else:
            try:
                for _ in range(count):
                    first = _First(engine, size)
                    self._communicators.append(first)
                    ids += (first.unique_id(patience),)
            except BaseException:
                self.abandon()
                raise
        self.address = Address(engine.identity, ids).encoded()

    def connect(self, addresses: Sequence[bytes], timeout: float) -> Coordinator:
        """Make one communicator after the other, in the same order on all members."""
        deadline = time.monotonic() + timeout
        groups = []
        try:
            members = [Address.decoded(address) for address in addresses]
            check(members, len(self._communicators))
            for communicator, unique_id in zip(self._communicators, members[0].ids, strict=True):
                groups.append(communicator.connected(unique_id, max(0.001, deadline - time.monotonic())))
            channels = [Channel(group, self._engine.side()) for group in groups]
        except BaseException:
            self.abandon()
            raise
        return NcclCoordinator(
            channels[0], channels[-1], self._engine.device, self._rank_in_group, self._size
        )

    def abandon(self) -> None:
        """Free what was made, and what is still being made when it comes."""
        for communicator in self._communicators:
            communicator.abandon()


class _Communicator:
    """A communicator in the making, in a thread of its own: torch waits there, however long, for all members.

    `store` is kept until it is made.
    """

    def __init__(self, engine: Engine, store: Store, rank_in_group: int, size: int) -> None:
        self._engine = engine
        self._store = store
        self._rank_in_group = rank_in_group
        self._size = size
        self._lock = threading.Lock()
        self._abandoned = False
        self.made: Future[NcclGroup] = Future()

    def begin(self) -> None:
        threading.Thread(target=self._make, name="nccl-joining", daemon=True).start()

    def result(self, timeout: float) -> NcclGroup:
        """Raises BACKEND_FAILED when it is not made in `timeout` seconds."""
        try:
            return self.made.result(timeout)
        except (*ENGINE_ERRORS, FutureTimeoutError) as error:
            raise forming_failed("NCCL", str(error) or f"not all members came in {timeout:.1f} s") from error

    def abandon(self) -> None:
        with self._lock:
            self._abandoned = True
            if not self.made.done() or self.made.exception():
                return
        _abort(self.made.result())

    def _make(self) -> None:
        try:
            group = self._engine.group(self._store, self._rank_in_group, self._size)
            group.eager_connect_single_device(self._engine.device)
        except BaseException as error:
            self.made.set_exception(error)
            return
        with self._lock:
            self.made.set_result(group)
            if not self._abandoned:
                return
        _abort(group)


class _First:
    """The member of rank 0 in the group: makes the id at once, and connects when all have it."""

    def __init__(self, engine: Engine, size: int) -> None:
        self._store = WritingStore()
        self._communicator = _Communicator(engine, self._store, 0, size)
        # The thread that waits for the id must learn at once that there is none.
        self._communicator.made.add_done_callback(self._ended)
        self._communicator.begin()

    def unique_id(self, timeout: float) -> bytes:
        """The id. Raises BACKEND_FAILED when there is none after `timeout` seconds."""
        try:
            return self._store.unique_id.result(timeout)
        except (*ENGINE_ERRORS, FutureTimeoutError) as error:
            raise forming_failed(
                "NCCL", str(error) or f"no id of a communicator in {timeout:.1f} s"
            ) from error

    def connected(self, unique_id: bytes, timeout: float) -> NcclGroup:
        self._store.let_go()
        return self._communicator.result(timeout)

    def abandon(self) -> None:
        self._store.give_up()
        self._communicator.abandon()

    def _ended(self, made: Future[NcclGroup]) -> None:
        if not self._store.unique_id.done():
            self._store.unique_id.set_exception(
                made.exception()
                or RuntimeError("torch made a communicator without leaving its id in the store")
            )


class _Other:
    """A member other than rank 0 in the group: connects when it has the id."""

    def __init__(self, engine: Engine, rank_in_group: int, size: int) -> None:
        self._store = ReadingStore()
        self._communicator = _Communicator(engine, self._store, rank_in_group, size)

    def connected(self, unique_id: bytes, timeout: float) -> NcclGroup:
        self._store.give(unique_id)
        self._communicator.begin()
        return self._communicator.result(timeout)

    def abandon(self) -> None:
        self._communicator.abandon()


def _abort(group: NcclGroup) -> None:
    # A communicator that does not end in time is abandoned.
    with suppress(*ENGINE_ERRORS):
        group.abort()
