"""What breaks a job that calls Gloo by itself ends here in the right error on every rank, and breaks nothing.

Each test is a way in which plain `torch.distributed` on Gloo aborts a process, answers wrongly without a word, or
waits for ever. Afterwards, the `hazard` fixture finds the same processes in the same generation, and the group good.

Not applicable yet, because there is no point-to-point operation: send to oneself, receive from oneself, a receive
that is too small, send to a rank outside the group, waiting twice for a send.
"""

from __future__ import annotations

import os
import signal
import time
import uuid
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from tests.support.gangs import RunningGang, up
from tests.support.processes import stop, watched
from tests.support.waiting import until

import rankbridge
from rankbridge import Gang, Pending, RankBridgeError, Ref

TIMEOUT_S = 20.0
# Of what must not wait for its timeout.
LONG_S = 120.0
SHORT_S = 1.0


@pytest.fixture(params=["gloo2", "gloo4"])
def hazard(request: pytest.FixtureRequest) -> Iterator[Gang]:
    """A gang that the test tries to break, and cannot."""
    running: RunningGang = request.getfixturevalue(request.param)
    with rankbridge.connect(running.description) as gang:
        before = gang.status()
        yield gang
        after = gang.status()
        assert [status.pid for status in after] == [status.pid for status in before]
        assert [status.generation for status in after] == [status.generation for status in before]
        assert {status.generation_state for status in after} == {"formed"}
        assert {status.pending_operations for status in after} == {0}
        assert_usable(gang)


@dataclass(frozen=True)
class Part:
    """What one rank asks for."""

    operation: str
    value: np.typing.NDArray[Any] | None = None
    options: dict[str, Any] = field(default_factory=dict)


def ones(dtype: str, *shape: int) -> np.typing.NDArray[Any]:
    return np.ones(shape, dtype)


# What one rank, and what all others ask for.
DISAGREEMENTS: dict[str, tuple[Part, Part]] = {
    "all_reduce of 8 with one of 4": (
        Part("all_reduce", ones("float32", 8)),
        Part("all_reduce", ones("float32", 4)),
    ),
    "all_reduce of equal bytes in other shapes": (
        Part("all_reduce", ones("float64", 2)),
        Part("all_reduce", ones("float32", 4)),
    ),
    "all_reduce of equal elements in other shapes": (
        Part("all_reduce", ones("float32", 2, 3)),
        Part("all_reduce", ones("float32", 3, 2)),
    ),
    "broadcast of 8 into 4": (
        Part("broadcast", ones("float32", 8)),
        Part("broadcast", ones("float32", 4)),
    ),
    "broadcast of 2 into 3": (
        Part("broadcast", ones("float32", 2)),
        Part("broadcast", ones("float32", 3)),
    ),
    "broadcast of a float into an integer": (
        Part("broadcast", np.array(3.5, np.float32)),
        Part("broadcast", np.array(7, np.int32)),
    ),
    "gather of 8 with one of 4": (
        Part("gather", ones("float32", 8)),
        Part("gather", ones("float32", 4)),
    ),
    "gather of ragged booleans": (
        Part("gather", ones("bool", 4)),
        Part("gather", ones("bool", 2)),
    ),
    "all_gather of 8 with one of 4": (
        Part("all_gather", ones("float32", 8)),
        Part("all_gather", ones("float32", 4)),
    ),
    "float32 and int32 of the same bytes": (
        Part("all_reduce", np.array([1.5, 2.5], np.float32)),
        Part("all_reduce", np.array([1, 2], np.int32)),
    ),
    "sum and max": (
        Part("all_reduce", ones("float32", 4), {"op": "sum"}),
        Part("all_reduce", ones("float32", 4), {"op": "max"}),
    ),
    "other broadcast sources": (
        Part("broadcast", ones("float32", 4), {"src_rank_in_group": 0}),
        Part("broadcast", ones("float32", 4), {"src_rank_in_group": 1}),
    ),
    "other gather destinations": (
        Part("gather", ones("float32", 4), {"dst_rank_in_group": 1}),
        Part("gather", ones("float32", 4), {"dst_rank_in_group": 0}),
    ),
    "other dimensions": (
        Part("all_gather", ones("float32", 2, 2), {"dim": 0}),
        Part("all_gather", ones("float32", 2, 2), {"dim": 1}),
    ),
    "all_reduce and broadcast": (
        Part("all_reduce", ones("float32", 4)),
        Part("broadcast", ones("float32", 4)),
    ),
    "all_gather and gather": (
        Part("all_gather", ones("float32", 4)),
        Part("gather", ones("float32", 4)),
    ),
    "barrier and all_reduce": (Part("barrier"), Part("all_reduce", ones("float32", 4))),
}


