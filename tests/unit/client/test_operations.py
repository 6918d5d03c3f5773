"""Operations that are submitted, and outcomes that are asked for by id, on real ranks of the fake backend."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from tests.support.gangs import RunningGang
from tests.unit.client.fronts import connected

import rankbridge


@pytest.fixture
def gang(front: str, fake4: RunningGang) -> Iterator[Any]:
    """A gang of four real ranks, of each front in turn."""
    with connected(front, fake4.description, timeout=20) as gang:
        yield gang


@pytest.fixture
def refs(gang: Any) -> Any:
    """Rank r holds [r, 1]."""
    return gang.put([np.array([rank, 1], np.float32) for rank in range(4)])


def new_id() -> str:
    return uuid.uuid4().hex


def test_a_submitted_operation_gives_what_the_direct_call_gives(gang: Any, refs: Any) -> None:
    for value in gang.get(gang.submit("all_reduce", refs, op="max").result()):
        np.testing.assert_array_equal(value, [3, 1])
    for value in gang.get(gang.submit("broadcast", refs, src_rank_in_group=2).result()):
        np.testing.assert_array_equal(value, [2, 1])
    for value in gang.get(gang.submit("all_gather", refs).result()):
        np.testing.assert_array_equal(value, [0, 1, 1, 1, 2, 1, 3, 1])
    gathered = gang.submit("gather", refs, dst_rank_in_group=1).result()
    assert [ref and ref.rank for ref in gathered] == [None, 1, None, None]
    reduced = gang.submit("reduce", refs, op="max", dst_rank_in_group=3).result()
    assert [ref and ref.rank for ref in reduced] == [None, None, None, 3]
    np.testing.assert_array_equal(gang.get(reduced[3]), [3, 1])
    whole = gang[0].put(np.arange(8, dtype=np.float32))
    for rank, part in enumerate(gang.get(gang.submit("scatter", [whole, *refs[1:]]).result())):
        np.testing.assert_array_equal(part, [2 * rank, 2 * rank + 1])
    whole = gang.put([np.full(6, rank, np.float32) for rank in range(4)])
    parts = gang.get(gang.submit("reduce_scatter", whole, sizes=[3, 0, 2, 1]).result())
    assert [part.tolist() for part in parts] == [[6, 6, 6], [], [6, 6], [6]]
    for value in gang.get(
        gang.submit("all_gather", gang.put([np.ones(rank) for rank in range(4)]), sizes=range(4)).result()
    ):
        np.testing.assert_array_equal(value, np.ones(6))
    given = gang.put([np.arange(4) + 10 * rank for rank in range(4)])
    for rank, value in enumerate(gang.get(gang.submit("all_to_all", given).result())):
        np.testing.assert_array_equal(value, [rank, 10 + rank, 20 + rank, 30 + rank])
    rows = [[4, 0, 0, 0], [0, 3, 1, 0], [2, 2, 0, 0], [1, 1, 1, 1]]
    got = gang.get(gang.submit("all_to_all", given, sizes=rows).result())
    assert [it.tolist() for it in got] == [[0, 1, 2, 3, 20, 21, 30], [10, 11, 12, 22, 23, 31], [13, 32], [33]]
    assert gang.submit("barrier").result() is None
    in_place = gang.submit("all_reduce", refs, in_place=True).result()
    assert [ref.id for ref in in_place] == [ref.id for ref in refs]


def test_a_submitted_operation_fails_as_the_direct_call_fails(gang: Any, refs: Any) -> None:
    wrong = [*refs[:3], gang[3].put(np.zeros(3, np.float32))]
    errors = []
    for call in (gang.all_reduce, lambda wrong: gang.submit("all_reduce", wrong).result()):
        with pytest.raises(rankbridge.MismatchError) as caught:
            call(wrong)
        errors.append(caught.value)
    direct, submitted = errors
    assert isinstance(submitted, rankbridge.GangError)
    sides = [[(detail.rank, detail.state) for detail in error.ranks] for error in (direct, submitted)]
    assert sides[0] == sides[1] != []
    assert (submitted.operation, submitted.group, submitted.indefinite) == ("all_reduce", "world", False)
    gang.barrier()


def test_an_operation_is_followed_from_the_queue_to_its_end(gang: Any) -> None:
    first, second = new_id(), new_id()
    assert gang[1].submit("barrier", operation_id=first) == first
    # Admission begins when its lane gets to it.
    while gang[1].poll(first).state == "queued":
        pass
    assert gang[1].poll(first).state == "admission"
    gang[1].submit("barrier", operation_id=second)
    assert gang[1].poll(second).state == "queued"
    others = [rank for rank in gang if rank.rank != 1]
    for operation_id in (first, second):
        for rank in others:
            rank.submit("barrier", operation_id=operation_id)
    assert gang.find(first).result() is None
    assert gang.find(second).result() is None
    assert [(status.rank, status.state) for status in gang.find(second).poll()] == [
        (rank, "done") for rank in range(4)
    ]


def test_polling_tells_the_outcome_of_each_rank(gang: Any, refs: Any) -> None:
    done = gang.submit("all_reduce", refs)
    result = done.result()
    assert [(status.state, status.value, status.error) for status in done.poll()] == [
        ("done", ref, None) for ref in result
    ]


def test_an_outcome_is_asked_for_by_id_by_whoever_knows_it(
    gang: Any, refs: Any, front: str, fake4: RunningGang
) -> None:
    operation_id = new_id()
    direct = gang.all_reduce(refs, operation_id=operation_id)
    with connected(front, fake4.description, session=False) as other:
        assert other.find(operation_id).result() == direct
        assert other[2].await_operation(operation_id) == direct[2]


def test_an_outcome_of_a_group_is_asked_for_at_its_members(gang: Any) -> None:
    name, operation_id = f"pair-{new_id()}", new_id()
    gang.new_group(name, [3, 1])
    try:
        submitted = gang.submit("barrier", group=name, operation_id=operation_id)
        assert submitted.ranks == gang.find(operation_id, group=name).ranks == (3, 1)
        assert gang.find(operation_id, group=name).result() is None
        with pytest.raises(rankbridge.UnknownOperationError):
            gang.find(operation_id).poll()
    finally:
        gang.destroy_group(name)


def test_waiting_ends_before_the_operation_and_leaves_it_as_it_is(gang: Any) -> None:
    operation_id = new_id()
    gang[0].submit("barrier", operation_id=operation_id)
    with pytest.raises(rankbridge.DeadlineExceededError) as caught:
        gang[0].await_operation(operation_id, timeout=0.05)
    assert isinstance(caught.value, TimeoutError)
    assert caught.value.indefinite
    for rank in list(gang)[1:]:
        rank.submit("barrier", operation_id=operation_id)
    assert gang.find(operation_id).result(timeout=10) is None


def test_a_cancelled_operation_is_withdrawn_and_its_outcome_says_so(gang: Any) -> None:
    operation_id = new_id()
    gang[2].submit("barrier", operation_id=operation_id)
    assert gang[2].cancel(operation_id) is True
    with pytest.raises(rankbridge.CallCancelledError) as caught:
        gang[2].await_operation(operation_id)
    assert (caught.value.indefinite, caught.value.rank) == (False, 2)
    status = gang[2].poll(operation_id)
    assert status.state == "done"
    assert isinstance(status.error, rankbridge.CallCancelledError)
    gang.barrier(timeout=5)


def test_what_is_done_is_not_cancelled(gang: Any, refs: Any) -> None:
    done = gang.submit("all_reduce", refs)
    result = done.result()
    assert done.cancel() == [False] * 4
    assert done.result() == result


def test_an_id_that_no_rank_knows_is_an_error(gang: Any) -> None:
    unknown = new_id()
    for ask in (gang[1].poll, gang[1].await_operation, gang[1].cancel):
        with pytest.raises(rankbridge.UnknownOperationError, match=unknown) as caught:
            ask(unknown)
        assert caught.value.rank == 1
    with pytest.raises(rankbridge.UnknownOperationError) as caught:
        gang.find(unknown).result()
    assert isinstance(caught.value, rankbridge.GangError)


def test_a_rank_that_never_got_the_operation_explains_why_the_others_missed_it(gang: Any) -> None:
    operation_id = new_id()
    for rank in list(gang)[:3]:
        rank.submit("barrier", operation_id=operation_id, timeout=0.3)
    with pytest.raises(rankbridge.UnknownOperationError) as caught:
        gang.find(operation_id).result()
    assert isinstance(caught.value, rankbridge.GangError)
    assert caught.value.rank == 3
    assert [type(outcome.error).__name__ for outcome in caught.value.outcomes] == [
        *["PeerMissingError"] * 3,
        "UnknownOperationError",
    ]


def test_what_one_rank_refuses_ends_on_the_others(gang: Any, refs: Any) -> None:
    operation_id = new_id()
    gang.release(refs[3])
    with pytest.raises(rankbridge.ReleasedRefError) as caught:
        gang.submit("all_reduce", refs, operation_id=operation_id)
    assert (caught.value.rank, caught.value.indefinite) == (3, False)
    for rank in list(gang)[:3]:
        # Whichever reaches it first: the refusal, from its leader, or the withdrawal, from the client.
        error = rank.poll(operation_id).error
        assert isinstance(error, rankbridge.CallCancelledError | rankbridge.ReleasedRefError)
    gang.barrier(timeout=5)


def test_what_cannot_be_submitted_is_refused_before_anything_is_sent(gang: Any, refs: Any) -> None:
    for operation in ("put", "new_group", "all_redcue"):
        with pytest.raises(rankbridge.InvalidArgumentError):
            gang.submit(operation, refs)
    with pytest.raises(rankbridge.InvalidArgumentError, match="needs an id"):
        gang[0].submit("barrier")
    with pytest.raises(rankbridge.InvalidArgumentError, match="in group order"):
        gang.submit("all_reduce", refs[:3])
    with pytest.raises(rankbridge.InvalidArgumentError, match="reduce op"):
        gang.submit("all_reduce", refs, op="mean")
    with pytest.raises(TypeError):
        gang.submit("barrier", refs)
    with pytest.raises(TypeError, match="takes sizes, not input_sizes"):
        gang.submit("all_to_all", refs, input_sizes=[2, 0, 0, 0])
    for rows in ([[1] * 4] * 3, [[1] * 3] * 4):
        with pytest.raises(rankbridge.InvalidArgumentError, match="sizes do not fit the group"):
            gang.submit("all_to_all", refs, sizes=rows)
    for sizes in ([], [1, 1, -1, 1], [2**63, 0, 0, 0]):
        with pytest.raises(rankbridge.InvalidArgumentError, match="sizes do not fit the group"):
            gang.submit("reduce_scatter", refs, sizes=sizes)


def test_what_was_begun_stays_open_when_its_outcome_cannot_be_asked_for(front: str, tmp_path: Any) -> None:
    with (
        connected(front, [f"unix:{tmp_path}/nobody"], session=False) as gang,
        pytest.raises(rankbridge.UnavailableError) as caught,
    ):
        gang[0].await_operation("some-id", timeout=1)
    assert caught.value.indefinite
