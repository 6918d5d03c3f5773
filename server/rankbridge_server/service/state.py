"""What a rank is, as its record has it: the part of its evidence that does not change with each operation."""

from __future__ import annotations

import threading

from rankbridge.v1 import debug_service_pb2 as pb

from .rank import RankServicer


def packed_state(described: RankServicer, most: int) -> bytes:
    """Packs it. `most`: bytes; where they are too few, groups are left out of which the rank is no member, then all."""
    state = pb.GetEvidenceResponse(rank=described.description())
    rank = state.rank
    # They change with each operation.
    rank.ClearField("sessions")
    rank.ClearField("pending_operations")
    if described.has_script:
        state.user_thread = threading.main_thread().native_id or 0
    if state.ByteSize() > most:
        own = [it for it in rank.groups if it.HasField("rank_in_group")]
        rank.ClearField("groups")
        rank.groups.extend(own)
    for name in ("groups", "abilities", "generation_error"):
        if state.ByteSize() > most:
            rank.ClearField(name)
    return state.SerializeToString()


def state_of(packed: bytes) -> pb.GetEvidenceResponse:
    """What a rank's record says of it. Raises DecodeError."""
    return pb.GetEvidenceResponse.FromString(packed)