@pytest.mark.parametrize("odd_is", ["first", "last"])
@pytest.mark.parametrize("name", DISAGREEMENTS)
def test_members_that_disagree_are_all_shown_both_sides(hazard: Gang, name: str, odd_is: str) -> None:
    other, usual = DISAGREEMENTS[name]
    odd = 0 if odd_is == "first" else len(hazard) - 1
    parts = [other if rank == odd else usual for rank in range(len(hazard))]
    refs = [None if it.value is None else hazard[rank].put(it.value) for rank, it in enumerate(parts)]
    begun = begin_all(hazard, parts, refs)
    for rank, pending in enumerate(begun):
        error = failure(pending, rankbridge.MismatchError)
        assert (error.rank, error.group, error.operation) == (rank, "world", parts[rank].operation)
        assert error.expected.startswith(parts[rank].operation)
        assert error.got.startswith(usual.operation if rank == odd else other.operation)
        assert error.expected != error.got
        others = [peer for peer in range(len(hazard)) if (peer == odd) is not (rank == odd)]
        assert [detail.rank for detail in error.ranks] == list(range(len(hazard)))
        assert [detail.rank for detail in error.ranks if detail.state == "disagrees"] == others
    for ref, part in zip(refs, parts, strict=True):
        if ref is not None and part.value is not None:
            assert_equal(hazard, ref, part.value)


def test_two_calls_of_one_shape_that_are_swapped_end_in_a_mismatch_of_both(hazard: Gang) -> None:
    refs = hazard.put([ones("float32", 4)] * len(hazard))
    first, second = new_id(), new_id()
    for rank, ref in enumerate(refs):
        # Submit answers when the call is in its place in the queue.
        for operation_id in (second, first) if rank == 0 else (first, second):
            hazard[rank].submit(
                "all_reduce", ref, in_place=True, operation_id=operation_id, timeout=TIMEOUT_S
            )
    for rank in range(len(hazard)):
        for operation_id in (first, second):
            with pytest.raises(rankbridge.MismatchError) as error:
                hazard[rank].await_operation(operation_id)
            assert not error.value.indefinite
            assert error.value.operation_id == operation_id
            assert f"({first})" in str(error.value)
            assert f"({second})" in str(error.value)
    for ref in refs:
        assert_equal(hazard, ref, ones("float32", 4))


def test_two_groups_that_are_entered_in_opposite_order_simply_work(hazard: Gang) -> None:
    everyone = range(len(hazard))
    one, other = (hazard.new_group(new_id(), ranks) for ranks in (everyone, reversed(everyone)))
    refs = hazard.put([np.array([rank + 1.0], np.float32) for rank in everyone])
    ids = {one.name: new_id(), other.name: new_id()}
    for rank, ref in enumerate(refs):
        for group in (one, other) if rank % 2 else (other, one):
            hazard[rank].submit("all_reduce", ref, group=group, operation_id=ids[group.name])
    for rank in everyone:
        for group in (one, other):
            result = hazard[rank].await_operation(ids[group.name])
            assert result is not None
            assert_equal(hazard, result, np.array([sum(range(len(hazard) + 1))], np.float32))
    for group in (one, other):
        hazard.destroy_group(group)


@pytest.mark.sampled
def test_a_group_used_from_two_threads_never_gives_a_wrong_result(hazard: Gang) -> None:
    def drive(value: float) -> list[str]:
        refs = hazard.put([np.full(4, value, np.float32)] * len(hazard))
        return [reduce_once(hazard, refs, value) for _ in range(150)]

    with ThreadPoolExecutor(2) as threads:
        seen = [it for outcomes in threads.map(drive, (1.0, 100.0)) for it in outcomes]
    assert len(seen) == 300
    assert set(seen) <= {"right", "MISMATCH"}


