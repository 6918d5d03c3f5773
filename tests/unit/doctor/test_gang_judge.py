"""The verdict on a gang, from what its ranks say of themselves."""

from dataclasses import replace

import pytest
from tests.support.testimonies import (
    ASLEEP,
    IN_FUNCTION,
    NOW,
    SIZE,
    SUM,
    admission,
    done,
    failed,
    judged,
    operation,
    rank,
    waiting_for,
)

from rankbridge_server.core.processes import GONE
from rankbridge_server.doctor.evidence import Process
from rankbridge_server.doctor.gang_evidence import group_of
from rankbridge_server.doctor.page import page
from rankbridge_server.doctor.testimony import Operation, Silence
from rankbridge_server.doctor.verdict import Condition, Kind


def test_a_rank_that_nobody_has_called_is_idle() -> None:
    verdict = judged(waiting_for(rank(3)))
    (culprit,) = verdict.culprits
    assert (verdict.kind, culprit.rank, culprit.condition) == (Kind.NEVER_CALLED, 3, Condition.IDLE)
    assert verdict.summary == ("rank 3 has not called all_reduce world, is idle for 12.0 s: it has no call")
    waits = {it.rank: (it.waits_for, it.seconds, str(it.site)) for it in verdict.waits}
    assert waits == dict.fromkeys(range(3), ((3,), 10.0, "train.py:88"))


def test_a_rank_whose_function_sleeps_is_named_with_its_line() -> None:
    late = rank(3, operation("call step"), process=ASLEEP, threads=(IN_FUNCTION,), still=True)
    late = replace(late, operations=(replace(late.operations[0], function="step", entered_at=NOW - 9),))
    verdict = judged(waiting_for(late))
    (culprit,) = verdict.culprits
    assert (verdict.kind, culprit.rank, culprit.condition) == (Kind.NEVER_CALLED, 3, Condition.ASLEEP)
    assert list(map(str, culprit.stack)) == ["next_batch app.py:7", "step app.py:9"]


@pytest.mark.parametrize(("waited", "kind"), [(1.9, Kind.HEALTHY), (2.1, Kind.NEVER_CALLED)])
def test_a_short_wait_is_no_hang(waited: float, kind: Kind) -> None:
    history = tuple(done(it, 60.0 - it) for it in range(3))
    assert judged(waiting_for(rank(3, *history), waited, history)).kind is kind


@pytest.mark.parametrize(("waited", "kind"), [(4.9, Kind.UNKNOWN), (5.1, Kind.NEVER_CALLED)])
def test_controllers_begin_slowly(waited: float, kind: Kind) -> None:
    assert judged(waiting_for(rank(3), waited)).kind is kind


@pytest.mark.parametrize(("waited", "kind"), [(5.0, Kind.UNKNOWN), (7.0, Kind.NEVER_CALLED)])
def test_a_rank_that_was_late_before_has_twice_as_long(waited: float, kind: Kind) -> None:
    history = tuple(done(it, 60.0 - it) for it in range(3))
    slow = replace(history[0], announced_at=NOW - 57, entered_at=NOW - 57, done_at=NOW - 57)
    late = rank(3, slow, *history[1:])
    assert judged(waiting_for(late, waited, history)).kind is kind


def test_two_groups_in_opposite_order_are_a_circle() -> None:
    groups = (group_of("a", (0, 1)), group_of("b", (1, 0)))
    ranks = [
        rank(0, operation(group="a"), groups=groups, admissions=(admission([1], group="a", size=2),)),
        rank(
            1,
            operation(group="b"),
            groups=groups,
            admissions=(replace(admission([0], group="b", size=2), arrived=((1, 0.0),)),),
        ),
        rank(2),
        rank(3),
    ]
    verdict = judged(ranks)
    assert (verdict.kind, verdict.culprits, verdict.cycle) == (Kind.ORDER_INVERSION, (), (0, 1))
    assert "in a and b" in verdict.summary


