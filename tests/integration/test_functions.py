"""Functions of the user's own on ranks, called by the Python client."""

from __future__ import annotations

import asyncio
import math
import re
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.support.gangs import RunningGang, up
from tests.support.missing import missing, once_all_say

import rankbridge
from rankbridge import (
    DeadlineExceededError,
    Each,
    FunctionFailedError,
    Gang,
    GangError,
    InvalidArgumentError,
    MismatchError,
    RankBridgeError,
    UnknownFunctionError,
    UnknownRefError,
)

APP = str(Path(__file__).parents[1] / "support" / "apps" / "functions.py")
SIZE = 3


@pytest.fixture(scope="module", params=["fake", "gloo"])
def running(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningGang]:
    options = ["--load", APP, "--heartbeat-misses", "300"]
    with up(tmp_path_factory.mktemp("functions"), SIZE, request.param, options) as it:
        yield it


@pytest.fixture
def gang(running: RunningGang) -> Iterator[Gang]:
    with rankbridge.connect(running.description, timeout=60.0) as gang:
        yield gang


@pytest.fixture
def held(gang: Gang) -> Iterator[Gang]:
    """A gang in which `hold` waits until the test ends, or lets it go."""
    gang[0].call("hold_again")
    for rank in gang:
        rank.call("hold_again")
    yield gang
    for rank in gang:
        rank.call("let_go")


def test_a_function_gets_the_same_arguments_on_every_rank(gang: Gang) -> None:
    assert gang.call("add", 1, 2, 3, scale=0.5, more=4) == [5.0] * SIZE


def test_each_rank_gets_its_own_where_there_is_one_for_each(gang: Gang) -> None:
    assert gang.call("add", Each(range(SIZE)), b=Each([10, 20, 30])) == [10.0, 21.0, 32.0]


@pytest.mark.parametrize(
    "value",
    [None, True, -3, 2**70, 1.5, "text \u00e9", b"\x00\xff", [1, [2]], (1, "2"), {"a": 1, 2: [None]}],
    ids=str,
)
def test_values_come_back_as_they_went(gang: Gang, value: object) -> None:
    assert gang.call("echo", value) == [value] * SIZE


def test_infinities_and_nan_are_values(gang: Gang) -> None:
    given = gang.call("echo", [math.inf, -math.inf, math.nan])[0]
    assert given[:2] == [math.inf, -math.inf]
    assert math.isnan(given[2])


def test_a_ref_arrives_as_its_tensor_and_a_tensor_becomes_a_ref(gang: Gang) -> None:
    refs = gang.put([np.full(2, rank, np.float32) for rank in range(SIZE)])
    given = gang.call("double", refs)
    assert [it["sum"] for it in given] == [0.0, 4.0, 8.0]
    befores = gang.get([it["before"] for it in given])
    assert np.array_equal(np.array(befores), [[rank] * 2 for rank in range(SIZE)])
    assert np.array_equal(np.array(gang.get(refs)), [[2.0 * rank] * 2 for rank in range(SIZE)])


def test_a_tensor_by_value_arrives_as_a_tensor(gang: Gang) -> None:
    assert gang.call("double", np.ones(4, np.float32))[2]["sum"] == 8.0


def test_a_result_does_not_change_with_what_the_function_keeps(gang: Gang) -> None:
    first = gang.call("shared_tensor")[1]
    before = np.array(gang[1].get(first))
    gang.call("shared_tensor")
    assert np.array_equal(np.array(gang[1].get(first)), before)


def test_refs_of_a_result_belong_to_the_callers_session(gang: Gang) -> None:
    before = len(gang[0].list_refs())
    gang.call("shared_tensor")
    assert len(gang[0].list_refs()) == before + 1


def test_the_context_says_where_the_function_runs(gang: Gang) -> None:
    name = uuid.uuid4().hex
    said = gang.function("about", operation_id=name)()
    generation = gang.status()[0].generation
    assert said == [
        {
            "rank": rank,
            "world_size": SIZE,
            "generation": generation,
            "operation_id": name,
            "new_ranks": list(range(SIZE)),
        }
        for rank in range(SIZE)
    ]


