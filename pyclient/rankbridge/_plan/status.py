"""What ranks tell about themselves: sessions, generations, operations; and how it is read from the wire."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

from rankbridge._plan.dtypes import DTYPES
from rankbridge._plan.failures import error_from_wire
from rankbridge._plan.groups import Group
from rankbridge._plan.wire import fields_of, short_name
from rankbridge.errors import RankBridgeError
from rankbridge.v1 import (
    collective_service_pb2,
    gang_service_pb2,
    group_service_pb2,
    operation_service_pb2,
    rank_service_pb2,
)

_OPERATIONS = tuple(operation_service_pb2.Operation.DESCRIPTOR.fields_by_name)
_DTYPES: dict[int, str] = {dtype.code: name for name, dtype in DTYPES.items()}
_OPS: dict[int, str] = {
    number: name.removeprefix("REDUCE_OP_").lower()
    for name, number in collective_service_pb2.ReduceOp.items()
}

OperationState = Literal["queued", "admission", "data", "done", "unspecified"]
"""How far an operation is on one rank."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionUsage:
    """What one session owns on one rank: its refs, and the bytes of their tensors."""

    session_id: str
    refs: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Abilities:
    """What a rank's backend can do, as far as this client knows of it too.

    Attributes:
        collectives: Those that the rank runs, by the names of ``Gang``'s methods.
        dtypes: Names of the dtypes that tensors can have there; every collective that does not reduce moves all of
            them.
        reductions: For each reduce op, the dtypes that `reduce`, `all_reduce` and `reduce_scatter` do it on.
    """

    collectives: tuple[str, ...]
    dtypes: tuple[str, ...]
    reductions: Mapping[str, tuple[str, ...]]


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
        groups: Groups of the generation that it knows, by name. Those of which it is no member may have ended.
        sessions: Sessions and what they own; the shared one first.
        pending_operations: Operations accepted and not yet answered.
        endpoints: Where its sidecar serves, as gRPC targets.
        version: Version of rankbridge there.
        abilities: What its backend can do. None: its version does not tell.
        device: Where its tensors live that name no device: "cpu", "cuda:0".
        fs_local_rank: Rank among those that share its file system, as its launcher says: the one of 0 downloads for
            the others.
        local_world_size: Ranks on its host, as its launcher says. 0: not said.
        generation_since: When the generation was formed, or was over if it is, by the clock of its host: seconds since
            1970 in UTC. 0: neither, or its version does not report it.
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
    abilities: Abilities | None = None
    device: str = ""
    fs_local_rank: int = 0
    local_world_size: int = 0
    generation_since: float = 0.0

    @property
    def backend_supports_cuda(self) -> bool:
        """Whether the backend moves tensors of CUDA devices, as OLMo-core's ``backend_supports_cuda``."""
        return "nccl" in self.backend

    @property
    def backend_supports_cpu(self) -> bool:
        """Whether the backend moves tensors of the CPU, as OLMo-core's ``backend_supports_cpu``."""
        return any(name in self.backend for name in ("gloo", "mpi", "fake"))


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
        value: What it gave, as the direct call on this rank: a ref, a value, or None.
        error: How it failed. None: it did not, or is not done.
    """

    rank: int
    state: OperationState
    value: Any = None
    error: RankBridgeError | None = None


def group_from_wire(group: group_service_pb2.Group) -> Group:
    """Reads a group."""
    return Group(**fields_of(Group, group))


def status_from_wire(status: rank_service_pb2.DescribeRankResponse) -> RankStatus:
    """Reads a rank's description of itself."""
    over = error_from_wire(status.generation_error) if status.HasField("generation_error") else None
    return RankStatus(
        **fields_of(RankStatus, status),
        generation_state=short_name(rank_service_pb2.GenerationState.items(), status.generation_state),
        generation_error=over,
        generation_since=status.generation_since_us / 1e6,
        groups=tuple(group_from_wire(group) for group in status.groups),
        sessions=tuple(SessionUsage(**fields_of(SessionUsage, usage)) for usage in status.sessions),
        abilities=abilities_from_wire(status.abilities) if status.HasField("abilities") else None,
    )


def abilities_from_wire(abilities: rank_service_pb2.Abilities) -> Abilities:
    """Reads what a backend can do; what this client does not know is left out."""
    collectives = frozenset(abilities.collectives)
    return Abilities(
        collectives=tuple(name for name in _OPERATIONS if name in collectives),
        dtypes=_dtypes(abilities.dtypes),
        reductions={_OPS[it.op]: _dtypes(it.dtypes) for it in abilities.reductions if it.op in _OPS},
    )


def _dtypes(codes: Iterable[int]) -> tuple[str, ...]:
    return tuple(_DTYPES[code] for code in codes if code in _DTYPES)


def formed_from_wire(formed: gang_service_pb2.Formed) -> Formed:
    """Reads a generation that was formed."""
    return Formed(took=formed.took_us / 1e6, **fields_of(Formed, formed))


def operation_state(number: int) -> OperationState:
    """Names the state of an operation; one of a newer protocol is "unspecified"."""
    return cast(OperationState, short_name(operation_service_pb2.OperationState.items(), number))
