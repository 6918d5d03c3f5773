"""Several collectives of one group as one operation: what a caller asks for, and what of it can be checked alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import invalid
from ..operations.operation import Operation
from ..refs.refs import MAX_ID_BYTES

MAX_STEPS = 1_000
"""As they are written, loops and what is in them included."""
MAX_DEPTH = 32
"""Of loops within loops."""
MAX_OPERATIONS = 1_000_000
"""As they are run."""

SIGN = "%"
"""Where a ref id is asked for, this and a name take what an earlier step has given under that name."""

_STEP_BYTES = 512


@dataclass(frozen=True, slots=True)
class ProgramOperation:
    """A collective. `name`: of what it gives, for the steps that follow; empty: it is dropped.

    `bound`: ids of the refs that get its results, in order; None: they get refs of their own, if any.
    """

    operation: Operation[Any]
    args: Any
    name: str = ""
    bound: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class ProgramLoop:
    """Steps that are repeated `count` times."""

    count: int
    steps: tuple[ProgramStep, ...]


ProgramStep = ProgramOperation | ProgramLoop


@dataclass(frozen=True, slots=True)
class RunProgram:
    """Do the steps in order, admitted at once. `results`: names of what is kept."""

    steps: tuple[ProgramStep, ...]
    results: tuple[str, ...] = ()

    @property
    def weight(self) -> int:
        """About how many bytes it takes."""
        return _STEP_BYTES * sum(1 for _ in numbered(self.steps))


@dataclass(frozen=True, slots=True)
class Coalesce:
    """Do them in this order, admitted at once; none sees what another gives."""

    operations: tuple[tuple[Operation[Any], Any], ...]


@dataclass(frozen=True, slots=True)
class Replay:
    """Run a graph again, as one operation: one admission, and results in the refs that it made when it was recorded."""

    graph: str


def check(program: RunProgram) -> None:
    """Raise INVALID_ARGUMENT for what can be seen without refs."""
    if not program.steps:
        raise invalid("the program is empty", expected="one step or more", got="none")
    written = list(numbered(program.steps))
    if len(written) > MAX_STEPS:
        raise invalid("the program is too long", expected=f"at most {MAX_STEPS} steps", got=str(len(written)))
    for number, step in written:
        where = f"step {number}"
        if isinstance(step, ProgramLoop):
            depth = number.count(".") + 1
            if step.count < 1:
                raise invalid(f"{where}: the loop has no count", expected="1 or more", got=str(step.count))
            if not step.steps:
                raise invalid(f"{where}: the loop is empty", expected="one step or more", got="none")
            if depth > MAX_DEPTH:
                what = f"{where}: too many loops within loops"
                raise invalid(what, expected=f"at most {MAX_DEPTH}", got=f"{depth} or more")
            continue
        if step.name:
            _check_name(where, step.name)
        if not step.operation.recorded:
            what = f"{where}: this cannot be in a program"
            raise invalid(what, expected="a collective", got=step.operation.name)
    run = _run(program.steps)
    if run > MAX_OPERATIONS:
        what = "the program runs too many operations"
        raise invalid(what, expected=f"at most {MAX_OPERATIONS}", got=str(run))
    for place, name in enumerate(program.results):
        _check_name(f"result {place}", name)
        if name in program.results[:place]:
            raise invalid(f"result {place} is there twice", expected="each name once", got=repr(name))


def number_of(place: int, within: str) -> str:
    """The number of a step. `within`: that of its loop; empty: none."""
    return f"{within}.{place}" if within else str(place)


def numbered(steps: Sequence[ProgramStep], within: str = "") -> Iterator[tuple[str, ProgramStep]]:
    """The steps as they are written, loops before what is in them, by number: "2.1" is the second of the loop "2"."""
    for place, step in enumerate(steps):
        number = number_of(place, within)
        yield number, step
        if isinstance(step, ProgramLoop):
            yield from numbered(step.steps, number)


def _check_name(where: str, name: str) -> None:
    if SIGN in name or not 0 < len(name.encode()) <= MAX_ID_BYTES:
        expected = f"1 to {MAX_ID_BYTES} bytes without {SIGN!r}"
        raise invalid(f"{where}: this cannot be a name", expected=expected, got=repr(name))


def _run(steps: Sequence[ProgramStep]) -> int:
    return sum(it.count * _run(it.steps) if isinstance(it, ProgramLoop) else 1 for it in steps)
