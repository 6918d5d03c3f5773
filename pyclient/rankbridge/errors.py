"""Everything that this package raises on purpose.

The tree, with the ``ErrorCode`` of each leaf::

    RankBridgeError
    ├── InvalidArgumentError (ValueError)    INVALID_ARGUMENT
    │   ├── RankOutOfRangeError              RANK_OUT_OF_RANGE
    │   └── UnsupportedDtypeError            UNSUPPORTED_DTYPE
    ├── RefError
    │   ├── UnknownRefError                  UNKNOWN_REF
    │   └── ReleasedRefError                 RELEASED_REF
    ├── UnknownOperationError                UNKNOWN_OPERATION
    ├── SessionError
    │   ├── WrongSessionError                WRONG_SESSION
    │   └── UnknownSessionError              UNKNOWN_SESSION
    ├── GroupError
    │   ├── UnknownGroupError                UNKNOWN_GROUP
    │   ├── GroupExistsError                 GROUP_EXISTS
    │   └── UnknownQueueError                UNKNOWN_QUEUE
    ├── UnknownGraphError                    UNKNOWN_GRAPH
    ├── UnknownFunctionError                 UNKNOWN_FUNCTION
    ├── UnknownSharedMemoryError             UNKNOWN_SHARED_MEMORY
    ├── NameExistsError                      NAME_EXISTS
    ├── UnsupportedOperationError            UNSUPPORTED_OPERATION
    ├── ResourceExhaustedError               RESOURCE_EXHAUSTED
    ├── MismatchError                        MISMATCH
    ├── FunctionFailedError                  FUNCTION_FAILED
    ├── PeerMissingError                     PEER_MISSING
    ├── DeadlineExceededError (TimeoutError) DEADLINE_EXCEEDED
    ├── CallCancelledError                   CANCELLED
    ├── GenerationError: form the gang again
    │   ├── PeerLostError                    PEER_LOST
    │   ├── NotFormedError                   NOT_FORMED
    │   ├── StaleGenerationError             STALE_GENERATION
    │   ├── BackendFailedError               BACKEND_FAILED
    │   ├── AbortedError                     ABORTED
    │   └── FormingFailedError               FORMING_FAILED
    ├── InternalError                        INTERNAL
    ├── TransportError: the call was not understood, allowed or delivered
    │   ├── UnavailableError                 UNAVAILABLE
    │   ├── NotAllowedError                  NOT_ALLOWED
    │   └── ProtocolError                    PROTOCOL
    └── GangError: a call to several ranks failed on some of them

A call to several ranks raises one exception that is both a ``GangError`` and an instance of the root cause's
own class, so ``except MismatchError`` means the same for one rank and for all.

After any failure ``error.indefinite`` says what is known: False, no rank has done the operation and none
will; True, some, all, or none have.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

T_co = TypeVar("T_co", covariant=True)


class ErrorCode(enum.StrEnum):
    """What went wrong: the codes of ``rankbridge.v1.ErrorCode``, and three of the transport.

    Of codes that can meet in one gang call, the one declared first here is the cause and the others follow
    from it: a rank that refuses its arguments, or whose call was cancelled, makes the others miss it.
    """

    INVALID_ARGUMENT = "INVALID_ARGUMENT"
    UNKNOWN_REF = "UNKNOWN_REF"
    RELEASED_REF = "RELEASED_REF"
    UNKNOWN_OPERATION = "UNKNOWN_OPERATION"
    WRONG_SESSION = "WRONG_SESSION"
    UNKNOWN_SESSION = "UNKNOWN_SESSION"
    UNKNOWN_GROUP = "UNKNOWN_GROUP"
    UNKNOWN_QUEUE = "UNKNOWN_QUEUE"
    UNKNOWN_GRAPH = "UNKNOWN_GRAPH"
    UNKNOWN_FUNCTION = "UNKNOWN_FUNCTION"
    UNKNOWN_SHARED_MEMORY = "UNKNOWN_SHARED_MEMORY"
    GROUP_EXISTS = "GROUP_EXISTS"
    NAME_EXISTS = "NAME_EXISTS"
    RANK_OUT_OF_RANGE = "RANK_OUT_OF_RANGE"
    UNSUPPORTED_DTYPE = "UNSUPPORTED_DTYPE"
    UNSUPPORTED_OPERATION = "UNSUPPORTED_OPERATION"
    RESOURCE_EXHAUSTED = "RESOURCE_EXHAUSTED"
    MISMATCH = "MISMATCH"
    FUNCTION_FAILED = "FUNCTION_FAILED"
    INTERNAL = "INTERNAL"
    NOT_ALLOWED = "NOT_ALLOWED"
    PROTOCOL = "PROTOCOL"
    PEER_LOST = "PEER_LOST"
    BACKEND_FAILED = "BACKEND_FAILED"
    FORMING_FAILED = "FORMING_FAILED"
    UNAVAILABLE = "UNAVAILABLE"
    STALE_GENERATION = "STALE_GENERATION"
    NOT_FORMED = "NOT_FORMED"
    ABORTED = "ABORTED"
    CANCELLED = "CANCELLED"
    DEADLINE_EXCEEDED = "DEADLINE_EXCEEDED"
    PEER_MISSING = "PEER_MISSING"
    UNSPECIFIED = "UNSPECIFIED"


_CAUSE_ORDER = {code: place for place, code in enumerate(ErrorCode)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Activity:
    """What a missing rank did, as its sidecar said, while others waited for it.

    Attributes:
        doing: "idle" (it has no call), "waiting" (for others, in another operation), "running" (another operation, in
            the backend), "function" (it runs one), "stopped" (its process is), "silent" (it did not say in time; it may
            be busy, and is not known to be dead), "held" (at a breakpoint), or "unspecified".
        group: Name of the group of what it waits for, runs, or is held at.
        operation: Kind of operation; of "function", the function's name.
        operation_id: Id of that operation.
        site: The line of code that called for it. Empty: not said.
        for_ms: For how long, in milliseconds; of "silent", how long others waited for its answer.
        where: Of "function", where it is: the innermost line of the user's own code, "data.py:88 in next_batch". Of
            "idle", where the script is of a job to which the rank was attached. Empty: not known.
    """

    doing: str
    group: str = ""
    operation: str = ""
    operation_id: str = ""
    site: str = ""
    for_ms: int = 0
    where: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankDetail:
    """One rank's part in a failure.

    Attributes:
        rank: Rank in the gang.
        rank_in_group: Rank in the group of the operation.
        state: "arrived", "missing", "disagrees", "lost", "failed", or "unspecified".
        detail: What it asked for, or what failed there, in words.
        site: The line of code that asked for it, "file:line". Empty: it asked for nothing, or its caller did not say.
        activity: Of a missing rank: what it did instead. None: it was not asked.
    """

    rank: int
    rank_in_group: int
    state: str
    detail: str = ""
    site: str = ""
    activity: Activity | None = None

    def __str__(self) -> str:
        """Gives for example ``rank 3 missing`` or ``rank 1 disagrees (float32[8])``."""
        return f"rank {self.rank} {self.state}" + (f" ({self.detail})" if self.detail else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One of the different calls that ranks of a group made, in a ``MismatchError`` or a ``PeerMissingError``.

    Attributes:
        ranks: The ranks in the gang that made it, ascending.
        contract: What they asked for, in words.
        site: The line of code that did, "file:line". Empty: not said.
    """

    ranks: tuple[int, ...]
    contract: str
    site: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Raised:
    """An exception that a function of the user's own raised on a rank.

    Attributes:
        rank: Rank in the gang.
        type: Name of its class: "ValueError", "torch.OutOfMemoryError".
        text: Its text.
        traceback: Python's traceback, the user's own lines first, the innermost at the top.
        where: The innermost line of the user's own: "train.py:88 in next_batch". Empty: there is none.
    """

    rank: int
    type: str
    text: str
    traceback: str
    where: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome(Generic[T_co]):
    """How one rank's part of a gang call ended: with a value, or with an error.

    Attributes:
        rank: Rank in the gang.
        value: What the rank answered. None if it failed, and where the operation gives none.
        error: What failed there. None: it succeeded.
    """

    rank: int
    value: T_co | None = None
    error: RankBridgeError | None = None


