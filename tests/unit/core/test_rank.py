"""The way of an operation through a rank, on the fake backend."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from tests.support.local_gang import LocalGang, LocalPeer, a_call
from tests.support.tasks import error_of
from tests.support.waiting import until

from rankbridge_server.core import generation as generation_module
from rankbridge_server.core.coordinator import GroupDescription, Joining, ReduceOp
from rankbridge_server.core.dtype import Dtype
from rankbridge_server.core.errors import BridgeError, ErrorCode, Failure, Phase, RankState
from rankbridge_server.core.groups.forming import form
from rankbridge_server.core.groups.group import GroupView
from rankbridge_server.core.groups.operations import DestroyGroup, NewGroup, destroy_group, new_group
from rankbridge_server.core.groups.preparation import RankAddress
from rankbridge_server.core.limits import Limits
from rankbridge_server.core.links import Ended
from rankbridge_server.core.operations.agreements import Barrier, barrier
from rankbridge_server.core.operations.gathers import AllGather, Gather, all_gather, gather
from rankbridge_server.core.operations.moves import Broadcast, broadcast
from rankbridge_server.core.operations.outcome import Outcome
from rankbridge_server.core.operations.reductions import AllReduce, all_reduce
from rankbridge_server.core.rank import State
from rankbridge_server.core.refs.refs import Ref


@pytest.fixture
def gang() -> Iterator[LocalGang]:
    it = LocalGang(3)
    yield it
    for rank in it.ranks:
        rank.close("the test is over")


def ref(outcome: Outcome | Exception) -> Ref:
    assert isinstance(outcome, Ref), outcome
    return outcome


def failure(outcome: Outcome | Exception | None) -> Failure:
    assert isinstance(outcome, BridgeError), outcome
    return outcome.failure


def codes(outcomes: list[Outcome | Exception]) -> list[ErrorCode]:
    return [failure(outcome).code for outcome in outcomes]


def barrier_works(gang: LocalGang) -> None:
    assert gang.run(barrier, [Barrier()] * 3) == [None] * 3


def test_all_reduce_gives_new_refs_and_leaves_the_inputs(gang: LocalGang) -> None:
    inputs = [gang.full_on(rank, rank + 1) for rank in range(3)]
    outcomes = gang.run(all_reduce, [AllReduce(it.id, ReduceOp.SUM, False) for it in inputs])
    assert [gang.floats(ref(it)) for it in outcomes] == [[6.0, 6.0]] * 3
    assert [gang.floats(it) for it in inputs] == [[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]]


def test_all_reduce_in_place_keeps_the_refs(gang: LocalGang) -> None:
    inputs = [gang.full_on(rank, rank + 1) for rank in range(3)]
    outcomes = gang.run(all_reduce, [AllReduce(it.id, ReduceOp.MAX, True) for it in inputs])
    assert outcomes == inputs
    assert [gang.floats(it) for it in inputs] == [[3.0, 3.0]] * 3


def test_gather_gives_none_but_at_the_destination(gang: LocalGang) -> None:
    inputs = [gang.full_on(rank, rank, (1, 2)) for rank in range(3)]
    outcomes = gang.run(gather, [Gather(it.id, 1, 0) for it in inputs])
    assert (outcomes[0], outcomes[2]) == (None, None)
    assert ref(outcomes[1]).spec.shape == (3, 2)
    assert gang.floats(ref(outcomes[1])) == [0, 0, 1, 1, 2, 2]


def test_all_gather_concatenates_along_a_dim_that_counts_from_the_last(gang: LocalGang) -> None:
    inputs = [gang.full_on(rank, rank, (2, 1)) for rank in range(3)]
    outcomes = gang.run(all_gather, [AllGather(it.id, -1) for it in inputs])
    assert [ref(it).spec.shape for it in outcomes] == [(2, 3)] * 3
    assert gang.floats(ref(outcomes[2])) == [0, 1, 2, 0, 1, 2]


def test_broadcast_needs_equal_shapes(gang: LocalGang) -> None:
    inputs = [gang.full_on(rank, 1, (2 + (rank == 2),)) for rank in range(3)]
    outcomes = gang.run(broadcast, [Broadcast(it.id, 0, True) for it in inputs])
    assert codes(outcomes) == [ErrorCode.MISMATCH] * 3
    barrier_works(gang)


def test_a_mismatch_tells_every_rank_both_sides(gang: LocalGang) -> None:
    inputs = gang.full(1)
    ops = [ReduceOp.SUM, ReduceOp.SUM, ReduceOp.MAX]
    args = [AllReduce(it.id, op, True) for it, op in zip(inputs, ops, strict=True)]
    failures = [failure(it) for it in gang.run(all_reduce, args)]
    assert {it.code for it in failures} == {ErrorCode.MISMATCH}
    assert not any(it.indefinite for it in failures)
    assert "op=sum" in failures[0].expected
    assert "op=max" in failures[0].got
    assert "op=max" in failures[2].expected
    states = [detail.state for detail in failures[0].ranks]
    assert states == [RankState.ARRIVED, RankState.ARRIVED, RankState.DISAGREES]
    assert [gang.floats(it) for it in inputs] == [[1.0, 1.0]] * 3
    barrier_works(gang)


def test_a_missing_rank_is_named_and_the_group_stays_healthy(gang: LocalGang) -> None:
    # Enough for rank 2 to come before the time of rank 0 is over.
    failures = [failure(it) for it in gang.missed(barrier, [Barrier(), None, Barrier()], timeout=1.0)]
    assert {it.code for it in failures} == {ErrorCode.PEER_MISSING}
    assert "missing: rank 1" in failures[0].message
    assert failures[0].phase is Phase.ADMISSION
    barrier_works(gang)


def test_a_repeated_operation_id_runs_nothing_and_gets_the_same_outcome(gang: LocalGang) -> None:
    inputs = gang.full(2)
    args = [AllReduce(it.id, ReduceOp.SUM, True) for it in inputs]
    first = gang.run(all_reduce, args, operation_id="once")
    assert gang.run(all_reduce, args, operation_id="once") == first
    assert [gang.floats(it) for it in inputs] == [[6.0, 6.0]] * 3


def test_an_operation_id_of_another_operation_is_refused(gang: LocalGang) -> None:
    gang.run(barrier, [Barrier()] * 3, operation_id="taken")
    inputs = gang.full(1)
    args = [AllReduce(it.id, ReduceOp.SUM, False) for it in inputs]
    assert codes(gang.run(all_reduce, args, operation_id="taken")) == [ErrorCode.INVALID_ARGUMENT] * 3


def test_a_refused_call_leaves_its_operation_id_free(gang: LocalGang) -> None:
    inputs = gang.full(1)
    wrong = [AllReduce("nonsense", ReduceOp.SUM, False)] * 3
    assert codes(gang.run(all_reduce, wrong, operation_id="again")) == [ErrorCode.UNKNOWN_REF] * 3
    right = [AllReduce(it.id, ReduceOp.SUM, False) for it in inputs]
    assert gang.floats(ref(gang.run(all_reduce, right, operation_id="again")[0])) == [3.0, 3.0]


@pytest.mark.parametrize(
    ("call", "code"),
    [
        ({"group": "nowhere"}, ErrorCode.UNKNOWN_GROUP),
        ({"session_id": "nobody"}, ErrorCode.UNKNOWN_SESSION),
        ({"generation": 7}, ErrorCode.STALE_GENERATION),
        ({"operation_id": "x" * 129}, ErrorCode.INVALID_ARGUMENT),
    ],
)
def test_a_call_that_names_what_is_not_there_is_refused(
    gang: LocalGang, call: dict[str, str], code: ErrorCode
) -> None:
    inputs = gang.full(1)
    outcomes = gang.run(all_reduce, [AllReduce(it.id, ReduceOp.SUM, False) for it in inputs], **call)
    assert codes(outcomes) == [code] * 3
    assert all(failure(it).phase is Phase.CHECK and not failure(it).indefinite for it in outcomes)
    barrier_works(gang)


@pytest.mark.parametrize("src", [-1, 3])
def test_a_source_outside_the_group_is_refused(gang: LocalGang, src: int) -> None:
    outcomes = gang.run(broadcast, [Broadcast(it.id, src, False) for it in gang.full(1)])
    assert codes(outcomes) == [ErrorCode.RANK_OUT_OF_RANGE] * 3
    assert failure(outcomes[0]).expected == "0 to 2"


@pytest.mark.parametrize("dst", [-1, 3])
def test_a_destination_outside_the_group_is_refused(gang: LocalGang, dst: int) -> None:
    outcomes = gang.run(gather, [Gather(it.id, dst, 0) for it in gang.full(1)])
    assert codes(outcomes) == [ErrorCode.RANK_OUT_OF_RANGE] * 3


@pytest.mark.parametrize("dim", [-2, 1])
def test_a_dim_that_the_tensor_has_not_is_refused(gang: LocalGang, dim: int) -> None:
    outcomes = gang.run(all_gather, [AllGather(it.id, dim) for it in gang.full(1)])
    assert codes(outcomes) == [ErrorCode.INVALID_ARGUMENT] * 3


def test_a_tensor_without_dimensions_cannot_be_gathered(gang: LocalGang) -> None:
    outcomes = gang.run(all_gather, [AllGather(it.id, -1) for it in gang.full(1, ())])
    assert codes(outcomes) == [ErrorCode.INVALID_ARGUMENT] * 3


def test_an_integer_average_is_refused_before_anything_changes(gang: LocalGang) -> None:
    inputs = gang.full(1, dtype=Dtype.INT32)
    outcomes = gang.run(all_reduce, [AllReduce(it.id, ReduceOp.AVG, True) for it in inputs])
    assert codes(outcomes) == [ErrorCode.UNSUPPORTED_DTYPE] * 3


def test_a_queued_operation_runs_although_its_input_is_released(gang: LocalGang) -> None:
    inputs = gang.full(1)
    args = [AllReduce(it.id, ReduceOp.SUM, False) for it in inputs]
    tasks = [
        rank.submit(all_reduce, mine, a_call()) for rank, mine in zip(gang.ranks[:2], args[:2], strict=True)
    ]
    gang.ranks[0].refs.release("", [inputs[0].id])
    tasks.append(gang.ranks[2].submit(all_reduce, args[2], a_call()))
    assert gang.floats(ref(tasks[0].wait())) == [3.0, 3.0]


def test_a_result_that_does_not_fit_is_refused_at_the_rank_that_lacks_room() -> None:
    gang = LocalGang(2, Limits(max_bytes=24))
    inputs = gang.full(1, (4,))
    outcomes = gang.run(all_gather, [AllGather(it.id, 0) for it in inputs])
    assert codes(outcomes) == [ErrorCode.RESOURCE_EXHAUSTED] * 2
    assert [usage.bytes for usage in gang.ranks[0].refs.usage()] == [16]


def test_pending_operations_are_limited() -> None:
    gang = LocalGang(2, Limits(max_pending=2))
    waiting = [gang.ranks[0].submit(barrier, Barrier(), a_call(timeout=0.2)) for _ in range(2)]
    with pytest.raises(BridgeError) as error:
        gang.ranks[0].submit(barrier, Barrier(), a_call())
    assert error.value.failure.code is ErrorCode.RESOURCE_EXHAUSTED
    for task in waiting:
        with pytest.raises(BridgeError):
            task.wait()
    assert gang.ranks[0].describe().pending == 0


def test_a_call_behind_a_stuck_one_is_withdrawn_at_its_own_timeout(gang: LocalGang) -> None:
    stuck = gang.ranks[0].submit(barrier, Barrier(), a_call(operation_id="stuck"))
    queued = gang.ranks[0].submit(barrier, Barrier(), a_call(operation_id="queued", timeout=0.05))
    with pytest.raises(BridgeError) as error:
        queued.wait()
    assert error.value.failure.code is ErrorCode.DEADLINE_EXCEEDED
    assert not error.value.failure.indefinite
    others = [rank.submit(barrier, Barrier(), a_call(operation_id="stuck")) for rank in gang.ranks[1:]]
    assert [task.wait() for task in (stuck, *others)] == [None] * 3
    barrier_works(gang)


def test_a_new_group_has_its_own_order_and_operations(gang: LocalGang) -> None:
    made = gang.run(new_group, [NewGroup("pair", (2, 0))] * 3)
    assert [it.rank_in_group for it in made if isinstance(it, GroupView)] == [1, None, 0]
    inputs = [gang.full_on(rank, rank, (1,)) for rank in range(3)]
    args = [AllGather(inputs[0].id, 0), None, AllGather(inputs[2].id, 0)]
    outcomes = gang.run(all_gather, args, group="pair")
    assert [gang.floats(ref(it)) for it in outcomes] == [[2.0, 0.0]] * 2
    outsider = gang.run(barrier, [None, Barrier(), None], group="pair")
    assert codes(outsider) == [ErrorCode.INVALID_ARGUMENT]
    gang.run(destroy_group, [DestroyGroup(), None, DestroyGroup()], group="pair")
    gone = gang.run(barrier, [Barrier(), None, None], group="pair")
    assert codes(gone) == [ErrorCode.UNKNOWN_GROUP]


def test_a_group_that_is_ended_twice_at_once_is_unknown_to_the_second(gang: LocalGang) -> None:
    gang.run(new_group, [NewGroup("pair", (2, 0))] * 3)
    calls = [a_call(group="pair", operation_id=name) for name in ("first", "second")]
    rank_0, _, rank_2 = gang.ranks
    first, second = (rank_0.submit(destroy_group, DestroyGroup(), call) for call in calls)
    other = rank_2.submit(destroy_group, DestroyGroup(), calls[0])
    views = [first.wait(), other.wait()]
    assert [it.name for it in views if isinstance(it, GroupView)] == ["pair", "pair"]
    with pytest.raises(BridgeError) as late:
        rank_2.submit(destroy_group, DestroyGroup(), calls[1])
    with pytest.raises(BridgeError) as queued:
        second.wait()
    assert [it.value.failure.code for it in (late, queued)] == [ErrorCode.UNKNOWN_GROUP] * 2
    assert not queued.value.failure.indefinite
    barrier_works(gang)


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (NewGroup("world", (0,)), ErrorCode.GROUP_EXISTS),
        (NewGroup("", (0,)), ErrorCode.INVALID_ARGUMENT),
        (NewGroup("x" * 129, (0,)), ErrorCode.INVALID_ARGUMENT),
        (NewGroup("g", ()), ErrorCode.INVALID_ARGUMENT),
        (NewGroup("g", (0, 0)), ErrorCode.INVALID_ARGUMENT),
        (NewGroup("g", (0, 3)), ErrorCode.RANK_OUT_OF_RANGE),
    ],
)
def test_a_group_that_cannot_be_is_refused(gang: LocalGang, args: NewGroup, code: ErrorCode) -> None:
    assert codes(gang.run(new_group, [args] * 3)) == [code] * 3
    assert [view.name for view in gang.ranks[0].describe().groups] == ["world"]


def test_groups_that_differ_among_ranks_are_a_mismatch_and_exist_nowhere(gang: LocalGang) -> None:
    args = [NewGroup("g", (0, 1)), NewGroup("g", (0, 1)), NewGroup("g", (0, 2))]
    assert codes(gang.run(new_group, args)) == [ErrorCode.MISMATCH] * 3
    assert all(len(rank.describe().groups) == 1 for rank in gang.ranks)
    gang.run(new_group, [NewGroup("g", (0, 1))] * 3)
    assert all(len(rank.describe().groups) == 2 for rank in gang.ranks)


def test_world_cannot_be_destroyed(gang: LocalGang) -> None:
    assert codes(gang.run(destroy_group, [DestroyGroup()] * 3)) == [ErrorCode.INVALID_ARGUMENT] * 3


def test_aborting_a_generation_answers_everyone_at_once_and_refs_live_on(gang: LocalGang) -> None:
    inputs = gang.full(5)
    waiting = gang.ranks[0].submit(barrier, Barrier(), a_call(timeout=60))
    answered = threading.Event()
    waiting.then(lambda _: answered.set())
    assert gang.ranks[1].abort(1, "enough")
    assert answered.wait(5)
    with pytest.raises(BridgeError, match="enough") as error:
        waiting.wait()
    assert error.value.failure.code is ErrorCode.ABORTED
    # Each rank hears of it by its own links.
    until(lambda: all(rank.describe().state is State.OVER for rank in gang.ranks))
    assert codes(gang.run(barrier, [Barrier()] * 3)) == [ErrorCode.STALE_GENERATION] * 3
    assert not gang.ranks[1].abort(1, "again")
    assert gang.form().generation == 2
    args = [AllReduce(it.id, ReduceOp.SUM, False) for it in inputs]
    assert gang.floats(ref(gang.run(all_reduce, args)[0])) == [15.0, 15.0]


def test_a_rank_describes_itself_while_it_is_being_prepared(
    gang: LocalGang, monkeypatch: pytest.MonkeyPatch
) -> None:
    rank, entered, go = gang.ranks[0], threading.Event(), threading.Event()
    join = rank.backend.join

    def slow(*args: Any) -> Joining:
        entered.set()
        assert go.wait(10)
        return join(*args)

    monkeypatch.setattr(rank.backend, "join", slow)
    preparing = threading.Thread(target=rank.prepare, args=(2, 0, 3, ()))
    preparing.start()
    try:
        assert entered.wait(10)
        assert rank.describe().state is State.OVER
    finally:
        go.set()
        preparing.join()
    assert rank.describe().state is State.PREPARED


class Refusing(LocalPeer):
    """A rank that cannot be prepared."""

    def prepare(
        self, number: int, rank: int, world_size: int, groups: Sequence[GroupDescription], timeout: float
    ) -> RankAddress:
        raise BridgeError.of(ErrorCode.FORMING_FAILED, "the test says so")


def test_a_rank_tells_that_its_generation_is_over_before_operations_are_answered(gang: LocalGang) -> None:
    seen: list[tuple[State, str, BridgeError | None]] = []
    rank = gang.ranks[0]

    def over() -> None:
        described = rank.describe()
        assert described.error is not None
        seen.append((described.state, described.error.failure.message, waiting.error))

    rank.over = over
    assert gang.form().generation == 2
    waiting = rank.submit(barrier, Barrier(), a_call(timeout=60))
    assert rank.abort(2, "enough")
    assert waiting.error is not None
    [(state, message, error)] = seen
    assert (state, error) == (State.OVER, None)
    assert "enough" in message


def test_a_gang_is_formed_again_after_a_forming_that_failed(gang: LocalGang) -> None:
    """With its groups; on all ranks, also those that had prepared the one that failed."""
    gang.run(new_group, [NewGroup("pair", (2, 0))] * 3)
    peers = [LocalPeer(rank) for rank in gang.ranks]
    with pytest.raises(BridgeError, match="the test says so"):
        form([*peers[:2], Refusing(gang.ranks[2])], (), timeout=10)
    assert gang.form().generation == 3
    barrier_works(gang)
    assert [rank.group("pair").ranks for rank in gang.ranks] == [(2, 0)] * 3


def test_a_lower_generation_cannot_be_prepared(gang: LocalGang) -> None:
    with pytest.raises(BridgeError) as error:
        gang.ranks[0].prepare(1, 0, 3, ())
    assert error.value.failure.code is ErrorCode.STALE_GENERATION
    barrier_works(gang)


@pytest.mark.parametrize(("rank", "world"), [(3, 3), (-1, 3), (0, 0)])
def test_a_rank_outside_the_gang_cannot_be_prepared(gang: LocalGang, rank: int, world: int) -> None:
    with pytest.raises(BridgeError) as error:
        gang.ranks[0].prepare(2, rank, world, ())
    assert error.value.failure.code is ErrorCode.RANK_OUT_OF_RANGE
    barrier_works(gang)


@pytest.mark.parametrize(
    ("number", "world", "groups"),
    [(2**64 - 1, 3, 0), (2, 50_000_000, 0), (2, 3, 5_000)],
    ids=["a number after which there is none", "more ranks than there can be", "more groups"],
)
def test_what_would_use_the_rank_up_cannot_be_prepared(
    gang: LocalGang, number: int, world: int, groups: int
) -> None:
    described = [GroupDescription(f"g{number}", (0,)) for number in range(groups)]
    with pytest.raises(BridgeError) as error:
        gang.ranks[0].prepare(number, 0, world, described)
    assert error.value.failure.code is ErrorCode.INVALID_ARGUMENT
    barrier_works(gang)
    assert gang.form().generation == 2


def test_a_reason_is_cut_off(gang: LocalGang) -> None:
    assert gang.ranks[0].abort(1, "x" * 1_000_000)
    view = gang.ranks[0].describe()
    assert view.error is not None
    assert len(view.error.failure.message) < 5_000


def test_what_was_not_prepared_cannot_be_committed(gang: LocalGang) -> None:
    with pytest.raises(BridgeError) as error:
        gang.ranks[0].commit(2, (), b"secret", 1)
    assert error.value.failure.code is ErrorCode.STALE_GENERATION
    barrier_works(gang)


def test_a_rank_without_generation_says_so() -> None:
    gang = LocalGang(1)
    fresh = LocalGang.__new__(LocalGang)
    fresh.ranks = [
        type(gang.ranks[0])(
            gang.ranks[0].identity,
            gang.ranks[0].backend,
            lambda *_: pytest.fail("not to be called"),
            limits=Limits(),
        )
    ]
    assert codes(fresh.run(barrier, [Barrier()])) == [ErrorCode.NOT_FORMED]


def test_a_backend_that_fails_because_a_rank_is_lost_leaves_it_to_the_links_to_tell(
    gang: LocalGang, monkeypatch: pytest.MonkeyPatch
) -> None:
    inputs = gang.full(1)
    generation = gang.ranks[1]._current(0)
    membership = generation.get("world").membership  # type: ignore[union-attr]
    failing = threading.Event()

    def fail(*_: object) -> object:
        failing.set()
        raise BridgeError.of(ErrorCode.BACKEND_FAILED, "the wire is cut", phase=Phase.DATA, indefinite=True)

    monkeypatch.setattr(generation_module, "LOSS_GRACE_S", 60.0)
    monkeypatch.setattr(membership.coordinator, "all_reduce", fail)  # type: ignore[union-attr]
    tasks = [
        rank.submit(all_reduce, AllReduce(it.id, ReduceOp.SUM, True), a_call(operation_id="x"))
        for rank, it in zip(gang.ranks, inputs, strict=True)
    ]
    assert failing.wait(10)
    generation.lost(Ended(2, True, "its link was closed"))
    error = error_of(tasks[1], 10)
    assert error is not None
    assert (error.failure.code, error.failure.indefinite) == (ErrorCode.PEER_LOST, True)
    assert [(it.rank, it.state) for it in error.failure.ranks] == [(2, RankState.LOST)]


def test_a_failing_backend_ends_the_generation_on_every_rank(
    gang: LocalGang, monkeypatch: pytest.MonkeyPatch
) -> None:
    inputs = gang.full(1)
    generation = gang.ranks[1]._current(0)
    membership = generation.get("world").membership  # type: ignore[union-attr]
    # The others fail, too, and take the time that it takes to hear of rank 1, which nobody tells anything.
    monkeypatch.setattr(generation_module, "LOSS_GRACE_S", 60.0)
    monkeypatch.setattr(generation, "_is_over_soon", lambda: False)

    def fail(*_: object) -> object:
        raise BridgeError.of(ErrorCode.BACKEND_FAILED, "the wire is cut", phase=Phase.DATA, indefinite=True)

    monkeypatch.setattr(membership.coordinator, "all_reduce", fail)  # type: ignore[union-attr]
    outcomes = gang.run(all_reduce, [AllReduce(it.id, ReduceOp.SUM, True) for it in inputs])
    assert failure(outcomes[1]).code is ErrorCode.BACKEND_FAILED
    assert all(failure(it).indefinite for it in outcomes)
    assert "the wire is cut" in failure(outcomes[0]).message
    assert [gang.floats(it) for it in inputs] == [[1.0, 1.0]] * 3
    assert codes(gang.run(barrier, [Barrier()] * 3)) == [ErrorCode.STALE_GENERATION] * 3
    gang.form()
    barrier_works(gang)


@pytest.mark.parametrize("refusing", range(3))
@pytest.mark.parametrize("last", [False, True])
def test_what_one_rank_refuses_fails_all_at_once_by_calls_of_ranks(
    gang: LocalGang, refusing: int, last: bool
) -> None:
    inputs = gang.full(1)
    gang.ranks[refusing].refs.release("", [inputs[refusing].id])
    args = [AllReduce(it.id, ReduceOp.SUM, False) for it in inputs]
    others = [rank for rank in range(3) if rank != refusing]
    # Far longer than the test may take: whoever waits for the one that refused, fails it.
    call = a_call(operation_id="x", timeout=3600)

    def refuse() -> None:
        with pytest.raises(BridgeError, match="was released"):
            gang.ranks[refusing].submit(all_reduce, args[refusing], call)

    if not last:
        refuse()
    tasks = [gang.ranks[rank].submit(all_reduce, args[rank], call) for rank in others]
    if last:
        refuse()
    for task in tasks:
        with pytest.raises(BridgeError) as raised:
            task.wait(60)
        it = raised.value.failure
        assert (it.code, it.phase, it.indefinite) == (ErrorCode.RELEASED_REF, Phase.CHECK, False)
        assert [(detail.rank, detail.state) for detail in it.ranks] == [(refusing, RankState.FAILED)]
    # It is the outcome of that id at every member, also where it was refused.
    mended = AllReduce(gang.full(1)[refusing].id, ReduceOp.SUM, False)
    late = gang.ranks[refusing].submit(all_reduce, mended, call)
    with pytest.raises(BridgeError, match=f"rank {refusing} refused its part"):
        late.wait(60)
    assert gang.run(barrier, [Barrier()] * 3) == [None] * 3


def test_an_id_that_is_taken_on_one_rank_fails_nobody_else(gang: LocalGang) -> None:
    inputs = gang.full(1)
    args = [AllReduce(it.id, ReduceOp.SUM, False) for it in inputs]
    call = a_call(operation_id="x", timeout=60)
    tasks = [gang.ranks[rank].submit(all_reduce, args[rank], call) for rank in (0, 1)]
    with pytest.raises(BridgeError, match="was used for another operation"):
        gang.ranks[1].submit(barrier, Barrier(), call)
    tasks.append(gang.ranks[2].submit(all_reduce, args[2], call))
    assert [gang.floats(ref(task.wait())) for task in tasks] == [[3.0, 3.0]] * 3