def test_functions_are_described(gang: Gang) -> None:
    by_name = {it.name: it for it in gang.functions()}
    add = by_name["add"]
    assert add.doc.splitlines() == ["Adds what it is given.", "", "All of it."]
    assert add.returns == "float"
    assert [(it.name, it.kind, it.type, it.optional, it.default) for it in add.parameters] == [
        ("a", "plain", "int", False, ""),
        ("b", "plain", "int", True, "2"),
        ("rest", "rest", "int", True, ""),
        ("scale", "named", "float", True, "1.0"),
        ("more", "named_rest", "int", True, ""),
    ]
    assert by_name["count_up"].yields
    assert by_name["about"].parameters == ()
    assert "echo" in by_name
    assert "give_back" not in by_name
    assert gang[1].functions() == gang.functions()


@pytest.mark.parametrize(
    ("args", "kwargs", "says"),
    [
        ((), {}, "missing a required argument: 'a'"),
        ((1,), {"a": 2}, "multiple values for argument 'a'"),
        (("one",), {}, "argument 'a' is of another type"),
        ((1, True), {}, "argument 'b' is of another type"),
        ((1, 2, "x"), {}, "argument 'rest' is of another type"),
        ((1,), {"scale": "x"}, "argument 'scale' is of another type"),
        ((1,), {"more": None}, "argument 'more' is of another type"),
    ],
)
def test_arguments_that_do_not_fit_are_refused_and_nothing_runs(
    gang: Gang, args: tuple[Any, ...], kwargs: dict[str, Any], says: str
) -> None:
    with pytest.raises(InvalidArgumentError, match=says) as failed:
        gang.call("add", *args, **kwargs)
    assert not failed.value.indefinite
    assert "add(a: int, b: int = 2" in failed.value.expected or failed.value.expected in ("int", "float")


def test_an_unknown_function_is_refused_with_those_there_are(gang: Gang) -> None:
    with pytest.raises(UnknownFunctionError, match="no function 'ad'") as failed:
        gang.call("ad", 1)
    assert "add, " in failed.value.expected
    assert not failed.value.indefinite


def test_each_must_have_one_for_each_rank(gang: Gang) -> None:
    with pytest.raises(InvalidArgumentError, match="one value for each member"):
        gang.call("add", Each([1, 2]))


def test_a_ref_of_another_rank_is_refused_and_others_are_released(gang: Gang) -> None:
    ref = gang[0].put(np.ones(1, np.float32))
    with pytest.raises(UnknownRefError) as failed:
        gang.call("echo", ref)
    assert isinstance(failed.value, GangError)
    mine, others, _ = failed.value.outcomes
    # It may have begun before it heard that others have refused.
    assert mine.error is None or isinstance(mine.error, FunctionFailedError)
    assert isinstance(others.error, UnknownRefError)
    assert gang.call("add", 1) == [3.0] * SIZE


def test_what_a_function_raises_comes_with_rank_type_text_place_and_traceback(
    gang: Gang, tmp_path: Path
) -> None:
    with pytest.raises(FunctionFailedError) as failed:
        # A rank that had not begun would be told not to.
        gang.call("fail", 1, text="a \u00fcbel day", folder=str(tmp_path))
    error = failed.value
    assert isinstance(error, GangError)
    assert [type(it.error) for it in error.outcomes] == [type(None), FunctionFailedError, type(None)]
    assert error.outcomes[0].value == "rank 0 went well"
    assert error.indefinite
    raised = error.raised
    assert raised is not None
    assert (raised.rank, raised.type, raised.text) == (1, "LookupError", "a \u00fcbel day")
    assert raised.where.startswith("functions.py:")
    assert raised.where.endswith(" in _deeper")
    first, second, *_ = raised.traceback.splitlines()
    assert first.endswith("in _deeper: raise LookupError(text)")
    assert "in fail: _deeper(text)" in second
    assert "Traceback (most recent call last)" in raised.traceback
    assert "core/functions/run.py" not in raised.traceback
    assert "LookupError: a \u00fcbel day (functions.py:" in str(error)


