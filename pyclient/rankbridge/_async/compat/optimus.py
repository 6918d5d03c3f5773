"""optimus-dl's ``Collective`` over a gang, for asyncio. Its meshes are those of ``AsyncGang.new_mesh``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

from rankbridge._async.gang import AsyncGang
from rankbridge._plan.operations import CallOptions
from rankbridge._plan.ref import Ref


async def all_gather_to_list(
    gang: AsyncGang, refs: Sequence[Ref], **options: Unpack[CallOptions]
) -> list[list[Ref]]:
    """Gives every member a list of all members' tensors: see ``AsyncGang.all_gather``."""
    return await gang.all_gather(refs, layout="list", **options)


async def all_gather_objects(
    gang: AsyncGang, values: Sequence[object], **options: Unpack[CallOptions]
) -> list[list[Any]]:
    """Gives every member all members' values: see ``AsyncGang.all_gather_object``."""
    return await gang.all_gather_object(values, **options)


async def broadcast_objects(
    gang: AsyncGang, values: Sequence[object], *, src_rank_in_group: int = 0, **options: Unpack[CallOptions]
) -> list[list[Any]]:
    """Gives every member the source's list of values: see ``AsyncGang.broadcast_object_list``."""
    return await gang.broadcast_object_list(values, src_rank_in_group=src_rank_in_group, **options)
