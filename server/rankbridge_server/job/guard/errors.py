"""What guard raises in the job's script."""

from __future__ import annotations

from collections.abc import Sequence

from ...core.errors import BridgeError, ErrorCode, Failure, RankDetail, RankState

_STATES = {ErrorCode.PEER_LOST: RankState.LOST, ErrorCode.PEER_MISSING: RankState.MISSING}


class GuardError(RuntimeError):
    """A call of the job was not entered, on this rank, and on no other that had to agree with it.

    Attributes:
        code: "MISMATCH": ranks do not ask for the same, or wait for each other; "PEER_MISSING": some have not come in
            time; "PEER_LOST": the process of one has ended.
        ranks: What each rank asked for, and what a missing one does instead.
    """

    def __init__(self, failure: Failure) -> None:
        """The text says both sides, with the lines of code that have called."""
        super().__init__(str(failure))
        self.code = failure.code.name
        self.ranks: tuple[RankDetail, ...] = failure.ranks

    @classmethod
    def of(cls, code: ErrorCode, message: str, ranks: tuple[RankDetail, ...] = ()) -> GuardError:
        """Makes one."""
        return cls(BridgeError.of(code, message, ranks=ranks).failure)

    @classmethod
    def about(
        cls, code: ErrorCode, kind: str, group: str, members: Sequence[int], reason: str, ranks: Sequence[int]
    ) -> GuardError:
        """Makes one about some ranks. One that is no member of the group has -1 as its rank there."""
        state = _STATES.get(code, RankState.DISAGREES)
        details = tuple(
            RankDetail(rank=it, rank_in_group=members.index(it) if it in members else -1, state=state)
            for it in ranks
        )
        return cls.of(code, f"{code.name} in {kind} on {group}: {reason}", details)
