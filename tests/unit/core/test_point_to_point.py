"""Sends and receives between ranks of one process, on the fake backend."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.support.local_gang import LocalGang, a_call
from tests.support.waiting import until

from rankbridge_server.core import task as task_module
from rankbridge_server.core.activity import Doing
from rankbridge_server.core.admission import inquiries
from rankbridge_server.core.coordinator import ReduceOp
from rankbridge_server.core.dtype import Dtype
from rankbridge_server.core.errors import BridgeError, ErrorCode, Failure, RankState
from rankbridge_server.core.groups.group import WORLD
from rankbridge_server.core.groups.operations import DestroyGroup, NewGroup, destroy_group, new_group
from rankbridge_server.core.limits import Limits
from rankbridge_server.core.operations.agreements import Barrier, barrier
from rankbridge_server.core.operations.operation import Operation
from rankbridge_server.core.operations.outcome import Packed, Received, TensorDict
from rankbridge_server.core.operations.point_to_point import (
    Recv,
    RecvObject,
    RecvTensorDict,
    Send,
    SendObject,
    SendTensorDict,
    recv,
    recv_object,
    recv_tensor_dict,
    send,
    send_object,
    send_tensor_dict,
)
from rankbridge_server.core.operations.tensor_dicts import GivenDict
from rankbridge_server.core.operations.values import AllReduceValue, all_reduce_value
from rankbridge_server.core.refs.refs import Ref
from rankbridge_server.core.refs.tensors import TensorSpec
from rankbridge_server.core.task import Task
from rankbridge_server.links.sockets import SocketLinkMaker

PATIENCE_S = 30.0
SHORT_S = 0.15
FLOATS = TensorSpec(Dtype.FLOAT32, (2,), "cpu")


@pytest.fixture(params=["local", "sockets"])
def gang(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[LocalGang]:
    if request.param == "local":
        it = LocalGang(3)
    else:
        it = LocalGang(3, links=lambda rank: SocketLinkMaker(f"unix:{tmp_path}/links-{rank}"))
    yield it
    for rank in it.ranks:
        rank.close("the test is over")


def begin(gang: LocalGang, rank: int, operation: Operation[Any], args: Any, **call: Any) -> Task:
    call.setdefault("timeout", PATIENCE_S)
    return gang.ranks[rank].submit(operation, args, a_call(**call))


def failure(task: Task) -> Failure:
    with pytest.raises(BridgeError) as raised:
        task.wait()
    return raised.value.failure


def received(task: Task) -> tuple[Any, int]:
    outcome = task.wait()
    assert isinstance(outcome, Received)
    return outcome.outcome, outcome.src_rank_in_group


def test_a_tensor_goes_from_one_rank_to_another(gang: LocalGang) -> None:
    ref = gang.arange_on(0, 5, (2,))
    sending = begin(gang, 0, send, Send(ref.id, 2))
    came, source = received(begin(gang, 2, recv, Recv(0)))
    assert sending.wait() is None
    assert (gang.floats(came), source, came.rank, came.spec) == ([5, 6], 0, 2, FLOATS)
    assert gang.floats(ref) == [5, 6]


def test_what_is_received_into_a_ref_takes_its_place(gang: LocalGang) -> None:
    into = gang.full_on(1, 0)
    begin(gang, 0, send, Send(gang.full_on(0, 7).id, 1))
    assert received(begin(gang, 1, recv, Recv(0, ref_id=into.id))) == (into, 0)
    assert gang.floats(into) == [7, 7]
    assert [usage.refs for usage in gang.ranks[1].refs.usage()] == [1]


def test_tags_and_sources_tell_messages_apart(gang: LocalGang) -> None:
    for source, tag, value in [(0, 1, 10), (2, 1, 20), (0, 2, 30)]:
        begin(gang, source, send_object, SendObject(Packed(b"%d" % value), 1, tag))
    assert received(begin(gang, 1, recv_object, RecvObject(0, 2))) == (Packed(b"30"), 0)
    assert received(begin(gang, 1, recv_object, RecvObject(2, 1))) == (Packed(b"20"), 2)
    assert received(begin(gang, 1, recv_object, RecvObject(0, 1))) == (Packed(b"10"), 0)


def test_messages_of_one_tag_keep_their_order(gang: LocalGang) -> None:
    for number in range(20):
        begin(gang, 0, send_object, SendObject(Packed(b"%d" % number), 1))
    tasks = [begin(gang, 1, recv_object, RecvObject(0)) for _ in range(20)]
    assert [received(task) for task in tasks] == [(Packed(b"%d" % number), 0) for number in range(20)]


def test_a_receive_from_any_takes_who_comes(gang: LocalGang) -> None:
    tasks = [begin(gang, 1, recv_object, RecvObject(None)) for _ in range(2)]
    for source in (0, 2):
        begin(gang, source, send_object, SendObject(Packed(b"%d" % source), 1))
    assert sorted(source for _, source in map(received, tasks)) == [0, 2]


def test_a_tensor_dict_keeps_its_skeleton_and_gets_tensors_of_its_own(gang: LocalGang) -> None:
    refs = [gang.arange_on(0, 1, (2, 1)), gang.arange_on(0, 5, (0,)), gang.full_on(0, 9, ())]
    given = GivenDict(b"skeleton", tuple(ref.id for ref in refs))
    begin(gang, 0, send_tensor_dict, SendTensorDict(given, 1))
    outcome, source = received(begin(gang, 1, recv_tensor_dict, RecvTensorDict(None)))
    assert isinstance(outcome, TensorDict)
    assert (outcome.skeleton, source) == (b"skeleton", 0)
    assert [(ref.spec.shape, gang.floats(ref)) for ref in outcome.refs] == [
        ((2, 1), [1, 2]),
        ((0,), []),
        ((), [9]),
    ]


def test_both_may_send_first_if_they_do_not_wait(gang: LocalGang) -> None:
    tasks = [
        begin(gang, rank, send_object, SendObject(Packed(b"%d" % rank), (rank + 1) % 3)) for rank in range(3)
    ]
    came = [received(begin(gang, rank, recv_object, RecvObject((rank - 1) % 3))) for rank in range(3)]
    assert came == [(Packed(b"%d" % source), source) for source in (2, 0, 1)]
    assert [task.wait() for task in tasks] == [None] * 3


def test_a_send_waits_without_holding_up_the_group(gang: LocalGang) -> None:
    sending = begin(gang, 0, send_object, SendObject(Packed(b"x"), 1))
    assert gang.run(barrier, [Barrier()] * 3) == [None] * 3
    assert not sending.done
    received(begin(gang, 1, recv_object, RecvObject(0)))
    assert sending.wait() is None


@pytest.mark.parametrize("any_source", [False, True])
def test_a_receive_that_nobody_sends_for_says_who_is_missing(
    gang: LocalGang, any_source: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # On a busy machine rank 2 takes longer than that to say that it is idle.
    monkeypatch.setattr(inquiries, "ANSWER_S", PATIENCE_S)
    monkeypatch.setattr(task_module, "VERDICT_GRACE", PATIENCE_S)
    it = failure(begin(gang, 1, recv, Recv(None if any_source else 2, tag=4), timeout=SHORT_S))
    assert (it.code, it.indefinite) == (ErrorCode.PEER_MISSING, False)
    assert "tag=4" in it.expected
    others = [0, 2] if any_source else [2]
    assert [detail.rank for detail in it.ranks] == sorted([1, *others])
    assert [detail.rank for detail in it.ranks if detail.state is RankState.MISSING] == others
    assert {detail.activity.doing for detail in it.ranks if detail.activity} == {Doing.IDLE}
    assert gang.run(barrier, [Barrier()] * 3) == [None] * 3


def test_a_send_that_timed_out_is_not_received_later(gang: LocalGang) -> None:
    assert failure(begin(gang, 0, send_object, SendObject(Packed(b"old"), 1), timeout=SHORT_S)).code is (
        ErrorCode.PEER_MISSING
    )
    receive = begin(gang, 1, recv_object, RecvObject(0))
    begin(gang, 0, send_object, SendObject(Packed(b"new"), 1))
    assert received(receive) == (Packed(b"new"), 0)


@pytest.mark.parametrize(
    ("operation", "args"),
    [
        (recv, Recv(0, tensor=TensorSpec(Dtype.FLOAT32, (3,), "cpu"))),
        (recv, Recv(0, tensor=TensorSpec(Dtype.INT32, (2,), "cpu"))),
        (recv_object, RecvObject(0)),
        (recv_tensor_dict, RecvTensorDict(None)),
    ],
)
def test_both_are_told_when_another_thing_comes_than_was_expected(
    gang: LocalGang, operation: Operation[Any], args: Any
) -> None:
    sending = begin(gang, 0, send, Send(gang.full_on(0, 1).id, 1))
    receive = begin(gang, 1, operation, args)
    here, there = failure(sending), failure(receive)
    assert (here.code, there.code) == (ErrorCode.MISMATCH, ErrorCode.MISMATCH)
    assert not here.indefinite
    assert not there.indefinite
    assert "receive of" in here.got
    assert "send of tensor float32[2]" in there.got
    assert [(detail.rank, detail.state) for detail in here.ranks] == [
        (0, RankState.ARRIVED),
        (1, RankState.DISAGREES),
    ]
    # Its room is given back after it was answered.
    until(lambda: [usage.refs for usage in gang.ranks[1].refs.usage()] == [0])


@pytest.mark.parametrize(
    ("operation", "args", "code"),
    [
        (send_object, SendObject(Packed(b""), 0), ErrorCode.INVALID_ARGUMENT),
        (send_object, SendObject(Packed(b""), 3), ErrorCode.RANK_OUT_OF_RANGE),
        (send_object, SendObject(Packed(b""), 1, -1), ErrorCode.INVALID_ARGUMENT),
        (send, Send("no such ref", 1), ErrorCode.UNKNOWN_REF),
        (send, Send("", 1), ErrorCode.INVALID_ARGUMENT),
        (recv_object, RecvObject(0), ErrorCode.INVALID_ARGUMENT),
        (recv_object, RecvObject(7), ErrorCode.RANK_OUT_OF_RANGE),
        (recv, Recv(1, ref_id="no such ref"), ErrorCode.UNKNOWN_REF),
        (send_tensor_dict, SendTensorDict(GivenDict(b"", ("no such ref",)), 1), ErrorCode.UNKNOWN_REF),
        (send_tensor_dict, SendTensorDict(GivenDict(b"x" * 2**21, ()), 1), ErrorCode.RESOURCE_EXHAUSTED),
    ],
)
def test_what_cannot_be_is_refused_at_once(
    gang: LocalGang, operation: Operation[Any], args: Any, code: ErrorCode
) -> None:
    with pytest.raises(BridgeError) as raised:
        begin(gang, 0, operation, args)
    assert raised.value.failure.code is code


def test_a_withdrawn_send_is_gone(gang: LocalGang) -> None:
    sending = begin(gang, 0, send_object, SendObject(Packed(b"old"), 1))
    sending.cancel("the test says so")
    assert sending.cancelled()
    assert failure(sending).code is ErrorCode.CANCELLED
    begin(gang, 0, send_object, SendObject(Packed(b"new"), 1))
    assert received(begin(gang, 1, recv_object, RecvObject(0))) == (Packed(b"new"), 0)


def test_a_repeated_id_sends_once(gang: LocalGang) -> None:
    args = SendObject(Packed(b"once"), 1)
    assert begin(gang, 0, send_object, args, operation_id="a") is begin(
        gang, 0, send_object, args, operation_id="a"
    )
    assert received(begin(gang, 1, recv_object, RecvObject(0))) == (Packed(b"once"), 0)
    assert failure(begin(gang, 1, recv_object, RecvObject(0), timeout=SHORT_S)).code is ErrorCode.PEER_MISSING


def test_what_there_is_no_room_for_is_dropped_and_told() -> None:
    small = LocalGang(2, Limits(max_bytes=16))
    ref = small.full_on(0, 1, (3,))
    small.full_on(1, 1, (2,))
    sending = begin(small, 0, send, Send(ref.id, 1))
    it = failure(begin(small, 1, recv, Recv(0)))
    assert (it.code, it.indefinite) == (ErrorCode.RESOURCE_EXHAUSTED, True)
    assert sending.wait() is None
    assert small.run(barrier, [Barrier()] * 2) == [None] * 2
    with pytest.raises(BridgeError) as raised:
        begin(small, 1, recv, Recv(0, tensor=ref.spec))
    assert not raised.value.failure.indefinite


def test_pending_ones_fail_with_their_generation_and_give_their_room_back(gang: LocalGang) -> None:
    tasks = [
        begin(gang, 1, recv, Recv(0, tensor=FLOATS)),
        begin(gang, 0, send_object, SendObject(Packed(b""), 2)),
    ]
    gang.ranks[2].abort(1, "the test says so")
    for task in tasks:
        it = failure(task)
        assert (it.code, it.indefinite) == (ErrorCode.ABORTED, True)
    until(lambda: [usage.refs for usage in gang.ranks[1].refs.usage()] == [0])


def test_pending_ones_fail_with_their_group(gang: LocalGang) -> None:
    gang.run(new_group, [NewGroup("pair", (1, 2))] * 3)
    receive = begin(gang, 2, recv_object, RecvObject(0), group="pair")
    gang.run(destroy_group, [None, DestroyGroup(), DestroyGroup()], group="pair")
    it = failure(receive)
    assert (it.code, it.place and it.place.group) == (ErrorCode.ABORTED, "pair")
    assert gang.run(barrier, [Barrier()] * 3, group=WORLD) == [None] * 3


def test_collectives_and_messages_of_one_group_pass_each_other(gang: LocalGang) -> None:
    """Every rank's messages and all collectives come from threads of their own, as fast as they can."""
    rounds = 50

    def messages(rank: int) -> list[Any]:
        got = []
        for number in range(rounds):
            sending = begin(gang, rank, send_object, SendObject(Packed(b"%d" % number), (rank + 1) % 3))
            got.append(received(begin(gang, rank, recv_object, RecvObject((rank - 1) % 3)))[0])
            sending.wait()
        return got

    with ThreadPoolExecutor(3) as pool:
        futures = [pool.submit(messages, rank) for rank in range(3)]
        for number in range(rounds):
            args = [AllReduceValue(number + rank, ReduceOp.SUM) for rank in range(3)]
            assert gang.run(all_reduce_value, args) == [3 * number + 3] * 3
        for future in futures:
            assert future.result(PATIENCE_S) == [Packed(b"%d" % number) for number in range(rounds)]


def test_a_tensor_is_sent_as_it_is_when_its_receiver_comes(gang: LocalGang) -> None:
    ref = gang.full_on(0, 1)
    begin(gang, 0, send, Send(ref.id, 1))
    gang.ranks[0].refs.find("", ref.id).tensor = gang.ranks[0].refs.find("", gang.full_on(0, 8).id).tensor
    came, _ = received(begin(gang, 1, recv, Recv(0)))
    assert isinstance(came, Ref)
    assert gang.floats(came) == [8, 8]
