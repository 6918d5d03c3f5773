"""Errors, with the details that a caller needs to act on them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import NamedTuple, Self

from .activity import Activity

_MAX_SHOWN = 500


class ErrorCode(Enum):
    """Kind of failure. Names and meanings are those of `rankbridge.v1.ErrorCode`."""

    INVALID_ARGUMENT = auto()
    UNKNOWN_REF = auto()
    RELEASED_REF = auto()
    WRONG_SESSION = auto()
    UNKNOWN_SESSION = auto()
    UNKNOWN_GROUP = auto()
    GROUP_EXISTS = auto()
    RANK_OUT_OF_RANGE = auto()
    UNSUPPORTED_DTYPE = auto()
    RESOURCE_EXHAUSTED = auto()
    MISMATCH = auto()
    PEER_MISSING = auto()
    PEER_LOST = auto()
    DEADLINE_EXCEEDED = auto()
    NOT_FORMED = auto()
    STALE_GENERATION = auto()
    BACKEND_FAILED = auto()
    ABORTED = auto()
    FORMING_FAILED = auto()
    INTERNAL = auto()
    UNKNOWN_OPERATION = auto()
    CANCELLED = auto()
    UNSUPPORTED_OPERATION = auto()
    UNKNOWN_QUEUE = auto()
    NAME_EXISTS = auto()
    UNKNOWN_GRAPH = auto()
    UNKNOWN_SHARED_MEMORY = auto()
    FUNCTION_FAILED = auto()
    UNKNOWN_FUNCTION = auto()


class Phase(Enum):
    """The phase in which a call failed. Names are those of `rankbridge.v1.Phase`."""

    UNSPECIFIED = auto()
    CHECK = auto()
    ADMISSION = auto()
    DATA = auto()
    FORMING = auto()


class RankState(Enum):
    """One rank's part in a failure. Names are those of `rankbridge.v1.RankState`."""

    ARRIVED = auto()
    MISSING = auto()
    DISAGREES = auto()
    LOST = auto()
    FAILED = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class RankDetail:
    """One rank's part in a failure. `rank`: in the gang. `detail`: what the rank asked for, or its error.

    `site`: the line of code that has asked for it; empty: not said. `activity`: what a missing rank does instead; None:
    it was not asked.
    """

    rank: int
    rank_in_group: int
    state: RankState
    detail: str = ""
    site: str = ""
    activity: Activity | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Raised:
    """An exception that a function of the user's raised. `rank`: in the gang. `type`: the name of its class.

    `where`: the innermost line of the user's own; empty: there is none.
    """

    rank: int
    type: str
    text: str
    traceback: str
    where: str = ""

    def __str__(self) -> str:
        said = f"{self.type}: {self.text}" if self.text else self.type
        return f"{said} ({self.where})" if self.where else said


