"""The contract of a program as text, and where two of them differ."""

from __future__ import annotations

import pytest

from rankbridge_server.core.admission.admission import Arrival
from rankbridge_server.core.programs.terms import MAX_HASHES, MAX_TEXT, difference, terms_of

SHORT = ["0 barrier", "1 loop 3", "1.0 'a' = all_reduce dtype=float32 shape=[1] op=sum"]
LONG = [f"{number} all_reduce dtype=float32 shape=[{number}] op=sum" for number in range(1000)]


def arrival(terms: str, operation_id: str = "an id") -> str:
    """As members see each other's."""
    return str(Arrival(7, operation_id, f"run_program {terms}", 1.0))


def test_a_short_one_is_there_in_full() -> None:
    expected = "0 barrier; 1 loop 3; 1.0 'a' = all_reduce dtype=float32 shape=[1] op=sum; keep ['a']"
    assert terms_of(SHORT, ("a",), 4) == expected


def test_a_long_one_is_a_digest_and_a_hash_of_each_step() -> None:
    terms = terms_of(LONG, (), 4)
    assert MAX_TEXT < len(terms) < 15_000
    assert terms.startswith("1000 steps sha256=")
    assert terms.count("#") == 1001
    crowded = terms_of(LONG, (), MAX_HASHES // 1000)
    assert crowded == terms.partition(": ")[0]


@pytest.mark.parametrize("steps", [SHORT, LONG], ids=["short", "long"])
@pytest.mark.parametrize("members", [4, MAX_HASHES // 1000])
def test_whatever_differs_makes_other_terms(steps: list[str], members: int) -> None:
    others = [
        (steps, ("b",)),
        (steps[:-1], ("a",)),
        ([*steps, "x"], ("a",)),
        ([*steps[:1], steps[1] + "0", *steps[2:]], ("a",)),
        ([steps[0] + "; " + steps[1], *steps[2:]], ("a", "b")),
    ]
    different = {terms_of(steps, ("a",), members), *(terms_of(*it, members) for it in others)}
    assert len(different) == 1 + len(others)
    assert terms_of(list(steps), ("a",), members) in different


@pytest.mark.parametrize("steps", [SHORT, LONG], ids=["short", "long"])
def test_the_first_step_that_differs_is_named(steps: list[str]) -> None:
    mine = arrival(terms_of(steps, ("a",), 4))
    changed = arrival(terms_of([*steps[:1], steps[1] + "0", *steps[2:]], ("a",), 4))
    assert difference(mine, changed) == "step 1"
    more = arrival(terms_of([*steps, "2000 barrier"], ("a",), 4))
    assert difference(mine, more) == difference(more, mine) == "step 2000"
    assert difference(mine, arrival(terms_of(steps, ("b",), 4))) == "what is kept"
    assert difference(mine, arrival(terms_of(steps, ("a",), 4), "another id")) == ""


def test_a_short_one_and_a_long_one_are_compared() -> None:
    short, long = (arrival(terms_of(LONG[:length], (), 4), "") for length in (3, 300))
    assert difference(short, long) == difference(long, short) == "step 3"


def test_what_cannot_be_told_is_not() -> None:
    mine = arrival(terms_of(SHORT, (), 4))
    assert difference(mine, "barrier #7 id=an id") == ""
    assert difference(arrival(terms_of(LONG, (), 4)), arrival(terms_of(LONG, (), 10**6))) == ""
