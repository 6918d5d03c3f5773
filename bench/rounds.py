"""Takes turns among subjects: every other round backward, so that nobody always follows the same one."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from bench.contender import START_S, Absent, Contender
from bench.operation import ALONE_BYTES, OPERATIONS, Operation
from bench.samples import Measure, Samples
from bench.usage import available_bytes

Say = Callable[[str], None]

QUICK_START_S = 90.0
"""Of a quick run, which takes less than three minutes: a peer that cannot start on this machine may take for ever."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How much is measured.

    Attributes:
        rounds: At most.
        seconds: After which no further round begins.
        scale: Of the number of calls in a block; 1 is what operations say.
        quick: Nothing that is measured alone, and nobody that takes long to start.
    """

    rounds: int
    seconds: float
    scale: float = 1.0
    quick: bool = False

    def calls(self, operation: Operation) -> int:
        """In one block."""
        return max(1, round(operation.calls * self.scale))

    @property
    def start_s(self) -> float:
        """Longest time for all subjects to start."""
        return QUICK_START_S if self.quick else START_S


@dataclass(frozen=True, slots=True)
class Turn:
    """One block in every round."""

    contender: Contender
    way: str
    operation: Operation


def turns(contenders: Sequence[Contender], *, alone: bool) -> list[Turn]:
    """Everything that the contenders can do, what is compared side by side; or what each does alone."""
    return [
        Turn(contender, way, operation)
        for operation in OPERATIONS
        if operation.alone == alone
        for contender in contenders
        for way, names in contender.ways.items()
        if operation.name in names
    ]


def in_order(turns: Sequence[Turn], round_number: int) -> Iterator[Turn]:
    """Those of one round: forward, backward in every other."""
    turns = [turn for turn in turns if round_number < turn.operation.rounds]
    return iter(turns if round_number % 2 == 0 else reversed(turns))


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What is measured at one size of gangs, and where that is kept.

    Attributes:
        size: Ranks of each subject.
        plan: How much.
        samples: To which it adds.
        loads: To which it adds the machine's load, once for each round.
        log: Directory for what subjects write to standard error.
        say: Is told how far it is.
    """

    size: int
    plan: Plan
    samples: Samples
    loads: list[float]
    log: Path
    say: Say


def measure(subjects: Sequence[str], run: Run) -> None:
    """Measures subjects, all of them there at once; then, unless it is to be quick, each alone with much memory."""
    _rounds(subjects, run, alone=False)
    if run.plan.quick:
        return
    for name in subjects:
        free = available_bytes()
        if free < ALONE_BYTES:
            why = f"{free >> 20} MiB of memory were free, and {ALONE_BYTES >> 20} are needed"
            run.samples.lack(why, name, "large tensors")
        else:
            _rounds([name], run, alone=True)


def _rounds(subjects: Sequence[str], run: Run, *, alone: bool) -> None:
    size, samples = run.size, run.samples
    who = f"{size} ranks" + (f", {subjects[0]} alone" if alone else "")
    with ExitStack() as stack:
        contenders = [stack.enter_context(Contender(name, str(size), log=run.log)) for name in subjects]
        end = time.monotonic() + run.plan.start_s
        for contender in contenders:
            contender.begun(max(1.0, end - time.monotonic()))
            contender.pause()
            samples.versions[contender.name] = contender.versions
            for place, why in contender.missing.items():
                samples.lack(why, contender.name, *(place.split("/") if place else ()))
        todo = turns(contenders, alone=alone)
        # What is made when it is first used, is not measured.
        todo = [turn for turn in todo if _taken(turn, 1, size, None, samples)]
        began = time.monotonic()
        for number in range(run.plan.rounds):
            order = list(in_order(todo, number))
            if not order:
                break
            if number and time.monotonic() - began > run.plan.seconds:
                run.say(f"{who}: {number} rounds, for {run.plan.seconds:.0f} s are over")
                break
            run.loads.append(os.getloadavg()[0])
            run.say(f"{who}: round {number + 1} of at most {run.plan.rounds}, load {run.loads[-1]:.1f}")
            for turn in order:
                if not _taken(turn, run.plan.calls(turn.operation), size, samples, samples):
                    todo = [each for each in todo if each is not turn]


def _taken(turn: Turn, calls: int, size: int, samples: Samples | None, told: Samples) -> bool:
    name, way, operation = turn.contender.name, turn.way, turn.operation.name
    if operation not in turn.contender.ways.get(way, ()):
        told.lack("it has ended", name, way, operation)
        return False
    try:
        turn.contender.resume()
        if turn.contender.pauses:
            turn.contender.block(way, operation, 1)
        block = turn.contender.block(way, operation, calls)
    except Absent as failed:
        told.lack(f"failed: {failed}", name, way, operation)
        return False
    finally:
        turn.contender.pause()
    if samples is not None:
        samples.add(Measure(name, way, operation, size), block.seconds, block.cpu)
        key = (f"{name}, alone" if turn.operation.alone else name), size
        samples.peak_bytes[key] = block.peak_bytes
    return True