class Place(NamedTuple):
    """Where a failure happened. Empty fields are unknown or do not apply."""

    rank: int = 0
    group: str = ""
    operation: str = ""
    operation_id: str = ""
    generation: int = 0

    def __str__(self) -> str:
        parts = [f"rank {self.rank}"]
        if self.group:
            parts.append(f"group {self.group!r}")
        if self.operation:
            parts.append(self.operation)
        return ", ".join(parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A failure, with all its details; mirrors `rankbridge.v1.Error`.

    `indefinite`: some rank may have done the operation. Otherwise no rank has done it, and none will.
    """

    code: ErrorCode
    message: str
    indefinite: bool = False
    phase: Phase = Phase.UNSPECIFIED
    place: Place | None = None
    expected: str = ""
    got: str = ""
    ranks: tuple[RankDetail, ...] = ()
    raised: Raised | None = None

    def __str__(self) -> str:
        # A message that begins with its code has a headline, which says where it happened.
        if self.message.startswith(self.code.name):
            return self.message
        where = f"{self.place}: " if self.place else ""
        shown = self.expected and any(detail.detail == self.expected for detail in self.ranks)
        sides = (
            f" (expected {self.expected}, got {self.got})"
            if (self.expected or self.got) and not shown
            else ""
        )
        return f"{where}{self.message}{sides}"


class BridgeError(Exception):
    """The exception for a failure."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(str(failure))
        self.failure = failure

    @classmethod
    def of(
        cls,
        code: ErrorCode,
        message: str,
        *,
        phase: Phase = Phase.UNSPECIFIED,
        indefinite: bool = False,
        expected: str = "",
        got: str = "",
        ranks: tuple[RankDetail, ...] = (),
        raised: Raised | None = None,
    ) -> Self:
        """Makes an error without a place; the caller that knows the place adds it with `at`."""
        return cls(
            Failure(
                code=code,
                message=message,
                phase=phase,
                indefinite=indefinite,
                expected=expected,
                got=got,
                ranks=ranks,
                raised=raised,
            )
        )

    def at(self, place: Place, phase: Phase = Phase.UNSPECIFIED) -> BridgeError:
        """The same error, with this place and phase unless it has its own."""
        failure = self.failure
        if failure.place is None:
            failure = replace(failure, place=place)
        if failure.phase is Phase.UNSPECIFIED:
            failure = replace(failure, phase=phase)
        return BridgeError(failure)


def shown(text: str) -> str:
    """A text for an error, cut if it is very long, as that of a request with an object in it may be."""
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}... ({len(text)} characters)"


def unknown_group(name: str) -> BridgeError:
    """The error for a group that this rank does not know."""
    return BridgeError.of(ErrorCode.UNKNOWN_GROUP, f"no group {name!r} on this rank")


def invalid(message: str, *, expected: str = "", got: str = "") -> BridgeError:
    """The error for an argument that is missing, malformed or contradicts another."""
    return BridgeError.of(ErrorCode.INVALID_ARGUMENT, message, expected=expected, got=got)


def exhausted(message: str, *, most: str, got: str) -> BridgeError:
    """The error for more than this rank takes. `most`: what it takes, with its unit: "4096 bytes"."""
    return BridgeError.of(ErrorCode.RESOURCE_EXHAUSTED, message, expected=f"at most {most}", got=got)


def check_rank(message: str, rank: int, size: int) -> None:
    """Raises RANK_OUT_OF_RANGE with `message` for a rank that a group or gang of `size` does not have."""
    if not 0 <= rank < size:
        expected = f"0 to {size - 1}"
        raise BridgeError.of(ErrorCode.RANK_OUT_OF_RANGE, message, expected=expected, got=str(rank))


def disagreeing_ranks(
    ranks: Sequence[int], odd: Collection[int], details: Sequence[str]
) -> tuple[RankDetail, ...]:
    """The details of all members of a group, of which the `odd`, by rank in group, do not go with the others."""
    return tuple(
        RankDetail(
            rank=rank,
            rank_in_group=place,
            state=RankState.DISAGREES if place in odd else RankState.ARRIVED,
            detail=details[place],
        )
        for place, rank in enumerate(ranks)
    )


def failed_on(code: ErrorCode, what: str, ranks: Sequence[int], troubles: Sequence[str]) -> BridgeError:
    """The error that all members of a group get when `what` has failed on some. Arguments as of `failed_ranks`."""
    failed = failed_ranks(ranks, troubles)
    where = f"on {len(failed)} of {len(ranks)} ranks; first, rank {failed[0].rank}: {failed[0].detail}"
    return BridgeError.of(code, f"{what} {where}", phase=Phase.ADMISSION, ranks=failed)


def failed_ranks(ranks: Sequence[int], troubles: Sequence[str]) -> tuple[RankDetail, ...]:
    """The details of members that failed. `troubles`: texts by rank in group, empty for none. `ranks`: of the group."""
    return tuple(
        RankDetail(rank=ranks[place], rank_in_group=place, state=RankState.FAILED, detail=trouble)
        for place, trouble in enumerate(troubles)
        if trouble
    )
