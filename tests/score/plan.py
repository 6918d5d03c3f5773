"""The cases of a seed."""

from __future__ import annotations

import random
from collections.abc import Sequence

from tests.score.correct import CORRECT
from tests.score.faulty import ANYWHERE, ON_PROCESSES, Make
from tests.score.labelled import Labelled
from tests.score.order import ORDERS, TOGETHER, first_comers, is_ordered

FAULTY_OF_A_CLASS = 18
STRUCK_OF_A_CLASS = 12
CORRECT_OF_A_CLASS = 12


def plan(seed: int, backend: str) -> list[Labelled]:
    """Gives all of them, class after class. Ranks on the backend fake share one process: none is killed."""
    cases = [it for make in ANYWHERE for it in _of(make, seed, FAULTY_OF_A_CLASS)]
    if backend != "fake":
        cases += [it for make in ON_PROCESSES for it in _of(make, seed, STRUCK_OF_A_CLASS)]
    return cases + [it for make in CORRECT for it in _of(make, seed, CORRECT_OF_A_CLASS)]


def titles() -> dict[str, str]:
    """Gives what each class is about."""
    makes: Sequence[Make] = (*ANYWHERE, *ON_PROCESSES, *CORRECT)
    return {_name(it): (it.__doc__ or "").rstrip(".") for it in makes}


def _of(make: Make, seed: int, count: int) -> list[Labelled]:
    kind = _name(make)
    made = []
    for number in range(count):
        fields = make(random.Random(f"{seed} {kind} {number}"))
        order = TOGETHER if is_ordered(fields["step"]) else ORDERS[number % len(ORDERS)]
        first = first_comers(order, fields, random.Random(f"{seed} {kind} {number} first"))
        named = {
            "kind": kind,
            "name": f"{kind} {number}",
            "order": order if first else TOGETHER,
            "first": first,
        }
        made.append(Labelled(**{"truth": None, **fields, **named}))
    return made


def _name(make: Make) -> str:
    return str(make.__name__)
