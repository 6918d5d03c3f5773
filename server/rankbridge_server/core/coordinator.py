"""What the core asks of a distributed engine: one member of one group, and how members find each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from .dtype import Dtype
from .tensors import Tensors


class ReduceOp(Enum):
    """How elements are combined. Names are those of `rankbridge.v1.ReduceOp`."""

    SUM = "sum"
    PRODUCT = "product"
    MIN = "min"
    MAX = "max"
    AVG = "avg"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True, slots=True)
class GroupDescription:
    """A group before it is formed: its name and its ranks in the gang, in group order."""

    name: str
    ranks: tuple[int, ...]


class Coordinator(Protocol):
    """One member of a formed group, on one backend. vLLM calls this a GroupCoordinator.

    Every method is called by the group's lane only, after all members agreed to enter; inputs are left as they
    are and results are new tensors. `timeout` is in seconds. A method that raises leaves the group unusable.
    """

    def barrier(self, timeout: float) -> None:
        """Return when every member has entered."""
        ...

    def broadcast(self, tensor: object, src_rank_in_group: int, timeout: float) -> object:
        """A copy of the source's tensor; `tensor` has the same dtype and shape on every member."""
        ...

    def gather(self, tensor: object, dst_rank_in_group: int, dim: int, timeout: float) -> object | None:
        """At the destination the members' tensors concatenated along `dim` (0 or more), elsewhere None."""
        ...

    def all_reduce(self, tensor: object, op: ReduceOp, timeout: float) -> object:
        """The reduction of all members' tensors, element by element."""
        ...

    def all_gather(self, tensor: object, dim: int, timeout: float) -> object:
        """The members' tensors concatenated along `dim` (0 or more)."""
        ...

    def close(self) -> None:
        """Let go of the engine's resources. May block; called outside the lane."""
        ...


class Joining(Protocol):
    """A member that has made its address and waits for the others'."""

    @property
    def address(self) -> bytes:
        """What the other members need to connect to this one; opaque."""
        ...

    def connect(self, addresses: Sequence[bytes], timeout: float) -> Coordinator:
        """Connect to everyone, addresses by rank in group, own included. Raises BACKEND_FAILED."""
        ...

    def abandon(self) -> None:
        """Let go of everything without connecting."""
        ...


class Backend(Protocol):
    """A distributed engine on one rank."""

    @property
    def name(self) -> str:
        """Its name: "gloo", "fake"."""
        ...

    @property
    def tensors(self) -> Tensors:
        """How it keeps tensors."""
        ...

    def join(self, group: GroupDescription, rank_in_group: int, generation: int) -> Joining:
        """First phase of forming a group. Raises BACKEND_FAILED."""
        ...

    def reduces(self, op: ReduceOp, dtype: Dtype) -> bool:
        """Whether all_reduce can do `op` on `dtype`."""
        ...
