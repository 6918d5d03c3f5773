"""What members send each other through the Python client, on real ranks."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from tests.support.gangs import RunningGang
from tests.support.waiting import until
from tests.unit.client.fronts import connected

import rankbridge


@pytest.fixture(params=["sync", "async"])
def front(request: pytest.FixtureRequest) -> str:
    """Name of each front in turn."""
    name: str = request.param
    return name


@pytest.fixture(params=["fake4", "gloo4"])
def running(request: pytest.FixtureRequest) -> RunningGang:
    """A gang of four real ranks, on each backend in turn."""
    gang: RunningGang = request.getfixturevalue(request.param)
    return gang


@pytest.fixture
def gang(front: str, running: RunningGang) -> Iterator[Any]:
    """The gang, connected to by each front in turn."""
    with connected(front, running.description, timeout=60) as gang:
        yield gang


@pytest.fixture
def refs(gang: Any) -> Any:
    """Rank r holds [r, r + 10]."""
    return gang.put([np.array([rank, rank + 10], np.float32) for rank in range(4)])


def test_a_tensor_comes_as_it_was_sent_and_from_where_is_told(gang: Any, refs: Any) -> None:
    sent = gang[3].isend(refs[3], dst_rank_in_group=1)
    got, source = gang[1].recv(src_rank_in_group=3)
    assert (got.rank, source, got.session_id) == (1, 3, gang.session_id)
    np.testing.assert_array_equal(gang.get(got), [3, 13])
    assert sent.wait() is None
    received = gang[0].irecv()
    assert gang[2].send(refs[2], dst_rank_in_group=0) is None
    got, source = received.wait()
    assert source == 2
    np.testing.assert_array_equal(gang.get(got), [2, 12])


@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3), (257, 3)])
def test_every_shape_and_dtype_is_sent(gang: Any, shape: tuple[int, ...]) -> None:
    for dtype in ("bool", "int16", "float64", "complex128"):
        value = np.ones(shape, dtype)
        sent = gang[0].isend(gang[0].put(value), dst_rank_in_group=1)
        got, _ = gang[1].recv(expected=(dtype, shape))
        assert (got.dtype, got.shape) == (dtype, shape)
        np.testing.assert_array_equal(gang.get(got), value)
        sent.wait()


def test_what_is_expected_as_a_ref_is_received_in_place(gang: Any, refs: Any) -> None:
    sent = gang[0].isend(refs[0], dst_rank_in_group=1)
    got, _ = gang[1].recv(expected=refs[1])
    assert got == refs[1]
    np.testing.assert_array_equal(gang.get(refs[1]), [0, 10])
    sent.wait()


def test_tags_tell_messages_apart_and_equal_ones_come_in_their_order(gang: Any) -> None:
    begun = [
        gang[0].isend_object(value, dst_rank_in_group=2, tag=tag)
        for value, tag in (("a", 1), ("b", 2), ("c", 1), ("d", 2**32 - 1))
    ]
    assert gang[2].recv_object(tag=2**32 - 1) == ("d", 0)
    assert gang[2].recv_object(tag=1) == ("a", 0)
    assert gang[2].recv_object(tag=2, src_rank_in_group=0) == ("b", 0)
    assert gang[2].recv_object(tag=1) == ("c", 0)
    assert [it.wait() for it in begun] == [None] * 4


def test_values_are_sent(gang: Any, refs: Any) -> None:
    value = {"k": [1, 2**90, None, (b"x", refs[3])]}
    received = gang[1].irecv_object()
    gang[3].send_object(value, dst_rank_in_group=1)
    assert received.wait() == (value, 3)
    received = gang[1].irecv_object(src_rank_in_group=3)
    gang[3].send_object(None, dst_rank_in_group=1)
    assert received.wait() == (None, 3)


def test_maps_of_tensors_are_sent(gang: Any, refs: Any) -> None:
    sent = gang[0].isend_tensor_dict({"t": refs[0], "in": {"n": 1}}, dst_rank_in_group=3)
    got, source = gang[3].recv_tensor_dict()
    assert (source, got["in"], got["t"].rank) == (0, {"n": 1}, 3)
    np.testing.assert_array_equal(gang.get(got["t"]), [0, 10])
    sent.wait()
    received = gang[3].irecv_tensor_dict(src_rank_in_group=0)
    gang[0].send_tensor_dict({}, dst_rank_in_group=3)
    assert received.wait() == ({}, 0)


def test_ranks_are_counted_in_the_group(gang: Any, refs: Any) -> None:
    group = gang.new_group(f"odd-{uuid.uuid4().hex}", [3, 0, 2])
    try:
        sent = gang[2].isend(refs[2], dst_rank_in_group=0, group=group)
        got, source = gang[3].recv(group=group.name)
        assert (got.rank, source) == (3, 2)
        sent.wait()
    finally:
        gang.destroy_group(group)


def test_the_second_wait_gives_the_same(gang: Any) -> None:
    received = gang[1].irecv_object(tag=5)
    assert received.is_complete() is False
    sent = gang[0].isend_object([1], dst_rank_in_group=1, tag=5)
    first = received.wait()
    assert first == ([1], 0)
    assert received.wait() is first
    assert received.is_complete() is True
    until(sent.is_complete)
    assert [sent.wait(), sent.wait()] == [None, None]
    assert received.cancel() is sent.cancel() is False


def test_the_second_wait_fails_as_the_first_did(gang: Any, refs: Any) -> None:
    received = gang[1].irecv(tag=6, expected=("int8", 2))
    sent = gang[0].isend(refs[0], dst_rank_in_group=1, tag=6)
    for work in (sent, received):
        errors = []
        for _ in range(2):
            with pytest.raises(rankbridge.MismatchError) as caught:
                work.wait()
            errors.append(caught.value)
        assert errors[0] is errors[1]
        assert not errors[0].indefinite
        assert work.is_complete() is True


def test_waiting_may_end_before_the_work_and_leaves_it_as_it_is(gang: Any) -> None:
    received = gang[1].irecv_object(tag=7)
    with pytest.raises(rankbridge.DeadlineExceededError):
        received.wait(timeout=0.05)
    assert received.is_complete() is False
    sent = gang[0].isend_object("late", dst_rank_in_group=1, tag=7)
    assert received.wait() == ("late", 0)
    sent.wait()


def test_work_that_nobody_met_is_cancelled(gang: Any) -> None:
    received = gang[1].irecv_object(tag=8)
    assert received.cancel() is True
    for _ in range(2):
        with pytest.raises(rankbridge.CallCancelledError) as caught:
            received.wait()
        assert not caught.value.indefinite
    assert received.cancel() is False
    received = gang[1].irecv_object(tag=8)
    gang[0].send_object("next", dst_rank_in_group=1, tag=8)
    assert received.wait() == ("next", 0)


def test_a_kind_is_received_by_its_own_kind(gang: Any, refs: Any) -> None:
    sent = gang[0].isend(refs[0], dst_rank_in_group=1, tag=9)
    for fail in (lambda: gang[1].recv_object(tag=9), sent.wait):
        with pytest.raises(rankbridge.MismatchError) as caught:
            fail()
        assert not caught.value.indefinite
    gang.barrier()


@pytest.mark.sampled
def test_who_does_not_come_is_named_after_the_timeout_and_nothing_is_lost(gang: Any, refs: Any) -> None:
    with pytest.raises(rankbridge.PeerMissingError) as caught:
        gang[0].send(refs[0], dst_rank_in_group=2, timeout=1.0)
    assert [(detail.rank, detail.state) for detail in caught.value.ranks] == [(0, "arrived"), (2, "missing")]
    assert not caught.value.indefinite
    with pytest.raises(rankbridge.PeerMissingError):
        gang[2].recv(src_rank_in_group=0, timeout=1.0)
    sent = gang[0].isend(refs[0], dst_rank_in_group=2)
    np.testing.assert_array_equal(gang.get(gang[2].recv()[0]), [0, 10])
    sent.wait()


def test_what_cannot_be_is_refused_when_it_is_begun(gang: Any, refs: Any) -> None:
    for begin in (gang[1].send, gang[1].isend):
        with pytest.raises(rankbridge.InvalidArgumentError):
            begin(refs[1], dst_rank_in_group=1)
        with pytest.raises(rankbridge.RankOutOfRangeError):
            begin(refs[1], dst_rank_in_group=4)
    with pytest.raises(rankbridge.UnknownRefError):
        gang[1].isend(refs[0], dst_rank_in_group=2)


def test_collectives_neither_wait_for_it_nor_hold_it_up(gang: Any, refs: Any) -> None:
    received = gang[1].irecv(tag=10)
    gang.barrier()
    barrier = gang[0].start("barrier", operation_id=(operation_id := uuid.uuid4().hex))
    gang[0].send(refs[0], dst_rank_in_group=1, tag=10)
    assert received.wait()[1] == 0
    begun = [rank.start("barrier", operation_id=operation_id) for rank in list(gang)[1:]]
    assert [it.result() for it in (barrier, *begun)] == [None] * 4


def test_everybody_sends_to_everybody_at_once(gang: Any) -> None:
    sent = [
        rank.isend_object([rank.rank, other], dst_rank_in_group=other)
        for rank in gang
        for other in range(4)
        if other != rank.rank
    ]
    received = [
        (rank.rank, other, rank.irecv_object(src_rank_in_group=other))
        for rank in gang
        for other in range(4)
        if other != rank.rank
    ]
    assert all(work.wait() == ([other, rank], other) for rank, other, work in received)
    assert [work.wait() for work in sent] == [None] * 12
