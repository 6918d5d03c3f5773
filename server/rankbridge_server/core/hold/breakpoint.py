"""Which calls are held."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ..caller import Caller
from ..errors import ErrorCode
from ..refs.summary import NOTHING, Bounds


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenCall:
    """A call that a rank is about to enter, or has just left.

    `number`: of the call in its group, from 1, equal on all members; 0: it has none. `contract`: what the members must
    agree on. `site`: the line of code that calls, "train.py:88"; empty: not known. `function`: name of the user's
    function that is called; empty: none. `operation_id`: empty: it has none. `inputs`: gives the tensors that it reads.
    `thread`: the one that waits, if it runs the user's code, by Python's number; 0: it runs none.
    """

    caller: Caller
    operation: str
    group: str
    number: int = 0
    contract: str = ""
    site: str = ""
    function: str = ""
    operation_id: str = ""
    inputs: Callable[[], Sequence[object]] = field(default=tuple, repr=False)
    thread: int = 0


@dataclass(frozen=True, slots=True)
class Ended:
    """How a call has ended. `took`: seconds until it was over for its caller. `code`: None: it went well."""

    took: float
    code: ErrorCode | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Breakpoint:
    """Calls of which all that is said here is true. What is empty, 0 or None is not said.

    `site`: the line that calls: the end of a path, with the line: "train.py:88". `bounds`: one of these is in an input.
    `mismatch`, `slower`: the rank is held after the call, which has ended so; `slower`: it took more seconds. If both
    are said, in one of these ways. Otherwise it is held before the call.
    """

    group: str = ""
    operation: str = ""
    number: int = 0
    site: str = ""
    function: str = ""
    caller: Caller | None = None
    bounds: Bounds = NOTHING
    mismatch: bool = False
    slower: float = 0.0

    @property
    def is_after(self) -> bool:
        """Whether it holds a rank after a call."""
        return self.mismatch or self.slower > 0

    def names(self, call: SeenCall) -> bool:
        """Whether a call is one of those, whatever its inputs are."""
        return (
            self.caller in (None, call.caller)
            and self.group in ("", call.group)
            and self.operation in ("", call.operation)
            and self.number in (0, call.number)
            and self.function in ("", call.function)
            and (not self.site or any(map(self._is_at, call.site.split(" < "))))
        )

    def _is_at(self, line: str) -> bool:
        return line == self.site or line.endswith(f"/{self.site}")

    def why(self, ended: Ended) -> str:
        """Says what has happened in a call that holds its rank after it. Empty: nothing has."""
        if self.mismatch and ended.code is ErrorCode.MISMATCH:
            return "its members did not agree"
        if self.slower and ended.took > self.slower:
            return f"it took {ended.took:.3f} s"
        return ""
