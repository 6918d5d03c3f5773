"""Every shared case, through the Python client, on every backend."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from tests.contract import cases, generate
from tests.support.gangs import RunningGang

import rankbridge
from rankbridge import Gang, Ref

CASES = cases.load()


@pytest.fixture(scope="module", params=["fake4", "gloo4"])
def gang(request: pytest.FixtureRequest) -> Iterator[Gang]:
    running: RunningGang = request.getfixturevalue(request.param)
    with rankbridge.connect(running.description) as it:
        yield it


@pytest.mark.parametrize("name", sorted(generate.FILES))
def test_the_cases_are_what_the_generator_writes(name: str) -> None:
    assert (cases.CASES / f"{name}.json").read_text() == generate.rendered(name)


def test_case_names_are_unique() -> None:
    names = [case["case"] for case in CASES]
    assert len(set(names)) == len(names) > 300


@pytest.mark.parametrize("case", CASES, ids=[case["case"] for case in CASES])
def test_case(gang: Gang, case: cases.Json) -> None:
    members = case["group"] or list(range(case["ranks"]))
    with gang.session():
        group = "world"
        if case["group"]:
            group = gang.new_group(f"g-{uuid.uuid4().hex}", case["group"]).name
        try:
            run(gang, group, members, case)
        finally:
            if case["group"]:
                gang.destroy_group(group)
        # A call that failed leaves the group as healthy as it was.
        gang.barrier(timeout=10)


def run(gang: Gang, group: str, members: Sequence[int], case: cases.Json) -> None:
    inputs = case["inputs"] and [cases.tensor(it) for it in case["inputs"]]
    refs = inputs and [gang[rank].put(it) for rank, it in zip(members, inputs, strict=True)]
    if "error" in case:
        with pytest.raises(rankbridge.RankBridgeError) as error:
            call(gang, group, members, refs, case)
        assert error.value.code.name == case["error"]
        assert not error.value.indefinite
    else:
        check_results(gang, refs, call(gang, group, members, refs, case), case)
        if case["arguments"].get("in_place"):
            return
    if refs:
        assert [cases.told(it) for it in gang.get(refs, to="tensor")] == case["inputs"]


def call(
    gang: Gang, group: str, members: Sequence[int], refs: list[Ref] | None, case: cases.Json
) -> list[Any]:
    operation = case["operation"]
    if "arguments_by_rank" not in case:
        arguments = [refs] if refs else []
        outcomes = getattr(gang, operation)(*arguments, group=group, timeout=10, **case["arguments"])
        return outcomes if outcomes is not None else [None] * len(members)
    assert refs is not None
    operation_id = uuid.uuid4().hex
    pending = [
        gang[rank].start(operation, ref, group=group, operation_id=operation_id, timeout=10, **arguments)
        for rank, ref, arguments in zip(members, refs, case["arguments_by_rank"], strict=True)
    ]
    errors: list[Exception] = []
    for it in pending:
        with pytest.raises(rankbridge.RankBridgeError) as error:
            it.result()
        errors.append(error.value)
    raise errors[0]


def check_results(gang: Gang, refs: list[Ref] | None, outcomes: list[Ref | None], case: cases.Json) -> None:
    assert len(outcomes) == len(case["results"])
    for outcome, expected in zip(outcomes, case["results"], strict=True):
        if expected is None:
            assert outcome is None
            continue
        assert outcome is not None
        assert cases.told(gang.get(outcome, to="tensor")) == expected
        assert [outcome.dtype, list(outcome.shape)] == [expected["dtype"], expected["shape"]]
    if case["arguments"].get("in_place"):
        assert refs is not None
        assert [it and it.id for it in outcomes] == [ref.id for ref in refs]
