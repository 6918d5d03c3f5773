"""Gangs whose ranks are dead, as their records show them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rankbridge_server.core.processes import GONE
from rankbridge_server.doctor import testimony
from rankbridge_server.doctor.evidence import Process
from rankbridge_server.doctor.gang_evidence import group_of
from rankbridge_server.doctor.gang_judge import diagnose
from rankbridge_server.doctor.testimony import Operation, Outside
from rankbridge_server.doctor.verdict import Condition, Kind, Verdict

SIZE = 3
END = 100.0


def pending(seconds: float, sequence: int = 0, group: str = "world") -> Operation:
    """A barrier that has waited for members for so long when the gang died."""
    at = END - seconds
    return Operation(
        kind="barrier",
        group=group,
        contract="barrier",
        site="train.py:7",
        called_at=at,
        announced_at=at,
        generation=1,
        sequence=sequence,
    )


def done(sequence: int) -> Operation:
    return Operation(
        kind="barrier",
        group="world",
        called_at=1.0,
        announced_at=1.0,
        entered_at=1.0,
        done_at=1.1,
        generation=1,
        sequence=sequence,
    )


def dead(
    rank: int, *operations: Operation, alive_at: float = END, in_order: bool = False
) -> testimony.Testimony:
    return testimony.Testimony(
        rank=rank,
        pid=100 + rank,
        host="host",
        process=Process(state=GONE),
        groups=(group_of("world", range(SIZE)),),
        operations=operations,
        outside=Outside(alive_at=alive_at, in_order=in_order),
    )


def verdict(testimonies: Sequence[testimony.Testimony]) -> Verdict:
    return diagnose(testimonies, [], world_size=SIZE, at=10 * END, interval_s=0.2, patience_s=2.0)


def test_the_rank_that_had_no_call_while_others_waited_is_named() -> None:
    found = verdict([dead(0, done(0), pending(5.0, 1)), dead(1, done(0)), dead(2, done(0), pending(4.0, 1))])
    assert found.kind is Kind.NEVER_CALLED
    assert [(it.rank, it.condition) for it in found.culprits] == [(1, Condition.IDLE)]
    assert [(it.rank, it.call, it.waits_for, it.seconds) for it in found.waits] == [
        (0, "barrier world", (1,), 5.0),
        (2, "barrier world", (1,), 4.0),
    ]


def test_nobody_is_blamed_for_a_short_wait() -> None:
    found = verdict([dead(0, pending(0.5)), dead(1), dead(2, pending(0.4))])
    assert (found.kind, found.culprits) == (Kind.UNKNOWN, ())
    assert found.evidence == (
        "rank 0: last sign of life at 00:01:40.000 UTC, in barrier on world for 0.5 s, from train.py:7",
        "rank 1: last sign of life at 00:01:40.000 UTC, without a call",
        "rank 2: last sign of life at 00:01:40.000 UTC, in barrier on world for 0.4 s, from train.py:7",
    )


def test_a_rank_that_gave_no_sign_of_life_before_the_others_is_silent() -> None:
    found = verdict([dead(0, pending(0.5)), dead(1, alive_at=END - 3.0), dead(2, pending(0.4))])
    assert [(it.rank, it.condition) for it in found.culprits] == [(1, Condition.SILENT)]
    assert "its last sign of life, as it runs Python, was 3.0 s before the others'" in found.summary


def test_a_rank_that_was_in_a_function_is_named_with_its_call() -> None:
    function = Operation(
        kind="call_function",
        group="world",
        function="load",
        site="train.py:9",
        called_at=END - 6.0,
        entered_at=END - 6.0,
    )
    found = verdict([dead(0, pending(5.0)), dead(1, function), dead(2, pending(5.0))])
    (culprit,) = found.culprits
    assert (culprit.rank, culprit.condition) == (1, Condition.UNKNOWN)
    assert culprit.why == "in function load on world for 6.0 s, from train.py:9"


def test_a_rank_whose_record_is_not_there_is_not_blamed() -> None:
    found = verdict([dead(0, pending(5.0)), dead(2, pending(5.0))])
    assert (found.kind, found.culprits) == (Kind.UNKNOWN, ())
    assert found.evidence[-1] == "rank 1: no record"


def test_members_of_whom_some_have_gone_on_wait_for_nobody() -> None:
    found = verdict([dead(0, pending(5.0)), dead(1, done(0)), dead(2, pending(5.0))])
    assert (found.kind, found.culprits) == (Kind.UNKNOWN, ())


def test_a_lost_rank_that_lives_is_not_called_dead() -> None:
    survivor = replace(
        dead(0), outside=None, process=Process(state="S"), lost=((1, "no sign of life"),), over="it"
    )
    for state, condition in (("T", Condition.STOPPED), ("S", Condition.SILENT), (GONE, Condition.DEAD)):
        lost = replace(dead(1), process=Process(state=state))
        (culprit,) = verdict([survivor, lost]).culprits
        assert (culprit.rank, culprit.condition, culprit.host) == (1, condition, "host")


def test_all_were_told_to_end() -> None:
    found = verdict([dead(it, done(0), in_order=True) for it in range(SIZE)])
    assert found.kind is Kind.HEALTHY
    one_was_not = [dead(it, done(0), in_order=it != 1) for it in range(SIZE)]
    assert verdict(one_was_not).kind is Kind.UNKNOWN


def test_of_a_group_whose_leader_does_not_run_the_members_say_who_has_come() -> None:
    stopped = testimony.Testimony(
        rank=0,
        pid=100,
        host="host",
        process=Process(state="T"),
        groups=(group_of("world", range(SIZE)),),
        operations=(pending(5.0),),
        outside=Outside(alive_at=END - 5.0),
    )
    others = [
        testimony.Testimony(
            rank=rank,
            pid=100 + rank,
            host="host",
            process=Process(state="S"),
            groups=(group_of("world", range(SIZE)),),
            operations=(pending(4.0),),
        )
        for rank in (1, 2)
    ]
    found = diagnose([stopped, *others], [], world_size=SIZE, at=END, interval_s=0.2, patience_s=2.0)
    assert [(it.rank, it.condition) for it in found.culprits] == [(0, Condition.STOPPED)]
    assert [(it.rank, it.waits_for) for it in found.waits] == [(1, (0,)), (2, (0,))]
