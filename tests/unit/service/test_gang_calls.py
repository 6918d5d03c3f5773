"""Gang calls as any sidecar answers them: fake backend, local links and real ones, no gRPC."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.support.local_gang import LocalGang, a_call
from tests.support.tasks import error_of
from tests.support.waiting import until
from tests.unit.service.stages import Held

from rankbridge.v1 import (
    call_pb2,
    collective_service_pb2 as collectives,
    error_pb2,
    gang_service_pb2 as pb,
    object_service_pb2 as objects,
    operation_service_pb2 as operations,
    point_to_point_service_pb2 as point_to_point,
    value_pb2,
)
from rankbridge_server.core.errors import BridgeError, ErrorCode
from rankbridge_server.core.gang_calls.messages import MAX_PART, MAX_RESULT
from rankbridge_server.core.groups.operations import NewGroup, new_group
from rankbridge_server.core.links import LinkMaker
from rankbridge_server.core.operations.agreements import Barrier, barrier
from rankbridge_server.core.rank import Rank
from rankbridge_server.core.refs.refs import Ref
from rankbridge_server.core.task import Task
from rankbridge_server.links.sockets import SocketLinkMaker
from rankbridge_server.service.gang_calls import PendingGangCall, WireParts

SIZE = 3
BARRIER_PART = operations.Operation(barrier=collectives.BarrierRequest())


@pytest.fixture(params=["local", "sockets"])
def gang(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[LocalGang]:
    links: Callable[[int], LinkMaker] | None = None
    if request.param == "sockets":
        links = lambda rank: SocketLinkMaker(f"unix:{tmp_path}/links-{rank}")  # noqa: E731
    it = LocalGang(SIZE, links=links)
    for rank in it.ranks:
        rank.gang_calls.parts = WireParts(rank)
    yield it
    for rank in it.ranks:
        rank.close("the test is over")


class Caller:
    """A gang call that is under way. `hang_up` is what its end does when the caller has gone."""

    def __init__(self, gang: LocalGang, at: int, parts: Sequence[operations.Operation], **call: Any) -> None:
        self._pending: Future[PendingGangCall] = Future()
        self._threads = ThreadPoolExecutor(1)
        request = pb.CallRequest(call=call_pb2.Call(**{"timeout_ms": 60_000, **call}), operations=parts)
        self.response: Future[pb.CallResponse] = self._threads.submit(self._ask, gang.ranks[at], request)
        self._threads.shutdown(wait=False)

    def _ask(self, rank: Rank, request: pb.CallRequest) -> pb.CallResponse:
        pending = PendingGangCall(rank, request)
        self._pending.set_result(pending)
        return pending.response(pb.CallResponse)

    def await_begun(self) -> None:
        self._pending.result(60)

    def hang_up(self) -> None:
        self._pending.result(60).withdraw()

    def outcomes(self) -> list[pb.MemberOutcome]:
        response = self.response.result(60)
        assert response.WhichOneof("outcome") == "outcomes", response.error
        return list(response.outcomes.members)

    def values(self) -> list[value_pb2.Value]:
        outcomes = self.outcomes()
        assert [it.result.WhichOneof("outcome") for it in outcomes] == ["value"] * len(outcomes), outcomes
        return [it.result.value for it in outcomes]

    def errors(self) -> list[tuple[str, bool]]:
        """Code and whether it is indefinite, of every member."""
        outcomes = self.outcomes()
        assert [it.result.WhichOneof("outcome") for it in outcomes] == ["error"] * len(outcomes), outcomes
        return [(name_of(it.result.error), it.result.error.indefinite) for it in outcomes]


def name_of(error: error_pb2.Error) -> str:
    return error_pb2.ErrorCode.Name(error.code).removeprefix("ERROR_CODE_")


def refused(gang: LocalGang, at: int, parts: Sequence[operations.Operation], **call: Any) -> error_pb2.Error:
    response = Caller(gang, at, parts, **call).response.result(60)
    assert response.WhichOneof("outcome") == "error"
    assert not response.error.indefinite
    return response.error


def reducing(refs: Sequence[Ref | str]) -> list[operations.Operation]:
    ids = [ref.id if isinstance(ref, Ref) else ref for ref in refs]
    return [operations.Operation(all_reduce=collectives.AllReduceRequest(ref_id=it)) for it in ids]


def floats(gang: LocalGang, value: value_pb2.Value) -> list[float]:
    rank = gang.ranks[value.ref.rank]
    return list(rank.backend.tensors.read(rank.refs.find("", value.ref.id).tensor).cast("f"))


def sequences(gang: LocalGang, group: str = "world") -> list[int]:
    return [rank.group(group).sequence for rank in gang.ranks]


def is_healthy(gang: LocalGang) -> bool:
    return gang.run(barrier, [Barrier()] * SIZE) == [None] * SIZE


@pytest.mark.parametrize("at", range(SIZE))
def test_any_rank_answers_with_every_members_outcome(gang: LocalGang, at: int) -> None:
    refs = [gang.full_on(rank, float(rank)) for rank in range(SIZE)]
    called = Caller(gang, at, reducing(refs), operation_id="sum")
    assert [it.rank for it in called.outcomes()] == [0, 1, 2]
    assert called.response.result().outcomes.operation_id == "sum"
    values = called.values()
    assert [value.ref.rank for value in values] == [0, 1, 2]
    assert [floats(gang, value) for value in values] == [[3.0, 3.0]] * SIZE


def test_one_part_is_every_members_and_a_call_without_an_id_is_given_one(gang: LocalGang) -> None:
    called = Caller(gang, 0, [BARRIER_PART])
    assert [value.WhichOneof("kind") for value in called.values()] == ["none"] * SIZE
    operation_id = called.response.result().outcomes.operation_id
    assert operation_id
    assert [rank.find(operation_id).done for rank in gang.ranks] == [True] * SIZE


def test_a_ping_is_admitted_and_runs_nothing(gang: LocalGang) -> None:
    ping = operations.Operation(ping=operations.PingRequest())
    assert [value.WhichOneof("kind") for value in Caller(gang, 0, [ping]).values()] == ["none"] * SIZE
    # The leader answers when all have agreed; the others are told then, too.
    until(lambda: sequences(gang) == [1] * SIZE)


@pytest.mark.parametrize("at", range(SIZE))
def test_a_group_is_called_by_way_of_any_rank_also_one_that_is_no_member(gang: LocalGang, at: int) -> None:
    gang.run(new_group, [NewGroup("pair", (2, 1))] * SIZE)
    called = Caller(gang, at, [BARRIER_PART], group="pair")
    assert [it.rank for it in called.outcomes()] == [2, 1]
    assert called.values()
    assert sequences(gang, "pair") == [0, 1, 1]


@pytest.mark.parametrize("refusing", range(SIZE))
def test_what_one_member_refuses_is_told_to_all_at_once(gang: LocalGang, refusing: int) -> None:
    refs: list[Ref | str] = list(gang.full(1.0))
    refs[refusing] = "unheard-of"
    called = Caller(gang, 1, reducing(refs), operation_id="refused")
    assert called.errors() == [("UNKNOWN_REF", False)] * SIZE
    for rank, outcome in enumerate(called.outcomes()):
        error = outcome.result.error
        assert (error.rank, error.operation, error.operation_id) == (rank, "all_reduce", "refused")
        assert "unheard-of" in error.message
        assert [detail.rank for detail in error.ranks] == ([] if rank == refusing else [refusing])
    assert is_healthy(gang)
    # The others have an outcome under that id; the one that refused has none, and gets theirs.
    again = Caller(gang, 0, reducing(gang.full(1.0)), operation_id="another")
    assert [value.WhichOneof("kind") for value in again.values()] == ["ref"] * SIZE


class OlderParts(WireParts):
    """A rank whose proto has no barrier: the part is of a field that it does not know."""

    def begin(self, part: bytes, first: bool) -> Task:
        request = operations.Operation.FromString(part).barrier.SerializeToString()
        assert len(request) < 128
        return super().begin(b"\xc2\x3e" + bytes([len(request)]) + request, first)


@pytest.mark.parametrize("older", range(SIZE))
def test_a_kind_that_one_member_does_not_know_is_refused_and_the_member_stays(
    gang: LocalGang, older: int
) -> None:
    rank = gang.ranks[older]
    rank.gang_calls.parts = OlderParts(rank)
    refusal = Caller(gang, 0, [BARRIER_PART], operation_id="new")
    assert refusal.errors() == [("UNSUPPORTED_OPERATION", False)] * SIZE
    rank.gang_calls.parts = WireParts(rank)
    assert is_healthy(gang)


def test_members_whose_tensors_differ_mismatch(gang: LocalGang) -> None:
    refs = [gang.full_on(rank, 1.0, (rank + 1,)) for rank in range(SIZE)]
    assert Caller(gang, 0, reducing(refs)).errors() == [("MISMATCH", False)] * SIZE
    assert is_healthy(gang)


def test_gang_calls_and_calls_of_ranks_are_one_sequence(gang: LocalGang) -> None:
    for _ in range(5):
        assert Caller(gang, 2, [BARRIER_PART]).values()
        assert is_healthy(gang)
    assert sequences(gang) == [10] * SIZE


def test_controllers_at_once_are_in_one_sequence(gang: LocalGang) -> None:
    refs = gang.full(1.0)
    calls = [Caller(gang, number % SIZE, reducing(refs)) for number in range(40)]
    for it in calls:
        assert [floats(gang, value) for value in it.values()] == [[3.0, 3.0]] * SIZE
    assert sequences(gang) == [40] * SIZE


def test_a_call_of_one_rank_in_the_way_is_a_mismatch_that_all_are_told(gang: LocalGang) -> None:
    alone = gang.ranks[1].submit(barrier, Barrier(), a_call(operation_id="alone", timeout=60))
    assert Caller(gang, 0, [BARRIER_PART], operation_id="all").errors() == [("MISMATCH", False)] * SIZE
    error = error_of(alone, 60)
    assert isinstance(error, BridgeError)
    assert error.failure.code is ErrorCode.MISMATCH
    assert is_healthy(gang)


def test_a_repeated_call_has_the_first_ones_outcome(gang: LocalGang) -> None:
    parts = reducing(gang.full(1.0))
    first = Caller(gang, 0, parts, operation_id="once").values()
    assert Caller(gang, 1, parts, operation_id="once", timeout_ms=20_000).values() == first
    assert sequences(gang) == [1] * SIZE
    other = Caller(gang, 0, [BARRIER_PART], operation_id="once")
    assert other.errors() == [("INVALID_ARGUMENT", False)] * SIZE
    assert is_healthy(gang)


def test_a_call_that_is_repeated_while_it_is_under_way_runs_once(gang: LocalGang) -> None:
    held = Held(gang, 1)
    parts = reducing(gang.full(1.0))
    first = Caller(gang, 0, parts, operation_id="once")
    first.await_begun()
    second = Caller(gang, 2, parts, operation_id="once", timeout_ms=50_000)
    another = Caller(gang, 0, [BARRIER_PART], operation_id="once")
    response = another.response.result(60)
    assert name_of(response.error) == "INVALID_ARGUMENT"
    held.let_go()
    assert first.values() == second.values()
    assert sequences(gang) == [1] * SIZE


@pytest.mark.parametrize("at", [0, 1])
def test_a_caller_that_hangs_up_before_the_leaders_turn_has_asked_nobody(gang: LocalGang, at: int) -> None:
    held = Held(gang, 0)
    called = Caller(gang, at, [BARRIER_PART], operation_id="left")
    called.hang_up()
    assert called.errors() == [("CANCELLED", False)] * SIZE
    held.let_go()
    assert is_healthy(gang)
    for rank in gang.ranks:
        with pytest.raises(BridgeError, match="no operation"):
            rank.find("left")


@pytest.mark.parametrize("at", [0, 1])
@pytest.mark.parametrize("late", range(1, SIZE))
def test_a_caller_that_hangs_up_withdraws_every_part(gang: LocalGang, at: int, late: int) -> None:
    held = Held(gang, late)
    called = Caller(gang, at, [BARRIER_PART], operation_id="left")
    others = [rank for place, rank in enumerate(gang.ranks) if place != late]
    until(lambda: all(rank.describe().pending for rank in others))
    called.hang_up()
    until(lambda: not any(rank.describe().pending for rank in others))
    held.let_go()
    assert called.errors() == [("CANCELLED", False)] * SIZE
    assert is_healthy(gang)


def test_a_caller_that_hangs_up_after_the_end_changes_nothing(gang: LocalGang) -> None:
    called = Caller(gang, 0, [BARRIER_PART], operation_id="done")
    assert called.values()
    called.hang_up()
    assert gang.ranks[1].find("done").outcome() is None
    assert is_healthy(gang)


def test_a_call_whose_time_is_over_before_the_leaders_turn_has_asked_nobody(gang: LocalGang) -> None:
    held = Held(gang, 0)
    errors = Caller(gang, 1, [BARRIER_PART], operation_id="late", timeout_ms=200).errors()
    assert errors == [("DEADLINE_EXCEEDED", False)] * SIZE
    held.let_go()
    assert is_healthy(gang)
    assert sequences(gang) == [1] * SIZE


@pytest.mark.parametrize("late", range(1, SIZE))
def test_a_call_is_answered_when_its_time_is_over_whoever_does_not_come(gang: LocalGang, late: int) -> None:
    held = Held(gang, late)
    # Enough for the leader to begin with it: nobody would be asked otherwise.
    errors = Caller(gang, 0, [BARRIER_PART], operation_id="late", timeout_ms=600).errors()
    assert [code for place, (code, _) in enumerate(errors) if place != late] == ["PEER_MISSING"] * (SIZE - 1)
    assert errors[late] == ("DEADLINE_EXCEEDED", False)
    held.let_go()
    until(lambda: not gang.ranks[late].describe().pending)
    assert is_healthy(gang)


@pytest.mark.parametrize("at", [0, 1])
def test_the_end_of_the_generation_ends_a_call_at_once(gang: LocalGang, at: int) -> None:
    held = Held(gang, 2)
    called = Caller(gang, at, [BARRIER_PART])
    until(lambda: gang.ranks[0].describe().pending == 1)
    gang.ranks[2].close("a test")
    outcomes = called.outcomes()
    assert [name_of(it.result.error) for it in outcomes][:2] == ["ABORTED"] * 2
    assert all("a test" in it.result.error.message for it in outcomes)
    held.let_go()


def test_a_result_that_is_too_large_stays_on_its_rank(gang: LocalGang) -> None:
    large = objects.BroadcastObjectRequest(value=value_pb2.Value(bytes=bytes(MAX_RESULT)))
    parts = [operations.Operation(broadcast_object=large)]
    parts += [operations.Operation(broadcast_object=objects.BroadcastObjectRequest())] * 2
    outcomes = Caller(gang, 0, parts, operation_id="large").outcomes()
    assert [it.HasField("result") for it in outcomes] == [False] * SIZE
    assert [rank.find("large").done for rank in gang.ranks] == [True] * SIZE


def test_a_part_that_is_too_large_is_refused_before_any_member_is_asked(gang: LocalGang) -> None:
    large = objects.BroadcastObjectRequest(value=value_pb2.Value(bytes=bytes(MAX_PART)))
    error = refused(gang, 1, [operations.Operation(broadcast_object=large)], operation_id="large")
    assert name_of(error) == "INVALID_ARGUMENT"
    assert error.expected == f"at most {MAX_PART} bytes"
    for rank in gang.ranks:
        with pytest.raises(BridgeError, match="no operation"):
            rank.find("large")


SENDING = operations.Operation(send=point_to_point.SendRequest())
WITH_A_CALL = operations.Operation(
    barrier=collectives.BarrierRequest(call=call_pb2.Call(group="world", operation_id="own"))
)


@pytest.mark.parametrize(
    ("parts", "call", "code"),
    [
        ([], {}, "INVALID_ARGUMENT"),
        ([BARRIER_PART] * 2, {}, "INVALID_ARGUMENT"),
        ([SENDING], {}, "INVALID_ARGUMENT"),
        ([operations.Operation()], {}, "INVALID_ARGUMENT"),
        ([WITH_A_CALL], {}, "INVALID_ARGUMENT"),
        ([BARRIER_PART, BARRIER_PART, *reducing(["none"])], {}, "INVALID_ARGUMENT"),
        ([BARRIER_PART], {"group": "unheard-of"}, "UNKNOWN_GROUP"),
        ([BARRIER_PART], {"generation": 7}, "STALE_GENERATION"),
        ([BARRIER_PART], {"timeout_ms": 2**32 - 1}, "INVALID_ARGUMENT"),
    ],
)
@pytest.mark.parametrize("at", [0, 2])
def test_what_is_no_gang_call_is_refused_as_a_whole(
    gang: LocalGang, at: int, parts: Sequence[operations.Operation], call: dict[str, Any], code: str
) -> None:
    assert name_of(refused(gang, at, parts, **call)) == code
    assert sequences(gang) == [0] * SIZE
    assert is_healthy(gang)


def test_a_rank_that_is_not_formed_refuses(gang: LocalGang) -> None:
    for rank in gang.ranks:
        rank.close("a test")
    assert name_of(refused(gang, 0, [BARRIER_PART])) == "STALE_GENERATION"


def test_a_new_generation_takes_gang_calls(gang: LocalGang) -> None:
    assert Caller(gang, 1, [BARRIER_PART]).values()
    gang.form()
    assert Caller(gang, 1, [BARRIER_PART]).values()
    assert sequences(gang) == [1] * SIZE
