"""torchgfn's averages over a gang, for asyncio."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Unpack

from rankbridge._async.gang import AsyncGang
from rankbridge._plan.operations import CallOptions
from rankbridge._plan.ref import Ref


async def average_gradients(
    gang: AsyncGang, gradients: Sequence[Mapping[str, Ref]], **options: Unpack[CallOptions]
) -> list[dict[str, Ref]]:
    """Averages gradients, a map of names to refs of each member: see ``AsyncGang.average``."""
    return await gang.average(gradients, **options)


async def average_models(
    gang: AsyncGang, parameters: Sequence[Mapping[str, Ref]], **options: Unpack[CallOptions]
) -> list[dict[str, Ref]]:
    """Averages parameters, a map of names to refs of each member: see ``AsyncGang.average``.

    It divides by the group's size, where torchgfn divides by the world's.
    """
    return await gang.average(parameters, **options)