def reduce_once(gang: Gang, refs: Sequence[Ref], value: float) -> str:
    try:
        results = gang.all_reduce(refs, timeout=TIMEOUT_S)
    except rankbridge.GangError as error:
        codes = {outcome.error.code.name if outcome.error else "right" for outcome in error.outcomes}
        return " and ".join(sorted(codes)) + (", indefinite" if error.indefinite else "")
    values = [np.asarray(it).tolist() for it in gang.get(results)]
    gang.release(results)
    return "right" if values == [[value * len(gang)] * 4] * len(gang) else f"wrong: {values}"


@pytest.mark.parametrize(
    "strided",
    [
        np.arange(24, dtype=np.float32).reshape(4, 6)[:, ::2],
        np.arange(24, dtype=np.float32).reshape(4, 6).T,
        np.arange(8, dtype=np.float32)[::-1],
        np.broadcast_to(np.arange(3, dtype=np.float32), (5, 3)),
    ],
    ids=["every other column", "transposed", "backwards", "repeated"],
)
def test_strided_tensors_are_moved_by_their_elements(
    hazard: Gang, strided: np.typing.NDArray[np.float32]
) -> None:
    zeros = np.zeros_like(strided)
    refs = hazard.put([strided if rank == 1 else zeros for rank in range(len(hazard))])
    for results in (
        hazard.all_reduce(refs),
        hazard.broadcast(refs, src_rank_in_group=1),
        hazard.all_reduce(refs, in_place=True),
    ):
        for it in results:
            assert_equal(hazard, it, strided)


def test_an_integer_average_is_refused_before_the_tensor_is_touched(hazard: Gang) -> None:
    values = [np.array([rank, 7], np.int64) for rank in range(len(hazard))]
    refs = hazard.put(values)
    part = Part("all_reduce", options={"op": "avg", "in_place": True})
    for pending in begin_all(hazard, [part] * len(hazard), refs):
        assert failure(pending, rankbridge.UnsupportedDtypeError).phase == "check"
    for ref, value in zip(refs, values, strict=True):
        assert_equal(hazard, ref, value)


@pytest.mark.parametrize("beyond", [0, 1, 1000])
@pytest.mark.parametrize(
    ("operation", "argument"), [("broadcast", "src_rank_in_group"), ("gather", "dst_rank_in_group")]
)
def test_a_rank_that_is_not_in_the_group_is_refused(
    hazard: Gang, operation: str, argument: str, beyond: int
) -> None:
    refs = hazard.put([ones("float32", 4)] * len(hazard))
    part = Part(operation, options={argument: len(hazard) + beyond})
    for pending in begin_all(hazard, [part] * len(hazard), refs):
        error = failure(pending, rankbridge.RankOutOfRangeError)
        assert error.got == str(len(hazard) + beyond)
        assert error.phase == "check"


def test_a_group_with_a_rank_that_is_not_in_the_gang_is_refused(hazard: Gang) -> None:
    name = new_id()
    with pytest.raises(rankbridge.RankOutOfRangeError) as error:
        hazard.new_group(name, [0, len(hazard)])
    assert not error.value.indefinite
    assert name not in [group.name for group in hazard.groups()]


@pytest.mark.parametrize("missing_is", ["first", "last"])
def test_a_rank_that_is_missing_is_named_to_all_who_came(hazard: Gang, missing_is: str) -> None:
    missing = 0 if missing_is == "first" else len(hazard) - 1
    came = [rank for rank in range(len(hazard)) if rank != missing]
    refs = hazard.put([ones("float32", 4)] * len(hazard))
    pending = begin_without(hazard, missing, refs, in_place=True)
    for it in pending:
        error = failure(it, rankbridge.PeerMissingError)
        states = {detail.rank: detail.state for detail in error.ranks}
        assert states == {rank: "arrived" if rank in came else "missing" for rank in range(len(hazard))}
    for ref in refs:
        assert_equal(hazard, ref, ones("float32", 4))


@pytest.mark.parametrize("late", [0, 1])
def test_a_rank_that_comes_after_its_peers_gave_up_is_told_at_once(hazard: Gang, late: int) -> None:
    refs = hazard.put([ones("float32", 4)] * len(hazard))
    options = {"operation_id": new_id(), "in_place": True}
    for it in begin_without(hazard, late, refs, **options):
        failure(it, rankbridge.PeerMissingError)
    begun = time.monotonic()
    error = failure(
        hazard[late].start("all_reduce", refs[late], timeout=LONG_S, **options),
        rankbridge.PeerMissingError,
    )
    assert time.monotonic() - begun < LONG_S / 4
    assert [detail.rank for detail in error.ranks if detail.state == "missing"] == [late]
    assert_equal(hazard, refs[late], ones("float32", 4))