def test_a_long_text_is_cut_and_arrives(gang: Gang) -> None:
    with pytest.raises(FunctionFailedError) as failed:
        gang.call("fail", 0, text="x" * 100_000)
    raised = failed.value.raised
    assert raised is not None
    assert raised.text.endswith("(100000 characters)")
    assert len(raised.traceback) == 16 * 1024


def test_exit_is_a_failure_and_a_fork_does_not_answer_twice(gang: Gang) -> None:
    with pytest.raises(FunctionFailedError) as failed:
        gang.call("leave", "exit")
    assert failed.value.raised is not None
    assert failed.value.raised.type == "SystemExit"
    assert gang[1].call("leave", "fork") == "status 0"
    assert gang.call("leave", "plainly") == ["plainly"] * SIZE


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        ("set", r"set has no value at \['nested'\]\[1\]"),
        ("sparse", "layout torch.sparse"),
        ("deep", "deeper"),
    ],
)
def test_what_has_no_value_is_named(gang: Gang, kind: str, says: str) -> None:
    with pytest.raises(FunctionFailedError, match=says) as failed:
        gang.call("no_value", kind)
    assert failed.value.raised is not None
    assert failed.value.raised.type == "TypeError"


def test_an_id_runs_once(gang: Gang) -> None:
    name = uuid.uuid4().hex
    first = gang.function("remember", operation_id=name)(name, 1)
    again = gang.function("remember", operation_id=name)(name, 1)
    assert first == again
    with pytest.raises(InvalidArgumentError, match=r"belongs to another|used for another"):
        gang.function("remember", operation_id=name)(name, 2)


def test_ranks_that_are_called_each_by_itself_agree_on_the_function(gang: Gang) -> None:
    each = gang.function("add", calls="ranks")
    assert each(Each([1, 2, 3])) == [3.0, 4.0, 5.0]
    name = uuid.uuid4().hex
    calls = [
        rank.start("call_function", rankbridge.Arguments(args, {}), function=function, operation_id=name)
        for rank, function, args in zip(gang, ["add", "add", "echo"], [(1,)] * 3, strict=True)
    ]
    errors = [call.exception() for call in calls]
    assert all(isinstance(it, MismatchError) for it in errors), errors


def test_one_rank_alone_is_called_beside_what_the_group_does(held: Gang) -> None:
    call = held.function("hold").start()
    with call.reports() as reports:
        assert next(reports).value == "held"
    assert held[1].call("add", 40) == 42.0
    for rank in held:
        rank.call("let_go")
    assert call.result() == ["let go"] * SIZE


def test_the_groups_other_operations_go_on_beside_a_function(held: Gang) -> None:
    call = held.function("hold").start()
    held.barrier()
    assert not call.done()
    for rank in held:
        rank.call("let_go")
    assert call.result() == ["let go"] * SIZE


def test_a_rank_that_others_miss_is_told_to_run_a_function(held: Gang) -> None:
    call = held.function("hold").start()
    with call.reports() as reports:
        assert {next(reports).rank for _ in range(SIZE)} == set(range(SIZE))
    error = once_all_say(lambda: held[1].start("barrier", timeout=1.0).exception())
    for rank in held:
        rank.call("let_go")
    assert call.result() == ["let go"] * SIZE
    activities = missing(error).values()
    assert [(it.doing, it.operation, it.group) for it in activities] == [("function", "hold", "world")] * (
        SIZE - 1
    )
    assert all(it.site.startswith(f"{__file__}:") for it in activities)
    assert all(re.fullmatch(r"functions\.py:\d+ in hold", it.where) for it in activities)
    said = r"has not come: it runs function hold, for [\d.]+ s at \S+, and is at functions\.py:\d+ in hold"
    assert re.search(said, str(error))


def test_functions_of_one_group_run_one_after_another(held: Gang) -> None:
    first = held.function("hold").start()
    second = held.function("add").start(1)
    assert held[0].call("add", 1) == 3.0
    assert not second.done()
    for rank in held:
        rank.call("let_go")
    assert first.result() == ["let go"] * SIZE
    assert second.result() == [3.0] * SIZE


