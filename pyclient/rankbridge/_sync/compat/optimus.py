# Written by scripts/unasync.py from _async/compat/optimus.py: change that file, not this one.
"""optimus-dl's ``Collective`` over a gang, blocking. Its meshes are those of ``Gang.new_mesh``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

from rankbridge._plan.operations import CallOptions
from rankbridge._plan.ref import Ref
from rankbridge._sync.gang import Gang


def all_gather_to_list(gang: Gang, refs: Sequence[Ref], **options: Unpack[CallOptions]) -> list[list[Ref]]:
    """Gives every member a list of all members' tensors: see ``Gang.all_gather``."""
    return gang.all_gather(refs, layout="list", **options)


def all_gather_objects(
    gang: Gang, values: Sequence[object], **options: Unpack[CallOptions]
) -> list[list[Any]]:
    """Gives every member all members' values: see ``Gang.all_gather_object``."""
    return gang.all_gather_object(values, **options)


def broadcast_objects(
    gang: Gang, values: Sequence[object], *, src_rank_in_group: int = 0, **options: Unpack[CallOptions]
) -> list[list[Any]]:
    """Gives every member the source's list of values: see ``Gang.broadcast_object_list``."""
    return gang.broadcast_object_list(values, src_rank_in_group=src_rank_in_group, **options)
