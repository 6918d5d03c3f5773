"""What the core needs from a distributed engine: one member of one group, and how members connect."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol, runtime_checkable

from .dtype import Dtype
from .errors import BridgeError, ErrorCode
from .refs.tensors import Tensors


class ReduceOp(Enum):
    """How elements are combined. Names are those of `rankbridge.v1.ReduceOp`."""

    SUM = "sum"
    PRODUCT = "product"
    MIN = "min"
    MAX = "max"
    AVG = "avg"
    BAND = "band"
    BOR = "bor"
    BXOR = "bxor"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True, slots=True)
class GroupDescription:
    """A group before it is formed: its name and its ranks in the gang, in group order."""

    name: str
    ranks: tuple[int, ...]


class Coordinator(Protocol):
    """One member of a formed group, on one backend. vLLM calls this a GroupCoordinator.

    Only the group's lane calls the methods, after all members agreed to enter; `send` and `recv` are called by the
    courier. Inputs do not change and results are new tensors. `timeout` is in seconds. A method that raises leaves the
    group unusable.
    """

    def barrier(self, timeout: float) -> None:
        """Returns when every member has entered."""

    def broadcast(self, tensor: object, src_rank_in_group: int, timeout: float) -> object:
        """A copy of the source's tensor; `tensor` has the same dtype and shape on every member."""

    def scatter(
        self, tensor: object, src_rank_in_group: int, dim: int, sizes: Sequence[int], timeout: float
    ) -> object:
        """This member's part of the source's tensor, which is divided along `dim` (0 or more).

        `tensor` is the whole at the source, elsewhere one with the part's dtype and shape. `sizes`: of every member's
        part along `dim`, by rank in group.
        """

    def gather(
        self, tensor: object, dst_rank_in_group: int, dim: int, sizes: Sequence[int], timeout: float
    ) -> object | None:
        """At the destination the members' tensors concatenated along `dim` (0 or more), elsewhere None.

        `sizes`: of every member's tensor along `dim`, by rank in group.
        """

    def reduce(self, tensor: object, op: ReduceOp, dst_rank_in_group: int, timeout: float) -> object | None:
        """At the destination the reduction of all members' tensors, element by element, elsewhere None."""

    def all_reduce(self, tensor: object, op: ReduceOp, timeout: float) -> object:
        """The reduction of all members' tensors, element by element."""

    def reduce_scatter(
        self, tensor: object, op: ReduceOp, dim: int, sizes: Sequence[int], timeout: float
    ) -> object:
        """This member's part of the reduction of all members' tensors.

        `sizes`: of every member's part along `dim` (0 or more), by rank in group; they add up to the tensor's.
        """

    def all_gather(self, tensor: object, dim: int, sizes: Sequence[int], timeout: float) -> object:
        """The members' tensors concatenated along `dim` (0 or more); `sizes` as of `gather`."""

    def all_to_all(self, tensor: object, dim: int, sizes: Sequence[Sequence[int]], timeout: float) -> object:
        """This member's parts of all members' tensors, concatenated along `dim` (0 or more) in group order.

        `sizes[a][b]`: along `dim`, of what the member of rank a in the group sends that of rank b.
        """

    def scan(self, tensor: object, op: ReduceOp, exclusive: bool, timeout: float) -> object:
        """The reduction of the tensors of the members up to this one; `exclusive`: without its own, zeros at the first.

        Not called if the backend `lacks` it, which then needs none.
        """
        raise BridgeError.of(ErrorCode.UNSUPPORTED_OPERATION, "this backend has no scan")

    def send(self, tensor: object, dst_rank_in_group: int, tag: int, timeout: float) -> None:
        """Sends a contiguous tensor to another member, which receives it with the same tag (0 to 2**31 - 1).

        Only the group's courier calls it, at any time, also while the lane runs a collective.
        """

    def recv(self, tensor: object, src_rank_in_group: int, tag: int, timeout: float) -> None:
        """Receives into a tensor from `Tensors.empty` of the sent tensor's spec. Called as `send` is."""

    def close(self) -> None:
        """Releases the engine's resources. May block; called outside the lane, or by its last job."""


class Captured(Protocol):
    """A captured sequence of collectives that a coordinator replays at once, in memory of its own."""

    def replay(self, inputs: Sequence[object], timeout: float) -> Sequence[object]:
        """Replays the collectives on inputs of the captured specs; returns their results in new tensors.

        The group's lane calls it, on all members. An error leaves the group unusable.
        """


@runtime_checkable
class Capturing(Protocol):
    """A coordinator that can capture collectives, and replay them at less cost."""

    def capture(
        self,
        inputs: Sequence[object],
        enter: Callable[[Sequence[object]], Sequence[object]],
        timeout: float,
    ) -> Captured | None:
        """Captures the collectives that `enter` calls on this coordinator.

        `enter` takes tensors with the specs of `inputs`, and returns the results; their elements mean nothing. The
        group's lane calls it, on all members, after they have run the same collectives once. No data moves, and no
        member waits for another. Returns None when this member cannot capture; nothing has changed then. Raises
        BACKEND_FAILED when the group has become unusable.
        """


class Joining(Protocol):
    """A member that has an address and is not connected yet."""

    @property
    def address(self) -> bytes:
        """What the other members need to connect to this one; opaque."""

    def connect(self, addresses: Sequence[bytes], timeout: float) -> Coordinator:
        """Connects to all members. `addresses`: by rank in group, own included. Raises BACKEND_FAILED."""

    def abandon(self) -> None:
        """Releases everything without connecting."""


class Backend(Protocol):
    """A distributed engine on one rank."""

    @property
    def name(self) -> str:
        """Its name: "gloo", "fake"."""

    @property
    def tensors(self) -> Tensors:
        """How the backend stores tensors."""

    def join(self, group: GroupDescription, rank_in_group: int, generation: int) -> Joining:
        """Begins to form a group. Raises BACKEND_FAILED."""

    @property
    def lacks(self) -> frozenset[str]:
        """Names of the operations that the backend does not support."""

    def reduces(self, op: ReduceOp, dtype: Dtype) -> bool:
        """Whether reduce, all_reduce and reduce_scatter support `op` on `dtype`."""