@pytest.mark.parametrize(
    ("state", "condition", "said"),
    [
        ("T", Condition.STOPPED, "stopped by a signal"),
        ("S", Condition.SILENT, "does not answer, and its process is in state S"),
        ("?", Condition.SILENT, "does not answer"),
        (GONE, Condition.DEAD, "dead"),
    ],
)
def test_a_rank_that_does_not_answer_is_judged_by_what_its_host_knows(
    state: str, condition: Condition, said: str
) -> None:
    silence = Silence(rank=3, pid=103, process=Process(state=state))
    verdict = judged(waiting_for(rank(3))[:3], (silence,))
    (culprit,) = verdict.culprits
    assert (verdict.kind, culprit.rank, culprit.condition) == (Kind.NEVER_CALLED, 3, condition)
    assert said in culprit.why


def test_a_silent_rank_for_which_nobody_waits_is_not_blamed() -> None:
    verdict = judged([rank(0), rank(1), rank(2)], (Silence(rank=3, process=Process(state="?")),))
    assert (verdict.kind, verdict.culprits) == (Kind.UNKNOWN, ())
    assert any(it.startswith("rank 3: silent: it does not answer") for it in verdict.evidence)


def test_what_all_members_have_entered_and_is_not_done_is_nobodys_fault() -> None:
    verdict = judged([rank(it, operation(entered_at=NOW - 10)) for it in range(SIZE)])
    assert (verdict.kind, verdict.culprits) == (Kind.UNKNOWN, ())
    assert "all members have called all_reduce world" in verdict.summary


@pytest.mark.parametrize(
    ("other", "kind"),
    [
        ("broadcast dtype=float32 shape=[4] src_rank_in_group=0", Kind.MISMATCH_KIND),
        (SUM.replace("[4]", "[5]"), Kind.MISMATCH_SHAPE),
        (SUM.replace("32", "64"), Kind.MISMATCH_DTYPE),
        (SUM.replace("sum", "max"), Kind.MISMATCH_OP),
        (SUM + " sizes=[1]", Kind.MISMATCH_TERMS),
    ],
)
def test_members_that_disagreed_are_named_until_they_go_on(other: str, kind: Kind) -> None:
    ranks = [rank(it, done(1, 5.0), failed("MISMATCH", other if it == 2 else SUM)) for it in range(SIZE)]
    verdict = judged(ranks)
    assert (verdict.kind, [it.rank for it in verdict.culprits]) == (kind, [2])
    assert [(it.ranks, it.what) for it in verdict.sides] == [((0, 1, 3), SUM), ((2,), other)]
    later = [replace(it, operations=(*it.operations, done(2, 0.5))) for it in ranks]
    assert judged(later).kind is Kind.HEALTHY


def test_two_sides_without_a_majority_are_both_shown_and_nobody_is_blamed() -> None:
    ranks = [rank(it, failed("MISMATCH", SUM if it < 2 else SUM.replace("sum", "max"))) for it in range(SIZE)]
    verdict = judged(ranks)
    assert (verdict.kind, verdict.culprits, len(verdict.sides)) == (Kind.MISMATCH_OP, (), 2)


def test_who_had_not_come_is_named_and_what_it_did_is_shown() -> None:
    message = "PEER_MISSING in all_reduce on world: 3 of 4 ranks came\n  rank 3: has not come: it has no call"
    ranks = [*[rank(it, failed("PEER_MISSING", message=message)) for it in range(3)], rank(3)]
    verdict = judged(ranks)
    assert (verdict.kind, [it.rank for it in verdict.culprits]) == (Kind.NEVER_CALLED, [3])
    assert verdict.summary == "1.0 s ago, all_reduce on world failed: rank 3 had not come"
    assert "rank 3: has not come: it has no call" in page(verdict)


@pytest.mark.parametrize(
    ("reason", "state", "condition"),
    [
        ("it gave no sign of life for 10.0 s", "?", Condition.SILENT),
        ("it gave no sign of life for 10.0 s", "T", Condition.STOPPED),
        ("it gave no sign of life for 10.0 s", GONE, Condition.DEAD),
        ("its link was closed", "?", Condition.DEAD),
    ],
)
def test_of_a_lost_rank_silence_is_no_death(reason: str, state: str, condition: Condition) -> None:
    ranks = [rank(it, lost=((3, reason),), over="generation 1 is over") for it in range(3)]
    found = judged(ranks, (Silence(rank=3, process=Process(state=state)),))
    assert [(it.rank, it.condition) for it in found.culprits] == [(3, condition)]


