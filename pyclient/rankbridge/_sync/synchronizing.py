# Written by scripts/unasync.py from _async/synchronizing.py: change that file, not this one.
"""What OLMo-core's distributed utilities have names for, blocking."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Unpack

from rankbridge._plan import group_procedures as procedures
from rankbridge._plan import rounds as rounds
from rankbridge._plan.compositions import checked_flag
from rankbridge._plan.groups import Group
from rankbridge._plan.operations import CallOptions
from rankbridge._plan.rounds import Round
from rankbridge._sync.front import GangFront
from rankbridge._sync.rank import Rank
from rankbridge.errors import GangError

__all__ = ["GangSynchronizing"]


class GangSynchronizing(GangFront):
    """How a ``Gang`` has its members agree, and take turns."""

    def is_distributed(self) -> bool:
        """Asks whether collectives can be called, as OLMo-core's ``is_distributed``.

        Returns:
            True: a generation is formed, on every rank. False: none is, it is over, or a rank does not answer.
        """
        return self._carried_out(procedures.being_formed(self))

    def synchronize_value(
        self, value: object, *, src_rank_in_group: int = 0, **options: Unpack[CallOptions]
    ) -> list[Any]:
        """Gives every member the source's value: `broadcast_object` under OLMo-core's name.

        Unlike there, a float does not become a float32 on the way.

        Args:
            value: The source's: a number, a tensor by value, or anything else that can be a value.
            src_rank_in_group: Whose it is.
            **options: ``CallOptions``.
        """
        return self._called("broadcast_object", value, src_rank_in_group=src_rank_in_group, **options)

    def synchronize_flag(
        self, flag: bool, *, src_rank_in_group: int = 0, **options: Unpack[CallOptions]
    ) -> list[bool]:
        """Gives every member the source's flag, as OLMo-core's ``synchronize_flag``.

        Args:
            flag: The source's.
            src_rank_in_group: Whose it is, counted in the group; OLMo-core counts in the gang.
            **options: ``CallOptions``.

        Raises:
            InvalidArgumentError: It is no bool. No rank was asked.
        """
        given = checked_flag(flag)
        return self._called("broadcast_object", given, src_rank_in_group=src_rank_in_group, **options)

    def do_n_at_a_time(
        self, n: int | None = None, *, group: str | Group = "world", timeout: float | None = None
    ) -> Iterator[Round[Rank]]:
        """Lets the members of a group take turns, a few at a time, as OLMo-core's ``do_n_at_a_time``.

        Gives one round after the other. Each ends with a barrier of the group when the next one is asked for::

            for turns in gang.do_n_at_a_time(2):
                for turn in turns:
                    with turn as rank:
                        rank.put(...)

        What fails inside ``with turn`` leaves the other turns as they are, and is raised after the last round. An
        exception anywhere else ends the rounds; no rank waits for any other then.

        Args:
            n: How many ranks have their turn at once, at most. None: one on each host.
            group: Whose members.
            timeout: Longest time of each barrier, in seconds. None: the gang's default.

        Raises:
            InvalidArgumentError: `n` is less than one, at once. No rank was asked.
            GangError: At the first round: a rank could not be asked. After a round: the barrier failed.
                After the last: some turns failed, with errors of this package.
            Exception: After the last round: what failed in a turn, if it was anything else.
        """
        return self._rounds(rounds.checked_number(n), group, timeout)

    def _rounds(self, n: int | None, group: str | Group, timeout: float | None) -> Iterator[Round[Rank]]:
        planned = self._carried_out(rounds.taking_turns(self, n, group, self.__getitem__))
        for each in planned:
            yield each
            try:
                self._called("barrier", group=group, timeout=timeout)
            except GangError as error:
                rounds.note(error, planned)
                raise
        if (failure := rounds.told(planned)) is not None:
            raise failure
