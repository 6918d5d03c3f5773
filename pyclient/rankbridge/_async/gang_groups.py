"""Groups, meshes and layouts of a gang, for asyncio."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rankbridge._async.front import AsyncGangFront
from rankbridge._plan import group_procedures as procedures
from rankbridge._plan.group_procedures import GroupLike
from rankbridge._plan.groups import Group
from rankbridge._plan.layout import Layout
from rankbridge._plan.mesh import Mesh

__all__ = ["AsyncGangGroups"]


class AsyncGangGroups(AsyncGangFront):
    """What an ``AsyncGang`` does with many groups at once. Use it from one task at a time, as "world" itself."""

    async def hosts(self) -> tuple[str, ...]:
        """As ``Gang.hosts``."""
        return await self._carried_out(procedures.hosting(self))

    async def group(self, name: str) -> Group:
        """As ``Gang.group``."""
        return await self._carried_out(procedures.describing(self, name))

    async def new_groups(
        self, groups: Iterable[GroupLike], *, timeout: float | None = None, generation: int = 0
    ) -> list[Group]:
        """As ``Gang.new_groups``."""
        return await self._carried_out(
            procedures.making(self, groups, timeout=timeout, generation=generation)
        )

    async def destroy_groups(
        self, groups: Iterable[str | Group], *, timeout: float | None = None
    ) -> list[Group]:
        """As ``Gang.destroy_groups``."""
        return await self._carried_out(procedures.ending(self, groups, timeout=timeout))

    async def new_mesh(
        self,
        axes: Mapping[str, int],
        *,
        ranks: Iterable[int] | None = None,
        name: str = "mesh",
        flattened: Mapping[str, Iterable[str]] | None = None,
        local: bool = False,
        timeout: float | None = None,
        generation: int = 0,
    ) -> Mesh:
        """As ``Gang.new_mesh``."""
        mesh = procedures.planned(self, axes, ranks, name, flattened)
        procedure = procedures.making_mesh(self, mesh, local=local, timeout=timeout, generation=generation)
        return await self._carried_out(procedure)

    async def mesh(
        self,
        axes: Mapping[str, int],
        *,
        ranks: Iterable[int] | None = None,
        name: str = "mesh",
        flattened: Mapping[str, Iterable[str]] | None = None,
        local: bool = False,
    ) -> Mesh:
        """As ``Gang.mesh``."""
        mesh = procedures.planned(self, axes, ranks, name, flattened)
        return await self._carried_out(procedures.finding_mesh(self, mesh, local=local))

    async def new_layout(
        self, layout: Layout, *, timeout: float | None = None, generation: int = 0
    ) -> Layout:
        """As ``Gang.new_layout``."""
        procedure = procedures.making_layout(self, layout, timeout=timeout, generation=generation)
        return await self._carried_out(procedure)