class RankBridgeError(Exception):
    """A failure, with what a caller needs to act on it.

    Attributes:
        code: What went wrong.
        message: One sentence for people.
        indefinite: True: some rank may have done the operation. False: none has, and none will.
        phase: How far it had come: "check", "admission", "data", "forming", or "unspecified".
        rank: Rank in the gang that reports the failure. None: none does, the client itself refuses.
        group: Name of the group. Empty: none was involved.
        operation: Kind of operation, for example "all_reduce". Empty: none was involved.
        operation_id: Id of the operation. Empty: it had none.
        generation: Generation in which it failed. 0: none was formed, or none is known.
        expected: What would have been right. Empty: it does not apply.
        got: What was there instead. Empty: it does not apply.
        ranks: The ranks concerned, ascending. Empty: `rank` alone.
        raised: Of a ``FunctionFailedError``: the exception. None: no function raised one.
    """

    code: ErrorCode = ErrorCode.UNSPECIFIED

    def __init__(
        self,
        message: str,
        *,
        indefinite: bool = False,
        phase: str = "unspecified",
        rank: int | None = None,
        group: str = "",
        operation: str = "",
        operation_id: str = "",
        generation: int = 0,
        expected: str = "",
        got: str = "",
        ranks: Sequence[RankDetail] = (),
        raised: Raised | None = None,
    ) -> None:
        """Keeps all of it; see the class for the meaning of each."""
        super().__init__(message)
        self.message = message
        self.indefinite = indefinite
        self.phase = phase
        self.rank = rank
        self.group = group
        self.operation = operation
        self.operation_id = operation_id
        self.generation = generation
        self.expected = expected
        self.got = got
        self.ranks = tuple(ranks)
        self.raised = raised

    def __str__(self) -> str:
        """Gives code and message, and of rank, operation, group and both sides what the message leaves out.

        A line for each distinct part follows, with the ranks that have it. A message that begins with its code has all
        of that itself::

            MISMATCH in all_reduce #1 (x1) on world
              ranks 0-2: float32[3] sum
              rank 3:    float32[3] max
        """
        if self.message.startswith(f"{self.code} "):
            return self.message + ("\n  some ranks may have done it" if self.indefinite else "")
        place = [
            f"rank {self.rank}" if self.rank is not None else "",
            f"group {self.group!r}" if self.group else "",
            self.operation,
        ]
        before = ", ".join(part for part in place if part and not _names(self.message, part))
        parts = [f"{self.code}: {before}: {self.message}" if before else f"{self.code}: {self.message}"]
        sides = f"expected {self.expected or 'nothing'}, got {self.got or 'nothing'}"
        shown = self.expected and any(detail.detail == self.expected for detail in self.ranks)
        if (self.expected or self.got) and sides not in self.message and not shown:
            parts.append(sides)
        if self.indefinite:
            parts.append("some ranks may have done it")
        return "\n  ".join(["; ".join(parts) + self._outcomes_in_short(), *_distinct(self.ranks)])

    @property
    def sides(self) -> list[Side]:
        """The different calls that the ranks of the group made, the first rank's first; none for other errors."""
        made: dict[tuple[str, str], list[int]] = {}
        for it in self.ranks:
            if it.state in ("arrived", "disagrees"):
                made.setdefault((it.detail, it.site), []).append(it.rank)
        return [
            Side(ranks=tuple(sorted(ranks)), contract=contract, site=site)
            for (contract, site), ranks in made.items()
        ]

    def _outcomes_in_short(self) -> str:
        return ""