def test_cancel_asks_a_running_function_to_end(held: Gang) -> None:
    call = held.function("hold").start()
    with call.reports() as reports:
        assert {next(reports).rank for _ in range(SIZE)} == set(range(SIZE))
    call.cancel()
    with pytest.raises(RankBridgeError) as failed:
        call.result()
    assert failed.value.code is rankbridge.ErrorCode.CANCELLED
    assert failed.value.indefinite


def test_a_function_that_is_queued_is_withdrawn(held: Gang) -> None:
    first = held.function("hold").start()
    with first.reports() as reports:
        assert {next(reports).rank for _ in range(SIZE)} == set(range(SIZE))
    second = held.function("remember").start("withdrawn", 1)
    held[0].call("add", 1)
    second.cancel()
    with pytest.raises(RankBridgeError) as failed:
        second.result()
    assert failed.value.code is rankbridge.ErrorCode.CANCELLED
    for rank in held:
        rank.call("let_go")
    assert first.result() == ["let go"] * SIZE
    assert all("withdrawn" not in it for it in held.call("remember", "x", 1))


def test_a_deadline_asks_the_function_to_end_and_answers_after_a_grace(held: Gang) -> None:
    began = time.monotonic()
    with pytest.raises(DeadlineExceededError, match="was asked to end, and has not") as failed:
        # On a busy machine a rank may take a while to begin.
        held.function("hold_on", timeout=2.0)()
    assert failed.value.indefinite
    assert time.monotonic() - began < 30.0
    for rank in held:
        rank.call("let_go")
    assert held.call("add", 1) == [3.0] * SIZE


def test_a_function_that_ends_at_its_deadline_has_exceeded_it_and_nobody_is_cancelled(held: Gang) -> None:
    with pytest.raises(GangError) as failed:
        held.function("hold", timeout=2.0)()
    assert failed.value.indefinite
    codes = {it.rank: it.error and it.error.code for it in failed.value.outcomes}
    assert codes == dict.fromkeys(range(SIZE), rankbridge.ErrorCode.DEADLINE_EXCEEDED)


def test_reports_come_in_order_from_every_rank_and_end(gang: Gang) -> None:
    call = gang.function("count_up").start(5)
    reports = list(call.reports())
    for rank in range(SIZE):
        own = [it for it in reports if it.rank == rank]
        assert [it.number for it in own] == [1, 2, 3, 4, 5]
        assert [it.value for it in own] == [{"number": number, "rank": rank} for number in range(5)]
    assert call.result() == [10] * SIZE
    assert [it.number for it in call.reports() if it.rank == 1] == [1, 2, 3, 4, 5]


def test_a_slow_reader_misses_reports_and_holds_up_nobody(gang: Gang) -> None:
    call = gang.function("reporting").start(3000)
    assert call.result() == [3000] * SIZE
    own = [it for it in call.reports() if it.rank == 0]
    assert own[0].missed == 3000 - len(own)
    assert [it.number for it in own] == list(range(own[0].number, 3001))
    assert own[-1].value["tensor"].tolist() == [2999]


def test_reports_of_a_call_that_is_refused_end(gang: Gang) -> None:
    call = gang.function("add").start("x")
    assert list(call.reports()) == []
    with pytest.raises(InvalidArgumentError):
        call.result()


def test_a_stream_has_functions_among_its_operations(gang: Gang) -> None:
    with gang.stream() as stream:
        one = stream.submit("call_function", rankbridge.Arguments((1,), {}), function="add")
        two = stream.submit("barrier")
        assert one.result() == [3.0] * SIZE
        two.result()


def test_the_asyncio_client_calls_functions(running: RunningGang) -> None:
    async def calls() -> tuple[list[Any], list[Any], list[int]]:
        async with await rankbridge.aconnect(running.description) as gang:
            call = await gang.function("count_up").start(2)
            numbers = [it.number async for it in call.reports() if it.rank == 2]
            return await gang.call("add", 5), await call.result(), numbers

    assert asyncio.run(calls()) == ([7.0] * SIZE, [1] * SIZE, [1, 2])
