"""Averages of gradients and models, for asyncio."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Unpack, overload

from rankbridge._async.front import AsyncGangFront
from rankbridge._plan import compositions as compositions
from rankbridge._plan.operations import CallOptions
from rankbridge._plan.ref import Ref

__all__ = ["AsyncGangAveraging"]


class AsyncGangAveraging(AsyncGangFront):
    """As ``GangAveraging``: what an ``AsyncGang`` does, to be awaited."""

    @overload
    async def average(self, tensors: Sequence[Ref], **options: Unpack[CallOptions]) -> list[Ref]: ...
    @overload
    async def average(
        self, tensors: Mapping[str, Sequence[Ref]], **options: Unpack[CallOptions]
    ) -> dict[str, list[Ref]]: ...
    @overload
    async def average(
        self, tensors: Sequence[Mapping[str, Ref]], **options: Unpack[CallOptions]
    ) -> list[dict[str, Ref]]: ...

    async def average(
        self,
        tensors: Sequence[Ref] | Mapping[str, Sequence[Ref]] | Sequence[Mapping[str, Ref]],
        **options: Unpack[CallOptions],
    ) -> list[Ref] | dict[str, list[Ref]] | list[dict[str, Ref]]:
        """As ``Gang.average``."""
        averaged: list[Ref] | dict[str, list[Ref]] | list[dict[str, Ref]] = await self._carried_out(
            compositions.averaging(self, tensors, dict(options))
        )
        return averaged

    async def average_gradients(
        self, gradients: Sequence[Mapping[str, Ref]], **options: Unpack[CallOptions]
    ) -> list[dict[str, Ref]]:
        """As ``Gang.average_gradients``."""
        return await self._carried_out(compositions.averaging(self, gradients, dict(options)))

    async def average_models(
        self, parameters: Sequence[Mapping[str, Ref]], **options: Unpack[CallOptions]
    ) -> list[dict[str, Ref]]:
        """As ``Gang.average_models``."""
        return await self._carried_out(compositions.averaging(self, parameters, dict(options)))
