"""Several collectives of one group as one operation: the request, and the checks that need no refs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import invalid
from ..operations.operation import Operation
from ..refs.refs import MAX_ID_BYTES

MAX_STEPS = 1_000
"""Steps as they are written, with loops and the steps in them."""
MAX_DEPTH = 32
"""Of loops within loops."""
MAX_OPERATIONS = 1_000_000
"""Operations as they are run."""

SIGN = "%"
"""In place of a ref id, this sign and a name stand for the result of an earlier step with that name."""

_STEP_BYTES = 512


@dataclass(frozen=True, slots=True)
class ProgramOperation:
    """A collective. `name`: of its result, for later steps; empty: the result is dropped.

    `bound`: ids of the refs that get its results, in order; None: the results get new refs, if any.
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
    """Runs the steps in order, with one admission. `results`: names of the results to keep."""

    steps: tuple[ProgramStep, ...]
    results: tuple[str, ...] = ()

    @property
    def weight(self) -> int:
        """The approximate size in bytes."""
        return _STEP_BYTES * sum(1 for _ in numbered(self.steps))


@dataclass(frozen=True, slots=True)
class Coalesce:
    """Runs operations in order, with one admission; none sees the result of another."""

    operations: tuple[tuple[Operation[Any], Any], ...]


@dataclass(frozen=True, slots=True)
class Replay:
    """Runs a graph again, with one admission. The results go to the refs that were made when it was recorded."""

    graph: str


def check(program: RunProgram) -> None:
    """Raises INVALID_ARGUMENT for faults that are visible without refs."""
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
