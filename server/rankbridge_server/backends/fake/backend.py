"""Forming groups among the ranks of one process."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Sequence

from ...core.coordinator import Coordinator, GroupDescription, Joining, ReduceOp
from ...core.dtype import Dtype
from ..errors import forming_failed
from ..reductions import reduces
from ..torch_tensors import TorchTensors
from .coordinator import FakeCoordinator
from .meeting import Meeting


class FakeHub:
    """The meetings of all groups of one gang in this process."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._meetings: dict[bytes, tuple[Meeting, set[int]]] = {}
        self._joinings = itertools.count(1)

    def next_joining(self) -> int:
        """A unique number."""
        return next(self._joinings)

    def enter(self, key: bytes, rank_in_group: int, size: int, timeout: float) -> Meeting:
        """Waits for all members of a group; returns their meeting. Raises BACKEND_FAILED after `timeout` seconds."""
        with self._changed:
            meeting, present = self._meetings.setdefault(key, (Meeting(size), set()))
            present.add(rank_in_group)
            self._changed.notify_all()
            if not self._changed.wait_for(lambda: len(present) == size, timeout):
                self._meetings.pop(key, None)
                came = f"{len(present)} of {size} members connected in {timeout:.1f} s"
                raise forming_failed("The fake backend", came)
            return meeting

    def leave(self, key: bytes) -> None:
        """Removes a group's meeting."""
        with self._changed:
            self._meetings.pop(key, None)


class FakeBackend:
    """One rank of a gang in this process. All its ranks share the hub."""

    name = "fake"
    lacks = frozenset[str]()

    def __init__(self, hub: FakeHub) -> None:
        self.tensors = TorchTensors()
        self._hub = hub

    def join(self, group: GroupDescription, rank_in_group: int, generation: int) -> Joining:
        """Makes an address from the group, the rank in it, and a unique number."""
        return _FakeJoining(self._hub, f"{generation}/{group.name}", rank_in_group, len(group.ranks))

    def reduces(self, op: ReduceOp, dtype: Dtype) -> bool:
        """The reductions of Gloo, so that a test that passes here passes there."""
        return reduces(op, dtype)


class _FakeJoining:
    def __init__(self, hub: FakeHub, key: str, rank_in_group: int, size: int) -> None:
        self._hub = hub
        self._key = key
        self._rank_in_group = rank_in_group
        self._size = size
        # A former group of the same name may not be closed yet.
        self.address = self._place(rank_in_group) + str(hub.next_joining()).encode()

    def connect(self, addresses: Sequence[bytes], timeout: float) -> Coordinator:
        """Waits until all members connect."""
        expected = [self._place(rank) for rank in range(self._size)]
        if [address[: address.rfind(b"/") + 1] for address in addresses] != expected:
            raise forming_failed(
                "The fake backend",
                "the addresses are not of this group",
                expected=str(expected),
                got=str(list(addresses)),
            )
        key = addresses[0]
        meeting = self._hub.enter(key, self._rank_in_group, self._size, timeout)
        return FakeCoordinator(meeting, self._rank_in_group, lambda: self._hub.leave(key))

    def abandon(self) -> None:
        """Does nothing: no resource is open."""

    def _place(self, rank_in_group: int) -> bytes:
        return f"fake:{self._key}#{rank_in_group}/".encode()
