# Written by scripts/unasync.py from _async/front.py: change that file, not this one.
"""What every part of the blocking client stands on: a gang's calls, over its channels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from rankbridge._plan.gang_core import GangCore
from rankbridge._plan.groups import Group
from rankbridge._plan.procedures import Procedure, calling, members_of
from rankbridge._transport.threads.channels import Channels

if TYPE_CHECKING:
    from rankbridge._sync.rank import Rank

    Core = GangCore[Rank]
else:
    # A rank uses this: at run time it cannot be named yet.
    Core = GangCore

T = TypeVar("T")


class GangFront(Core):
    """A gang whose calls block."""

    _channels: Channels

    def _members(self, group: str | Group) -> tuple[int, ...]:
        return self._carried_out(members_of(self, group))

    def _called(self, operation: str, given: Any = None, /, **options: Any) -> list[Any]:
        return self._carried_out(calling(self, operation, given, options))

    def _carried_out(self, procedure: Procedure[T]) -> T:
        try:
            calls = next(procedure)
            while True:
                try:
                    outcomes = self._channels.outcomes(calls)
                except BaseException as error:
                    calls = procedure.throw(error)
                else:
                    calls = procedure.send(outcomes)
        except StopIteration as end:
            result: T = end.value
            return result
