"""What a program consists of: steps, loops of steps, and names of what steps give. Pure: asks no rank."""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, TypeAlias

from rankbridge._plan.ref import Ref
from rankbridge.errors import InvalidArgumentError

RUN_PROGRAM = "run_program"
"""Name of the operation that runs a program."""

MAX_DEPTH = 32
"""How deep loops can be in each other, so that a request can be read everywhere."""


@dataclass(frozen=True, slots=True, eq=False)
class Named:
    """What a step of a program gives: the steps after it take it in place of refs, and a run can keep it.

    Attributes:
        name: Its name in the program.
        operation: Name of the collective that gives it.
        is_list: Whether it is a list of tensors, which no step takes.
    """

    name: str
    operation: str
    is_list: bool = False


Given: TypeAlias = "Ref | tuple[Ref, ...] | Named | None"
"""What a step takes: one rank's ref, one of each member, what another step gives, or nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A collective.

    Attributes:
        operation: Its name.
        given: What it takes.
        options: As its method takes them.
        gives: What it gives, by name; None: nothing.
    """

    operation: str
    given: Given
    options: Mapping[str, Any]
    gives: Named | None


@dataclass(frozen=True, slots=True)
class Loop:
    """Steps that are repeated."""

    count: int
    steps: Sequence[Step | Loop]


class Steps:
    """Steps in the order in which they were described, and the names that they give.

    All refs are of the same places: of one rank, or one of each of the same ranks; each place is of one session.
    """

    def __init__(self) -> None:
        """Begins without any."""
        self._steps: list[Step | Loop] = []
        self._open: list[list[Step | Loop]] = [self._steps]
        self._names: dict[str, Named] = {}
        self._first: Ref | tuple[Ref, ...] | None = None

    def __repr__(self) -> str:
        """Gives the operations."""
        return f"{type(self).__name__}({_told(self._steps)})"

    def loop(self, count: int) -> AbstractContextManager[None]:
        """Repeats what is described inside a ``with`` statement. Loops can be in loops.

        What is named inside stands, after the loop, for what it was given in the last turn. An exception inside takes
        the whole loop out of the program.

        Args:
            count: How many times, 1 to 2^32 - 1.

        Raises:
            InvalidArgumentError: The count is none; loops are more than 32 deep; at the end: nothing is inside.
        """
        try:
            times = operator.index(count)
        except TypeError:
            times = 0
        if not 0 < times < 2**32:
            raise _refused("a loop is done once or more", expected="1 to 4,294,967,295", got=repr(count))
        if len(self._open) > MAX_DEPTH:
            raise _refused("loops are too deep", expected=f"{MAX_DEPTH} at most", got=f"{MAX_DEPTH + 1}")
        return self._looping(times)

    @contextlib.contextmanager
    def _looping(self, count: int) -> Iterator[None]:
        steps: list[Step | Loop] = []
        names, first = dict(self._names), self._first
        self._open.append(steps)
        try:
            yield
            if not steps:
                raise _refused("a loop repeats nothing", expected="one step or more", got="none")
        except BaseException:
            self._names, self._first = names, first
            raise
        finally:
            self._open.pop()
        self._open[-1].append(Loop(count, steps))

    def _each(self) -> Iterator[Step]:
        """Gives every step once, those in loops too, in order."""
        waiting: list[Step | Loop] = self._steps[::-1]
        while waiting:
            it = waiting.pop()
            if isinstance(it, Loop):
                waiting.extend(reversed(it.steps))
            else:
                yield it

    def _add(self, step: Step) -> None:
        """Puts a step after the others. It was checked."""
        if self._first is None and isinstance(step.given, Ref | tuple):
            self._first = step.given
        if step.gives is not None:
            self._names[step.gives.name] = step.gives
        self._open[-1].append(step)

    def _own(self, named: object, operation: str) -> Named:
        """Gives a name of this program.

        Raises:
            InvalidArgumentError: It is none.
        """
        if not isinstance(named, Named) or self._names.get(named.name) is not named:
            raise _refused(
                "this is nothing that the program gives",
                operation,
                expected=f"one of {', '.join(self._names) or 'nothing yet'}",
                got=repr(named),
            )
        return named

    def _takes(self, given: object, operation: str) -> Ref | tuple[Ref, ...] | Named:
        """Gives what a step takes, once it is known to be of this program's places.

        Raises:
            InvalidArgumentError: It is not.
        """
        if isinstance(given, Named):
            if self._own(given, operation).is_list:
                raise _refused(
                    "a list of tensors is only kept", operation, expected="a tensor", got=repr(given)
                )
            return given
        refs = given if isinstance(given, Ref) else _listed(given, operation)
        first = refs if self._first is None else self._first
        if isinstance(refs, Ref) is not isinstance(first, Ref) or _ranks(refs) != _ranks(first):
            raise _refused(
                "all refs of a program are of the same members",
                operation,
                expected=_of(first),
                got=_of(refs),
            )
        if (sessions := _sessions(refs)) != (others := _sessions(first)):
            raise _refused(
                "refs of several sessions cannot be used together",
                operation,
                got=str(sorted({*sessions, *others})),
            )
        return refs

    def _checked(self) -> None:
        """Checks that it can be run.

        Raises:
            InvalidArgumentError: It is empty, or a loop is not at its end.
        """
        if len(self._open) > 1:
            raise _refused(
                "the program is in a loop", expected="the end of `with program.loop`", got=repr(self)
            )
        if not self._steps:
            raise _refused("the program is empty", expected="one step or more", got="none")

    def _kept(self, keep: object) -> list[Named]:
        """Gives the names that a run keeps.

        Raises:
            InvalidArgumentError: Some are not of this program, or more than once.
        """
        if isinstance(keep, str | Named) or not isinstance(keep, Sequence):
            raise _refused("`keep` is a list", expected="what steps of the program give", got=repr(keep))
        kept = [self._own(named, RUN_PROGRAM) for named in keep]
        if len({named.name for named in kept}) < len(kept):
            raise _refused("kept twice", expected="each once", got=str([named.name for named in kept]))
        return kept

    def _part(self, steps: list[Step | Loop], first: Ref | None) -> Steps:
        """Gives a member's part, with the same names."""
        part = Steps()
        part._steps, part._names, part._first = steps, self._names, first
        part._open = [steps]
        return part


def _refused(
    message: str, operation: str = RUN_PROGRAM, *, expected: str = "", got: str = ""
) -> InvalidArgumentError:
    return InvalidArgumentError(message, operation=operation, expected=expected, got=got)


def _listed(given: object, operation: str) -> tuple[Ref, ...]:
    if isinstance(given, Sequence) and given and all(isinstance(it, Ref) for it in given):
        return tuple(given)
    raise _refused(
        "a step takes refs",
        operation,
        expected="one ref of each member, one rank's ref, or what an earlier step gives",
        got=repr(given),
    )


def _ranks(refs: Ref | tuple[Ref, ...]) -> tuple[int, ...]:
    return tuple(ref.rank for ref in ([refs] if isinstance(refs, Ref) else refs))


def _sessions(refs: Ref | tuple[Ref, ...]) -> tuple[str, ...]:
    return tuple(ref.session_id for ref in ([refs] if isinstance(refs, Ref) else refs))


def _of(refs: Ref | tuple[Ref, ...]) -> str:
    return f"a ref of rank {refs.rank}" if isinstance(refs, Ref) else f"refs of ranks {list(_ranks(refs))}"


def _told(steps: Sequence[Step | Loop]) -> str:
    return ", ".join(
        f"{step.count} * [{_told(step.steps)}]" if isinstance(step, Loop) else step.operation
        for step in steps
    )