def _distinct(ranks: Sequence[RankDetail]) -> list[str]:
    """Gives a line for each distinct part, in the order of the first rank that has it."""
    alike: dict[tuple[str, str], list[int]] = {}
    for each in ranks:
        alike.setdefault((each.state, each.detail), []).append(each.rank)
    return [
        f"{intervals(those)} {state}" + (f": {detail}" if detail else "")
        for (state, detail), those in alike.items()
    ]


# A gang may have a thousand ranks.
_MOST_RUNS = 8


def intervals(ranks: Sequence[int]) -> str:
    """Names ranks, those that follow each other as intervals: "ranks 0-2, 5"."""
    runs: list[list[int]] = []
    for rank in sorted(ranks):
        if runs and rank == runs[-1][1] + 1:
            runs[-1][1] = rank
        else:
            runs.append([rank, rank])
    named = ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in runs[:_MOST_RUNS])
    if len(runs) > _MOST_RUNS:
        named += f" and {sum(last - first + 1 for first, last in runs[_MOST_RUNS:])} more"
    return f"ranks {named}" if len(ranks) != 1 else f"rank {named}"


def _names(message: str, part: str) -> bool:
    # As whole words: "rank 12" does not name rank 1.
    return re.search(rf"(?<!\w){re.escape(part)}(?!\w)", message) is not None


class RefError(RankBridgeError):
    """A ref does not lead to a value."""


class SessionError(RankBridgeError):
    """A session does not allow the call."""


class GroupError(RankBridgeError):
    """The name of a group, or of something in it, does not allow the call."""


class GenerationError(RankBridgeError):
    """There is no generation to run in. Form the next."""


class TransportError(RankBridgeError):
    """The call was not understood, not allowed or not delivered, or its answer was not."""


# --- classes of codes: written by scripts/methods.py from the tree above and error.proto