def test_what_one_rank_refuses_fails_all_at_once_and_names_it(hazard: Gang) -> None:
    refs = hazard.put([ones("float32", 4)] * len(hazard))
    hazard.release(refs[1])
    begun = time.monotonic()
    with pytest.raises(rankbridge.ReleasedRefError) as error:
        hazard.all_reduce(refs, timeout=LONG_S)
    assert time.monotonic() - begun < LONG_S / 4
    assert isinstance(error.value, rankbridge.GangError)
    assert not error.value.indefinite
    for outcome in error.value.outcomes:
        assert isinstance(outcome.error, rankbridge.ReleasedRefError)
        if outcome.rank != 1:
            assert [(detail.rank, detail.state) for detail in outcome.error.ranks] == [(1, "failed")]


def test_waiting_twice_gives_one_outcome(hazard: Gang) -> None:
    refs = hazard.put([ones("float32", 4)] * len(hazard))
    submitted = hazard.submit("all_reduce", refs)
    first = submitted.result()
    assert first is not None
    assert submitted.result() == first
    assert [it and it.id for it in hazard.all_reduce(refs, operation_id=submitted.operation_id)] == [
        it and it.id for it in first
    ]


def test_a_gather_of_rows_gives_every_row_in_order(hazard: Gang) -> None:
    refs = hazard.put([np.full((2, 3), rank, np.float32) for rank in range(len(hazard))])
    gathered = hazard.gather(refs, dst_rank_in_group=1, dim=0)
    assert [it is None for it in gathered] == [rank != 1 for rank in range(len(hazard))]
    assert gathered[1] is not None
    rows = np.repeat(np.arange(len(hazard), dtype=np.float32), 6).reshape(-1, 3)
    assert_equal(hazard, gathered[1], rows)


