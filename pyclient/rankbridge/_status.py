"""What ranks tell about themselves: groups, sessions, generations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, cast

from rankbridge._failures import error_from_wire
from rankbridge._ref import Ref
from rankbridge.errors import RankBridgeError
from rankbridge.v1 import gang_service_pb2, group_service_pb2, operation_service_pb2, rank_service_pb2

__all__ = [
    "Formed",
    "Group",
    "OperationState",
    "OperationStatus",
    "RankStatus",
    "SessionUsage",
    "formed_from_wire",
    "group_from_wire",
    "operation_state",
    "status_from_wire",
]


OperationState = Literal["queued", "admission", "data", "done", "unspecified"]
"""How far an operation is on one rank."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Some ranks of the gang, in order, under a name.

    Attributes:
        name: Unique in the gang.
        ranks: Ranks of the gang in group order: the i-th has rank_in_group i.
        backend: What moves its data: "gloo", "fake".
        generation: Generation in which it was formed.
        rank_in_group: Place of the rank that was asked. None: it is not a member, or no one rank was asked.
        sequence: Operations admitted so far, on the rank that was asked.
    """

    name: str
    ranks: tuple[int, ...]
    backend: str = ""
    generation: int = 0
    rank_in_group: int | None = None
    sequence: int = 0

    def __len__(self) -> int:
        """Number of members."""
        return len(self.ranks)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionUsage:
    """What one session owns on one rank: its refs, and the bytes of their tensors."""

    session_id: str
    refs: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RankStatus:
    """What a rank is, and what it is doing.

    Attributes:
        rank: Rank in the gang.
        world_size: Ranks in the gang. 0: not known yet.
        local_rank: Rank on its host.
        pid: Process id on its host.
        host: Name of its host.
        backend: What moves data: "gloo", "fake".
        generation: Number of its generation. 0: none yet.
        generation_state: "none", "prepared", "formed", "over".
        generation_error: Why the generation is over. None: it is not.
        groups: Groups of the generation, by name.
        sessions: Sessions and what they own; the shared one first.
        pending_operations: Operations accepted and not yet answered.
        endpoints: Where its sidecar serves, as gRPC targets.
        version: Version of rankbridge there.
    """

    rank: int
    world_size: int
    local_rank: int
    pid: int
    host: str
    backend: str
    generation: int
    generation_state: str
    generation_error: RankBridgeError | None
    groups: tuple[Group, ...]
    sessions: tuple[SessionUsage, ...]
    pending_operations: int
    endpoints: tuple[str, ...]
    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Formed:
    """A generation that was formed.

    Attributes:
        generation: Its number.
        world_size: Ranks in it.
        took: Seconds from the first prepare to the last verification.
    """

    generation: int
    world_size: int
    took: float


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationStatus:
    """How far an operation is on one rank.

    Attributes:
        rank: Rank in the gang.
        state: "queued" (behind others of its group), "admission" (waiting for the other members), "data" (in the
            backend), "done" (its outcome is known), or "unspecified".
        value: What it gave: a ref, or None.
        error: How it failed. None: it did not, or is not done.
    """

    rank: int
    state: OperationState
    value: Ref | None = None
    error: RankBridgeError | None = None


def group_from_wire(group: group_service_pb2.Group) -> Group:
    """Reads a group."""
    return Group(
        name=group.name,
        ranks=tuple(group.ranks),
        backend=group.backend,
        generation=group.generation,
        rank_in_group=group.rank_in_group if group.HasField("rank_in_group") else None,
        sequence=group.sequence,
    )


def status_from_wire(status: rank_service_pb2.DescribeRankResponse) -> RankStatus:
    """Reads a rank's description of itself."""
    states = rank_service_pb2.GenerationState
    over = error_from_wire(status.generation_error) if status.HasField("generation_error") else None
    known = status.generation_state in states.values()
    state = states.Name(status.generation_state) if known else "GENERATION_STATE_UNSPECIFIED"
    return RankStatus(
        rank=status.rank,
        world_size=status.world_size,
        local_rank=status.local_rank,
        pid=status.pid,
        host=status.host,
        backend=status.backend,
        generation=status.generation,
        generation_state=state.removeprefix("GENERATION_STATE_").lower(),
        generation_error=over,
        groups=tuple(group_from_wire(group) for group in status.groups),
        sessions=tuple(
            SessionUsage(session_id=usage.session_id, refs=usage.refs, bytes=usage.bytes)
            for usage in status.sessions
        ),
        pending_operations=status.pending_operations,
        endpoints=tuple(status.endpoints),
        version=status.version,
    )


def formed_from_wire(formed: gang_service_pb2.Formed) -> Formed:
    """Reads a generation that was formed."""
    return Formed(generation=formed.generation, world_size=formed.world_size, took=formed.took_us / 1e6)


def operation_state(number: int) -> OperationState:
    """Names the state of an operation; one of a newer protocol is "unspecified"."""
    states = operation_service_pb2.OperationState
    name = states.Name(number) if number in states.values() else "OPERATION_STATE_UNSPECIFIED"  # type: ignore[arg-type]
    return cast(OperationState, name.removeprefix("OPERATION_STATE_").lower())
