"""What every part of the asyncio client stands on: a gang's calls and one rank's, over its channels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from rankbridge._plan import operations as ops
from rankbridge._plan.calls import Call
from rankbridge._plan.gang_core import GangCore
from rankbridge._plan.groups import Group
from rankbridge._plan.procedures import Procedure, calling, members_of
from rankbridge._transport.aio.channels import AsyncChannels
from rankbridge._transport.shared_memory import Transfers

if TYPE_CHECKING:
    from rankbridge._async.rank import AsyncRank

    Core = GangCore[AsyncRank]
else:
    # A rank has its parts from here: at run time it cannot be named yet.
    Core = GangCore

T = TypeVar("T")


class AsyncGangFront(Core):
    """A gang whose calls are awaited."""

    _channels: AsyncChannels

    async def _members(self, group: str | Group) -> tuple[int, ...]:
        return await self._carried_out(members_of(self, group))

    async def _called(self, operation: str, given: Any = None, /, **options: Any) -> list[Any]:
        return await self._carried_out(calling(self, operation, given, options))

    async def _carried_out(self, procedure: Procedure[T]) -> T:
        try:
            calls = next(procedure)
            while True:
                try:
                    outcomes = await self._channels.outcomes(calls)
                except BaseException as error:
                    calls = procedure.throw(error)
                else:
                    calls = procedure.send(outcomes)
        except StopIteration as end:
            result: T = end.value
            return result


class AsyncRankFront:
    """A rank whose calls are awaited.

    Attributes:
        rank: Rank in the gang.
        target: Its gRPC target.
    """

    def __init__(self, gang: AsyncGangFront, rank: int) -> None:
        """Made by the gang."""
        self._gang = gang
        self.rank = rank
        self.target = gang.targets[rank]

    def __repr__(self) -> str:
        """Gives number and target."""
        return f"{type(self).__name__}({self.rank}, {self.target!r})"

    @property
    def transfers(self) -> Transfers:
        """How large tensors came and went so far: by shared memory, or not and why."""
        shared = self._gang._channels.shared
        return Transfers() if shared is None else shared.transfers(self.rank)

    @property
    def _scope(self) -> ops.Scope:
        return self._gang._scope(self.rank)

    async def _run(self, call: Call[T]) -> T:
        return await self._gang._channels.run(call)