def test_a_lost_rank_is_named_with_the_reason() -> None:
    ranks = [rank(it, lost=((3, "its link was closed"),), over="generation 1 is over") for it in range(3)]
    verdict = judged(ranks, (Silence(rank=3, process=Process(state="?")),))
    (culprit,) = verdict.culprits
    assert (verdict.kind, culprit.rank, culprit.condition) == (Kind.NEVER_CALLED, 3, Condition.DEAD)
    assert "its link was closed" in verdict.summary
    assert judged([replace(it, lost=()) for it in ranks]).kind is Kind.UNKNOWN


def test_a_send_and_a_receive_with_other_tags_do_not_meet() -> None:
    posts = {
        0: "send of tensor float32[4] to rank_in_group 1 tag=1",
        1: "receive of tensor float32[4] from rank_in_group 0 tag=2",
    }
    ranks = [rank(it, operation(text, kind="send" if it == 0 else "recv")) for it, text in posts.items()]
    verdict = judged([*ranks, rank(2), rank(3)])
    assert (verdict.kind, verdict.culprits) == (Kind.P2P_UNMATCHED, ())
    assert [it.ranks for it in verdict.sides] == [(0,), (1,)]


def test_members_that_gave_other_ids_are_told_of_one_failure() -> None:
    message = "MISMATCH in #7 on world\n  ranks 0-1, 3: all_reduce (a)\n  rank 2: barrier (b)"
    ranks = [
        rank(
            it,
            replace(
                failed("MISMATCH", "barrier" if it == 2 else SUM, message=message), operation_id=f"id{it}"
            ),
        )
        for it in range(SIZE)
    ]
    verdict = judged(ranks)
    assert (verdict.kind, [it.rank for it in verdict.culprits]) == (Kind.MISMATCH_KIND, [2])
    missing = "PEER_MISSING in all_reduce #7 on world: 3 of 4 ranks came, missing: rank 3"
    ranks = [
        rank(it, replace(failed("PEER_MISSING", message=missing), operation_id=f"id{it}")) for it in range(3)
    ]
    assert [it.rank for it in judged([*ranks, rank(3)]).culprits] == [3]


@pytest.mark.parametrize(
    ("other", "kind"), [("float32[64]", Kind.MISMATCH_SHAPE), ("float64[16]", Kind.MISMATCH_DTYPE)]
)
def test_ranks_that_are_called_no_more_after_a_failure_are_not_to_blame_for_what_follows(
    other: str, kind: Kind
) -> None:
    texts = {
        1: f"send of tensor {other} to rank_in_group 3 tag=1",
        3: "receive of tensor float32[16] from rank_in_group 1 tag=1",
    }
    left = [rank(it, failed("MISMATCH", text, ago=10.5, message="MISMATCH")) for it, text in texts.items()]
    waiting = [rank(it, operation()) for it in (0, 2)]
    first = replace(waiting[0], admissions=(admission([1, 3]),))
    verdict = judged([first, left[0], waiting[1], left[1]])
    assert (verdict.kind, verdict.culprits) == (kind, ())
    assert [it.ranks for it in verdict.sides] == [(1,), (3,)]
    assert {it.rank: it.waits_for for it in verdict.waits} == {0: (1, 3), 2: (1, 3)}
    # Long ago, it explains nothing.
    old = [replace(it, operations=(replace(it.operations[0], done_at=NOW - 1000),)) for it in left]
    verdict = judged([first, old[0], waiting[1], old[1]])
    assert [(it.rank, it.condition) for it in verdict.culprits] == [(1, Condition.IDLE), (3, Condition.IDLE)]


def test_calls_without_ids_are_the_same_by_their_number_in_the_group() -> None:
    def history(late: float) -> tuple[Operation, ...]:
        return tuple(replace(done(it, 60.0 - it), called_at=NOW - 60 + it + late) for it in range(20))

    verdict = judged([rank(it, *history(0.8 if it == 1 else 0.0)) for it in range(SIZE)])
    assert (verdict.kind, [it.rank for it in verdict.culprits]) == (Kind.SLOW, [1])
