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
    """What a ``AsyncGang`` does with many groups at once. Use it from one thread at a time, as "world" itself."""

    async def hosts(self) -> tuple[str, ...]:
        """Gives the name of each rank's host, by rank.

        Raises:
            GangError: Some rank could not be asked.
        """
        return await self._carried_out(procedures.hosting(self))

    async def group(self, name: str) -> Group:
        """Describes one group, and where its members run, as far as ranks answer.

        Args:
            name: Its name. Empty: "world".

        Raises:
            UnknownGroupError: No rank that answers is a member of it.
            GangError: No rank answers.
        """
        return await self._carried_out(procedures.describing(self, name))

    async def new_groups(
        self, groups: Iterable[GroupLike], *, timeout: float | None = None, generation: int = 0
    ) -> list[Group]:
        """Makes several groups: all of them, or none.

        They are made one after the other, each on every rank before the next begins. If one fails, or the waiting is
        interrupted, those before it are ended again; an error after which some may be left has a note that names
        them.

        Args:
            groups: For each, its name and its ranks in group order, or a ``Group``.
            timeout: Longest time for each of them, in seconds. None: the gang's default.
            generation: Generation that is meant. 0: the current one.

        Returns:
            The groups, in the order of the argument.

        Raises:
            InvalidArgumentError: A description is malformed. No rank was asked.
            GroupExistsError: There is a group of one of the names. None was made.
            GangError: One could not be made on every rank.
        """
        return await self._carried_out(
            procedures.making(self, groups, timeout=timeout, generation=generation)
        )

    async def destroy_groups(
        self, groups: Iterable[str | Group], *, timeout: float | None = None
    ) -> list[Group]:
        """Ends those of the groups that exist, each after the calls queued on it.

        Args:
            groups: Names, or groups: ``mesh.groups()``, ``layout.groups()``.
            timeout: Longest time for each of them, in seconds. None: the gang's default.

        Returns:
            Those that were ended, as they were.

        Raises:
            GangError: Some could not be ended; a note names them. All were tried.
        """
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
        """Lays ranks out along named axes, and makes a group for each line of each axis, as `new_groups` does.

        Args:
            axes: Size of each axis, outermost first: ``{"dp": 2, "tp": 2}``. One may be -1: what the others leave.
            ranks: The ranks in row-major order. None: all of the gang.
            name: What the names of the groups begin with.
            flattened: Axes that each flattened axis stands for: ``{"dp": ["dp_replicate", "dp_shard"]}``.
            local: Whether to have the axis "local", of those on one host.
            timeout: Longest time for each group, in seconds. None: the gang's default.
            generation: Generation that is meant. 0: the current one.

        Raises:
            InvalidArgumentError: The sizes do not fit the number of ranks. No rank was asked.
            GroupExistsError: There is a group of one of the names. None was made.
            GangError: A group could not be made on every rank.
        """
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
        """Gives a mesh whose groups are there: made by another controller, or again with the current generation.

        Args:
            axes: As of `new_mesh`.
            ranks: As of `new_mesh`.
            name: As of `new_mesh`.
            flattened: As of `new_mesh`.
            local: As of `new_mesh`.

        Raises:
            InvalidArgumentError: The sizes do not fit the number of ranks, or groups have other members: the
                gang has become smaller.
            UnknownGroupError: Groups are missing.
            GangError: Some rank could not be asked.
        """
        mesh = procedures.planned(self, axes, ranks, name, flattened)
        return await self._carried_out(procedures.finding_mesh(self, mesh, local=local))

    async def new_layout(
        self, layout: Layout, *, timeout: float | None = None, generation: int = 0
    ) -> Layout:
        """Makes the groups of a role layout, as `new_groups` does.

        Args:
            layout: ``Layout.by_host(gang.hosts(), ...)``, or ``Layout.in_blocks(len(gang), ...)``.
            timeout: Longest time for each group, in seconds. None: the gang's default.
            generation: Generation that is meant. 0: the current one.

        Raises:
            InvalidArgumentError: It is for another number of ranks. No rank was asked.
            GroupExistsError: There is a group of one of the names. None was made.
            GangError: A group could not be made on every rank.
        """
        procedure = procedures.making_layout(self, layout, timeout=timeout, generation=generation)
        return await self._carried_out(procedure)
