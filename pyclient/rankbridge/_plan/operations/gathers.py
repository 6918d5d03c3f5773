"""The collectives that collect all members' tensors, in any layout."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Unpack

from rankbridge._plan.calls import Call
from rankbridge._plan.operations.declare import (
    CallOptions,
    Scope,
    checked_rank,
    checked_sizes,
    group_call,
    operation,
    options_of,
    outcome_of,
)
from rankbridge._plan.operations.readers import refs_or_none
from rankbridge._plan.ref import Ref
from rankbridge.errors import InvalidArgumentError
from rankbridge.v1 import collective_service_pb2 as collective_pb

__all__ = ["GatherLayout", "all_gather", "gather"]

GatherLayout = Literal["concatenated", "stacked", "list"]
"""How gathered tensors are put together."""


@operation
def gather(
    scope: Scope,
    ref: Ref,
    *,
    dst_rank_in_group: int = 0,
    dim: int | None = None,
    sizes: Sequence[int] | None = None,
    layout: GatherLayout = "concatenated",
    ragged: bool = False,
    **options: Unpack[CallOptions],
) -> Call[Ref | list[Ref] | None]:
    """Collects all members' tensors at one of them."""
    request = collective_pb.GatherRequest(
        call=options_of(scope, ref.session_id, **options),
        ref_id=ref.id,
        dst_rank_in_group=checked_rank("dst_rank_in_group", dst_rank_in_group),
        dim=dim,
        sizes=checked_sizes("sizes", sizes),
        layout=_layout(layout),
        ragged=ragged,
    )
    read = outcome_of(collective_pb.GatherResponse, refs_or_none)
    return group_call(scope, "gather", "CollectiveService/Gather", request, read)


@operation
def all_gather(
    scope: Scope,
    ref: Ref,
    *,
    dim: int | None = None,
    sizes: Sequence[int] | None = None,
    layout: GatherLayout = "concatenated",
    ragged: bool = False,
    **options: Unpack[CallOptions],
) -> Call[Ref | list[Ref] | None]:
    """Collects all members' tensors at all of them."""
    request = collective_pb.AllGatherRequest(
        call=options_of(scope, ref.session_id, **options),
        ref_id=ref.id,
        dim=dim,
        sizes=checked_sizes("sizes", sizes),
        layout=_layout(layout),
        ragged=ragged,
    )
    read = outcome_of(collective_pb.AllGatherResponse, refs_or_none)
    return group_call(scope, "all_gather", "CollectiveService/AllGather", request, read)


def _layout(layout: str) -> collective_pb.GatherLayout.ValueType:
    known = {
        name.removeprefix("GATHER_LAYOUT_").lower(): number
        for name, number in collective_pb.GatherLayout.items()
        if number
    }
    if layout not in known:
        raise InvalidArgumentError(
            "there is no such layout", expected=f"one of {', '.join(known)}", got=str(layout)
        )
    return known[layout]
