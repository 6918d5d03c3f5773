"""An operation in a rank's record."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from ..caller import Caller
from ..errors import BridgeError, ErrorCode, Phase, Place

MAX_MESSAGE = 500
"""Characters of an error's text that are kept."""


class Entry(Protocol):
    """What the record writes: a `Task`, or a call of the user's own code.

    `slot`: where the record has it while it has not ended; 0: nowhere.
    """

    slot: int

    @property
    def place(self) -> Place:
        """Where it is: rank, group, kind, id and generation."""
        ...

    @property
    def caller(self) -> Caller:
        """Who calls."""
        ...

    @property
    def session_id(self) -> str:
        """As of `Recorded`."""
        ...

    @property
    def contract(self) -> str:
        """As of `Recorded`."""
        ...

    @property
    def site(self) -> str:
        """As of `Recorded`."""
        ...

    @property
    def function(self) -> str:
        """As of `Recorded`."""
        ...

    @property
    def began(self) -> float:
        """When it was called."""
        ...

    @property
    def announced(self) -> float:
        """As of `Recorded`."""
        ...

    @property
    def entered(self) -> float:
        """As of `Recorded`."""
        ...

    @property
    def sequence(self) -> int:
        """As of `Task`."""
        ...

    @property
    def number(self) -> int:
        """As of `Recorded`."""
        ...

    @property
    def phase(self) -> Phase:
        """How far it has come."""
        ...

    @property
    def error(self) -> BridgeError | None:
        """How it has failed. None: it has not, or not yet."""
        ...


class Recorded(NamedTuple):
    """An operation: how it was called, how far it has come, and how it ended.

    `called`, `announced`, `entered`, `done`: seconds of the monotonic clock; 0.0: it was not, or not yet. `sequence`:
    as of `Task`. `code`: None: it ended well, or has not. `number`: in its group, of a call of the user's own code;
    0: it has none.
    """

    place: Place
    session_id: str
    contract: str
    site: str
    function: str
    called: float
    announced: float
    entered: float
    done: float
    sequence: int
    phase: Phase
    code: ErrorCode | None
    message: str
    indefinite: bool
    caller: Caller = Caller.CONTROLLER
    number: int = 0

    @classmethod
    def of(cls, entry: Entry, done: float) -> Recorded:
        """What an entry is now."""
        failure = entry.error.failure if entry.error is not None else None
        return cls(
            entry.place,
            entry.session_id,
            entry.contract,
            entry.site,
            entry.function,
            entry.began,
            entry.announced,
            entry.entered,
            done,
            entry.sequence,
            entry.phase,
            failure.code if failure is not None else None,
            failure.message[:MAX_MESSAGE] if failure is not None else "",
            failure is not None and failure.indefinite,
            entry.caller,
            entry.number,
        )
