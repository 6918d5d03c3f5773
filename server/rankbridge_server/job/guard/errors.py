"""What guard raises in the job's script."""

from __future__ import annotations

from ...core.errors import BridgeError, ErrorCode, Failure, RankDetail


class GuardError(RuntimeError):
    """A collective of the job was not entered, on this rank, and on no other that its members had to agree with.

    Attributes:
        code: "MISMATCH": members do not ask for the same, or wait for each other in different groups; "PEER_MISSING":
            some have not come in time; "PEER_LOST": the process of one has ended.
        ranks: What each member asked for, and what a missing one does instead.
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