__all__ = [
    "AbortedError",
    "Activity",
    "BackendFailedError",
    "CallCancelledError",
    "DeadlineExceededError",
    "ErrorCode",
    "FormingFailedError",
    "FunctionFailedError",
    "GangError",
    "GenerationError",
    "GroupError",
    "GroupExistsError",
    "InternalError",
    "InvalidArgumentError",
    "MismatchError",
    "NameExistsError",
    "NotAllowedError",
    "NotFormedError",
    "Outcome",
    "PeerLostError",
    "PeerMissingError",
    "ProtocolError",
    "Raised",
    "RankBridgeError",
    "RankDetail",
    "RankOutOfRangeError",
    "RefError",
    "ReleasedRefError",
    "ResourceExhaustedError",
    "SessionError",
    "Side",
    "StaleGenerationError",
    "TransportError",
    "UnavailableError",
    "UnknownFunctionError",
    "UnknownGraphError",
    "UnknownGroupError",
    "UnknownOperationError",
    "UnknownQueueError",
    "UnknownRefError",
    "UnknownSessionError",
    "UnknownSharedMemoryError",
    "UnsupportedDtypeError",
    "UnsupportedOperationError",
    "WrongSessionError",
]


class InvalidArgumentError(RankBridgeError, ValueError):
    """An argument is missing, malformed or contradicts another. Correct the call."""

    code = ErrorCode.INVALID_ARGUMENT


class RankOutOfRangeError(InvalidArgumentError):
    """A rank or rank_in_group is not below the size it counts in."""

    code = ErrorCode.RANK_OUT_OF_RANGE


class UnknownRefError(RefError):
    """No such ref on this rank. A ref exists only on the rank that made it."""

    code = ErrorCode.UNKNOWN_REF


class ReleasedRefError(RefError):
    """The ref has been released on this rank. It cannot be restored."""

    code = ErrorCode.RELEASED_REF


class UnknownOperationError(RankBridgeError):
    """No operation with this id is known on this rank: it never came, or was forgotten after thousands of others."""

    code = ErrorCode.UNKNOWN_OPERATION


class WrongSessionError(SessionError):
    """The ref or group belongs to another session. Name its own session in the call."""

    code = ErrorCode.WRONG_SESSION


class UnknownSessionError(SessionError):
    """No such session, or it was closed. Open one."""

    code = ErrorCode.UNKNOWN_SESSION


class UnknownGroupError(GroupError):
    """No such group on this rank."""

    code = ErrorCode.UNKNOWN_GROUP


class GroupExistsError(GroupError):
    """A group of that name exists. Destroy it first, or choose another name."""

    code = ErrorCode.GROUP_EXISTS


class UnknownQueueError(GroupError):
    """No such queue in the group on this rank, or it was shut down."""

    code = ErrorCode.UNKNOWN_QUEUE


class UnknownGraphError(RankBridgeError):
    """No such graph in the session on this rank, or nothing is being recorded."""

    code = ErrorCode.UNKNOWN_GRAPH


class UnknownFunctionError(RankBridgeError):
    """The rank offers no such function. `ListFunctions` says which it does."""

    code = ErrorCode.UNKNOWN_FUNCTION


class UnknownSharedMemoryError(RankBridgeError):
    """No such shared memory in the session on this rank, or it was given up. Open some, or use a stream."""

    code = ErrorCode.UNKNOWN_SHARED_MEMORY


class NameExistsError(RankBridgeError):
    """A queue or a graph of that name exists. Choose another name."""

    code = ErrorCode.NAME_EXISTS


class ResourceExhaustedError(RankBridgeError):
    """Over a limit of the rank: tensor bytes, refs, pending calls. Release something or go slower."""

    code = ErrorCode.RESOURCE_EXHAUSTED


class MismatchError(RankBridgeError):
    """The members of the group asked for different things. `ranks` shows every side. Nothing ran."""

    code = ErrorCode.MISMATCH


class FunctionFailedError(RankBridgeError):
    """A function raised, here or on a rank for which this one waited; then the generation is over, form the next."""

    code = ErrorCode.FUNCTION_FAILED


class PeerMissingError(RankBridgeError):
    """Some members did not call before the timeout. `ranks` names them. Nothing ran; the group is healthy."""

    code = ErrorCode.PEER_MISSING


class PeerLostError(GenerationError):
    """A rank died or its link closed. The generation is over; form the next."""

    code = ErrorCode.PEER_LOST


class NotFormedError(GenerationError):
    """No generation was formed on the rank yet. Form one."""

    code = ErrorCode.NOT_FORMED


class StaleGenerationError(GenerationError):
    """The generation is over, or is not the one that the call names. Form the next, or name the current one."""

    code = ErrorCode.STALE_GENERATION


