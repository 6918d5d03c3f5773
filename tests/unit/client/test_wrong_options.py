"""Options that an operation does not have: the error names what was called, and what was likely meant."""

from collections.abc import Callable
from typing import Any

import pytest

import rankbridge


@pytest.fixture
def refs(gang: Any) -> list[rankbridge.Ref]:
    return [gang[rank].create("float32", [2]) for rank in range(4)]


@pytest.mark.parametrize(
    ("operation", "wrong", "said"),
    [
        ("broadcast", "src", "`broadcast` has no option `src`; did you mean `src_rank_in_group`?"),
        ("all_reduce", "opp", "`all_reduce` has no option `opp`; did you mean `op`?"),
        ("all_reduce", "time_out", "`all_reduce` has no option `time_out`; did you mean `timeout`?"),
        ("scatter", "grp", "`scatter` has no option `grp`; did you mean `group`?"),
        ("all_gather", "xyzzy", "`all_gather` has no option `xyzzy`"),
    ],
)
def test_a_wrong_option_of_a_collective_is_named(
    gang: Any, refs: list[rankbridge.Ref], operation: str, wrong: str, said: str
) -> None:
    with pytest.raises(TypeError) as caught:
        getattr(gang, operation)(refs, **{wrong: 1})
    assert str(caught.value) == said


def test_so_it_is_without_refs_and_on_one_rank(gang: Any) -> None:
    calls: list[tuple[Callable[[], object], str]] = [
        (lambda: gang.barrier(grup="world"), "`barrier` has no option `grup`; did you mean `group`?"),
        (lambda: gang.new_group("g", [0, 1], generaton=1), "`new_group` has no option `generaton`; did you"),
        (lambda: gang[1].all_gather_object(1, ranks=2), "`all_gather_object` has no option `ranks`"),
        (lambda: gang.ping(timeuot=1), "`ping` has no option `timeuot`; did you mean `timeout`?"),
    ]
    for call, said in calls:
        with pytest.raises(TypeError) as caught:
            call()
        assert str(caught.value).startswith(said)


@pytest.mark.parametrize("timeout", ["x", b"1", [1], float("nan"), 0])
def test_a_timeout_that_is_no_number_of_seconds_is_refused(gang: Any, timeout: Any) -> None:
    with pytest.raises(rankbridge.InvalidArgumentError, match="a timeout is more than 0 and finite"):
        gang.barrier(timeout=timeout)
