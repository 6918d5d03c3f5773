# Written by scripts/unasync.py from _async/coalesced.py: change that file, not this one.
"""Several collectives of one group as one operation, blocking."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

from rankbridge._plan import operations as ops
from rankbridge._plan import procedures as procedures
from rankbridge._plan.operations import CallOptions, Collective
from rankbridge._sync.front import GangFront, RankFront

__all__ = ["GangCoalesced", "RankCoalesced"]


class GangCoalesced(GangFront):
    """How a ``Gang`` does several collectives at once."""

    def coalesce(self, collectives: Sequence[Collective], **options: Unpack[CallOptions]) -> list[Any]:
        """Does several collectives of one group as one operation: one call and one admission for all of them.

        They run one after another, and all results are there at once: none sees what another gives, not even what
        it did in place. If one fails, none has happened::

            sums, rows = gang.coalesce([
                ("all_reduce", gradients, {"op": "avg", "in_place": True}),
                ("all_gather", counts, {"dim": 0}),
            ])

        Args:
            collectives: For each the name of its method, the refs that this takes (one of each member, in group order,
                all of one session; None for a barrier), and its options, without those of the call: a tuple of one to
                three.
            **options: Of the one call: ``CallOptions``.

        Returns:
            For each collective, in order, what its method gives.

        Raises:
            InvalidArgumentError: A collective is malformed, or is none on tensors. No rank was asked.
            GangError: One cannot be done, or differs among the members; the message tells which.
        """
        return self._carried_out(procedures.coalescing(self, collectives, dict(options)))


class RankCoalesced(RankFront):
    """How a ``Rank`` takes part in several collectives at once."""

    def coalesce(self, collectives: Sequence[Collective], **options: Unpack[CallOptions]) -> list[Any]:
        """Does this member's part of several collectives, and gives what each gives here. See ``Gang.coalesce``.

        Args:
            collectives: For each the name of its method, this rank's ref, and its options.
            **options: Of the one call.
        """
        return self._run(ops.coalesce(self._scope, collectives, **options))