class BackendFailedError(GenerationError):
    """The backend failed while data moved. No ref changed; the generation is over."""

    code = ErrorCode.BACKEND_FAILED


class AbortedError(GenerationError):
    """The generation or the call was ended on purpose."""

    code = ErrorCode.ABORTED


class FormingFailedError(GenerationError):
    """The forming of a generation failed. The gang has no generation; form again."""

    code = ErrorCode.FORMING_FAILED


class InternalError(RankBridgeError):
    """A fault of rankbridge itself. Please report it."""

    code = ErrorCode.INTERNAL


# --- end of classes


class UnsupportedDtypeError(InvalidArgumentError):
    """The dtype cannot be used here: unknown, unknown to numpy, or not for this operation of the backend."""

    code = ErrorCode.UNSUPPORTED_DTYPE


class UnsupportedOperationError(RankBridgeError):
    """The backend cannot do this operation at all. ``Rank.status`` tells what it can (`abilities`)."""

    code = ErrorCode.UNSUPPORTED_OPERATION


class DeadlineExceededError(RankBridgeError, TimeoutError):
    """The time passed while the operation ran, or while its answer was awaited."""

    code = ErrorCode.DEADLINE_EXCEEDED


class CallCancelledError(RankBridgeError):
    """The caller cancelled, closed the gang or the session, or lost the session's lease while the call ran.

    Definite where a rank says so: it was withdrawn before any rank did anything. Where the caller stopped waiting
    (``Pending.cancel``) it is indefinite: the rank withdraws the call, unless it was admitted already.
    """

    code = ErrorCode.CANCELLED


class UnavailableError(TransportError):
    """The rank could not be reached (definite), or the connection was lost after sending (indefinite)."""

    code = ErrorCode.UNAVAILABLE


class NotAllowedError(TransportError):
    """The server does not let this client do this."""

    code = ErrorCode.NOT_ALLOWED


class ProtocolError(TransportError):
    """The two sides do not speak the same protocol: an unknown method, a malformed answer."""

    code = ErrorCode.PROTOCOL


class GangError(RankBridgeError):
    """A call to several ranks failed on some of them.

    Every exception of this class is also of the root cause's class and has its attributes, except that
    `indefinite` is True as soon as any rank has, or may have, done the operation.

    Attributes:
        outcomes: Every rank's outcome, in the order of the call: values of those that succeeded included.
        cause: The rank's error that the others follow from.
    """

    outcomes: tuple[Outcome[object], ...] = ()
    cause: RankBridgeError

    def _outcomes_in_short(self) -> str:
        by_code: dict[ErrorCode, list[int]] = {}
        for outcome in self.outcomes:
            if outcome.error is not None:
                by_code.setdefault(outcome.error.code, []).append(outcome.rank)
        failed = sum(map(len, by_code.values()))
        codes = ", ".join(f"{code} at {intervals(ranks)}" for code, ranks in by_code.items())
        return f" [{failed} of {len(self.outcomes)} ranks failed: {codes}]"


_GANG_CLASSES: dict[type[RankBridgeError], type[GangError]] = {}


def _gang_class(cause: type[RankBridgeError]) -> type[GangError]:
    if cause not in _GANG_CLASSES:
        names = {"__doc__": cause.__doc__, "__module__": cause.__module__}
        _GANG_CLASSES[cause] = type(cause.__name__, (GangError, cause), names)
    return _GANG_CLASSES[cause]


def _is_relayed(error: RankBridgeError) -> bool:
    """Says whether a rank reports what another has refused."""
    return bool(error.ranks) and all(each.rank != error.rank for each in error.ranks)


def gang_error(outcomes: Sequence[Outcome[object]]) -> GangError:
    """Makes the exception for a call to several ranks.

    Args:
        outcomes: Every rank's outcome, at least one of them an error.

    Returns:
        An exception of the root cause's class.
    """
    errors = [outcome.error for outcome in outcomes if outcome.error is not None]
    cause = min(errors, key=lambda error: (_CAUSE_ORDER[error.code], _is_relayed(error)))
    combined = _gang_class(type(cause))(
        cause.message,
        indefinite=len(errors) < len(outcomes) or any(error.indefinite for error in errors),
        phase=cause.phase,
        rank=cause.rank,
        group=cause.group,
        operation=cause.operation,
        operation_id=cause.operation_id,
        generation=cause.generation,
        expected=cause.expected,
        got=cause.got,
        ranks=cause.ranks,
        raised=cause.raised,
    )
    combined.outcomes = tuple(outcomes)
    combined.cause = cause
    return combined