BROKEN: dict[str, tuple[Part, type[RankBridgeError]]] = {
    "an unknown group": (
        Part("all_reduce", ones("int32", 2), {"group": "nobody"}),
        rankbridge.UnknownGroupError,
    ),
    "another generation": (
        Part("all_reduce", ones("int32", 2), {"generation": 10**9}),
        rankbridge.StaleGenerationError,
    ),
    "an operation id that is too long": (
        Part("all_reduce", ones("int32", 2), {"operation_id": "x" * 129}),
        rankbridge.InvalidArgumentError,
    ),
    "a dimension that is not there": (
        Part("all_gather", ones("int32", 2), {"dim": 1}),
        rankbridge.InvalidArgumentError,
    ),
    "a gather of numbers without a dimension": (
        Part("gather", np.array(1, np.int32)),
        rankbridge.InvalidArgumentError,
    ),
    "the smallest of complex numbers": (
        Part("all_reduce", ones("complex64", 2), {"op": "min"}),
        rankbridge.UnsupportedDtypeError,
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_call_is_refused_on_every_rank(hazard: Gang, name: str) -> None:
    part, expected = BROKEN[name]
    assert part.value is not None
    refs = hazard.put([part.value] * len(hazard))
    for pending in begin_all(hazard, [part] * len(hazard), refs):
        assert failure(pending, expected).phase == "check"
    for ref in refs:
        assert_equal(hazard, ref, part.value)


def test_a_ref_of_another_rank_is_refused(hazard: Gang) -> None:
    refs = hazard.put([ones("int32", 2)] * len(hazard))
    for rank in range(len(hazard)):
        stranger = refs[(rank + 1) % len(hazard)]
        failure(hazard[rank].start("all_reduce", stranger), rankbridge.UnknownRefError)


def test_a_rank_that_is_killed_is_named_and_the_others_go_on_with_its_successor(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    values = [np.full(1000, rank, np.float32) for rank in range(4)]
    with (
        up(tmp_path_factory.mktemp("killed"), 4) as running,
        rankbridge.connect(running.description) as gang,
    ):
        refs = gang.put(values)
        begun = begin_all(gang, [Part("all_reduce", options={"in_place": True})] * 3, refs[:3])
        while any(gang[rank].status().pending_operations != 1 for rank in range(3)):
            pass
        with watched([running.pids[3]]) as killed:
            os.kill(running.pids[3], signal.SIGKILL)
            assert killed.alive_after(TIMEOUT_S) == []
        for pending in begun:
            with pytest.raises(rankbridge.PeerLostError) as error:
                pending.result(TIMEOUT_S)
            assert [(it.rank, it.state) for it in error.value.ranks] == [(3, "lost")]
        gang.form(via_rank=0)
        assert [status.pid for status in gang.status()][:3] == running.pids[:3]
        assert gang.status()[3].pid != running.pids[3]
        for ref, value in zip(refs[:3], values[:3], strict=True):
            assert_equal(gang, ref, value)
        assert_usable(gang)


def test_a_rank_that_was_stopped_and_goes_on_joins_no_later_operation(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    options = ["--on-rank-exit", "leave"]
    with (
        up(tmp_path_factory.mktemp("stopped"), 3, options=options) as running,
        rankbridge.connect(running.targets, session=False) as gang,
    ):
        refs = gang.put([np.full(4, rank + 1.0, np.float32) for rank in range(3)])
        begun = begin_all(gang, [Part("all_reduce", options={"in_place": True})] * 2, refs[:2])
        stop(running.pids[2])
        for pending in begun:
            with pytest.raises(rankbridge.PeerLostError) as error:
                pending.result(TIMEOUT_S)
            assert [(it.rank, it.state) for it in error.value.ranks] == [(2, "lost")]
        with rankbridge.connect(running.targets[:2], session=False) as survivors:
            survivors.form()
            os.kill(running.pids[2], signal.SIGCONT)
            with pytest.raises(rankbridge.GenerationError):
                gang[2].all_reduce(refs[2], timeout=TIMEOUT_S)
            for result in survivors.all_reduce(refs[:2]):
                assert_equal(survivors, result, np.full(4, 3.0, np.float32))
        assert_equal(gang, refs[2], np.full(4, 3.0, np.float32))
        assert gang[2].status().pid == running.pids[2]


def begin_all(gang: Gang, parts: Sequence[Part], refs: Sequence[Ref | None]) -> list[Pending[Any]]:
    """Begins each rank's part, all under one operation id."""
    common = {"operation_id": new_id(), "timeout": TIMEOUT_S}
    return [
        gang[rank].start(part.operation, *([] if ref is None else [ref]), **(common | part.options))
        for rank, (part, ref) in enumerate(zip(parts, refs, strict=True))
    ]


def begin_without(gang: Gang, missing: int, refs: Sequence[Ref], **options: Any) -> list[Pending[Any]]:
    """Begins all ranks' sums but one's, which the others have not long to wait for once they all have come."""
    *first, last = (rank for rank in range(len(gang)) if rank != missing)
    begun = [gang[rank].start("all_reduce", refs[rank], timeout=TIMEOUT_S, **options) for rank in first]
    until(lambda: {rank for it in gang[0].pending().admissions for rank in it.arrived} == set(first))
    return [*begun, gang[last].start("all_reduce", refs[last], timeout=SHORT_S, **options)]


def failure(pending: Pending[Any], expected: type[RankBridgeError]) -> RankBridgeError:
    """The error of a call that must fail so, and with nothing done anywhere."""
    with pytest.raises(expected) as error:
        pending.result(TIMEOUT_S)
    assert type(error.value) is expected
    assert not error.value.indefinite
    return error.value


def assert_equal(gang: Gang, ref: Ref, expected: np.typing.NDArray[Any]) -> None:
    fetched = gang.get(ref)
    assert isinstance(fetched, np.ndarray)
    assert fetched.dtype == expected.dtype
    np.testing.assert_array_equal(fetched, expected, strict=True)


def assert_usable(gang: Gang) -> None:
    refs = gang.put([np.array([1, rank], np.int64) for rank in range(len(gang))])
    expected = np.array([len(gang), sum(range(len(gang)))], np.int64)
    for result in gang.all_reduce(refs, timeout=TIMEOUT_S):
        assert_equal(gang, result, expected)


def new_id() -> str:
    return uuid.uuid4().hex
