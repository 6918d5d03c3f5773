"""The rules, on jobs that never ran."""

import gc
import time
from dataclasses import replace

import pytest
from tests.support.jobs import (
    IN_CALL,
    NOW,
    WORLD,
    call,
    elsewhere,
    frame,
    history,
    job,
    late,
    main_thread,
    waiting,
)

from rankbridge_server.core.processes import GONE
from rankbridge_server.doctor.evidence import Call, Evidence, Frame, Process, RankEvidence, Thread
from rankbridge_server.doctor.judge import judge
from rankbridge_server.doctor.page import page
from rankbridge_server.doctor.verdict import Condition, Kind, Verdict


def blamed(verdict: Verdict) -> list[int]:
    return [it.rank for it in verdict.culprits]


def with_rank(evidence: Evidence, rank: RankEvidence) -> Evidence:
    return replace(evidence, ranks=tuple(rank if it.rank == rank.rank else it for it in evidence.ranks))


def test_who_is_waited_for_and_waits_for_nobody_is_the_cause() -> None:
    verdict = judge(late(4, [2]))
    assert (verdict.kind, blamed(verdict)) == (Kind.NEVER_CALLED, [2])
    assert verdict.culprits[0].condition is Condition.ASLEEP
    assert verdict.call == "all_reduce world#6"
    assert {it.rank: it.waits_for for it in verdict.waits} == {0: (2,), 1: (2,), 3: (2,)}
    assert verdict.waits[0].seconds == 10


def test_the_lowest_number_is_no_guilt() -> None:
    # Rank 0 is at 5 in the world, ranks 1 and 3 at 6: it waits in a group of its own for rank 2, as they do.
    groups = {WORLD: range(4), "even": (0, 2)}
    before = history(5)
    evidence = job(
        [
            waiting(0, [*before, call(3, group="even", done=False)], groups),
            waiting(1, [*before, call(6, done=False)], groups),
            elsewhere(2, [*before, *history(2, "even")], groups),
            waiting(3, [*before, call(6, done=False)], groups),
        ]
    )
    assert blamed(judge(evidence)) == [2]


def test_two_groups_in_opposite_order_are_a_circle() -> None:
    groups = {"a": (0, 1), "b": (0, 1)}
    evidence = job(
        [
            waiting(0, [call(1, group="a", done=False)], groups),
            waiting(1, [call(1, group="b", done=False)], groups),
        ]
    )
    verdict = judge(evidence)
    assert (verdict.kind, verdict.cycle, blamed(verdict)) == (Kind.ORDER_INVERSION, (0, 1), [])
    assert len(verdict.sides) == 2


def test_a_circle_that_waits_for_somebody_outside_is_not_the_cause() -> None:
    groups = {"a": (0, 1), "b": (0, 1), WORLD: (0, 1, 2)}
    evidence = job(
        [
            waiting(0, [call(1, group="a", done=False), call(1, done=False)], groups),
            waiting(1, [call(1, group="b", done=False)], groups),
            elsewhere(2, history(3, "c"), groups),
        ]
    )
    assert blamed(judge(evidence)) == [2]


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ({"kind": "broadcast"}, Kind.MISMATCH_KIND),
        ({"shapes": ((5,),)}, Kind.MISMATCH_SHAPE),
        ({"dtypes": ("int64",)}, Kind.MISMATCH_DTYPE),
        ({"op": "max"}, Kind.MISMATCH_OP),
    ],
)
def test_one_that_asks_for_something_else_than_most_is_named(fields: dict[str, object], kind: Kind) -> None:
    world = {WORLD: range(4)}
    usual = call(1, done=False, op="sum")
    wrong = replace(usual, **fields)  # type: ignore[arg-type]
    ranks = [waiting(it, [wrong if it == 1 else usual], world) for it in range(4)]
    verdict = judge(job(ranks))
    assert (verdict.kind, blamed(verdict)) == (kind, [1])
    assert {it.ranks for it in verdict.sides} == {(0, 2, 3), (1,)}


def test_without_a_majority_both_sides_are_shown_and_nobody_is_blamed() -> None:
    world = {WORLD: range(4)}
    ranks = [
        waiting(it, [call(1, kind="barrier" if it < 2 else "all_reduce", done=False)], world)
        for it in range(4)
    ]
    verdict = judge(job(ranks))
    assert (verdict.kind, blamed(verdict)) == (Kind.MISMATCH_KIND, [])
    assert {it.ranks for it in verdict.sides} == {(0, 1), (2, 3)}


def test_sizes_that_may_differ_are_no_mismatch() -> None:
    world = {WORLD: range(2)}
    ranks = [
        waiting(it, [call(1, kind="all_to_all_single", shapes=((it + 1,),), at=NOW - 0.1, done=False)], world)
        for it in range(2)
    ]
    assert judge(job(ranks)).kind is Kind.HEALTHY


def test_shapes_of_the_same_size_are_no_mismatch() -> None:
    world = {WORLD: range(2)}
    ranks = [waiting(it, [call(1, shapes=(((2, 2), (4,))[it],), at=NOW - 0.1)], world) for it in range(2)]
    assert judge(job(ranks)).kind is Kind.HEALTHY


def test_a_wait_that_is_young_is_no_verdict() -> None:
    evidence = late(4, [2])
    young = [
        replace(it, calls=tuple(replace(at, called_at=NOW - 1) if not at.done else at for at in it.calls))
        for it in evidence.ranks
    ]
    assert judge(replace(evidence, ranks=tuple(young))).kind is Kind.HEALTHY


def test_a_pause_as_long_as_earlier_ones_is_no_verdict() -> None:
    world = {WORLD: range(2)}
    before = history(8, gap_s=6)
    evidence = job([waiting(0, [*before, call(9, done=False)], world), elsewhere(1, before, world)])
    assert judge(evidence).kind is Kind.UNKNOWN
    assert blamed(judge(evidence)) == []


def test_a_rank_of_which_nothing_is_known_is_not_blamed() -> None:
    evidence = with_rank(late(4, [2]), RankEvidence(rank=2, process=Process(state="S")))
    verdict = judge(evidence)
    assert (verdict.kind, blamed(verdict)) == (Kind.UNKNOWN, [])
    assert any("rank 2" in it for it in verdict.evidence)


@pytest.mark.parametrize(
    ("process", "condition"),
    [
        (Process(state="T", wchan="do_signal_stop"), Condition.STOPPED),
        (Process(state=GONE), Condition.DEAD),
        (Process(state=GONE, exit_status=0), Condition.EXITED),
    ],
)
def test_a_rank_that_is_stopped_or_gone_is_the_cause_whatever_else_is_known(
    process: Process, condition: Condition
) -> None:
    verdict = judge(with_rank(late(4, [2]), RankEvidence(rank=2, process=process)))
    assert blamed(verdict) == [2]
    assert verdict.culprits[0].condition is condition


@pytest.mark.parametrize(
    ("process", "thread", "condition"),
    [
        (
            Process(state="R", cpu_s=0.4),
            main_thread([frame("spin"), frame("<module>")], "R", True),
            Condition.SPINNING,
        ),
        (
            Process(state="S", syscall="read"),
            main_thread([frame("load"), frame("<module>")]),
            Condition.BLOCKED_READ,
        ),
        (Process(state="D"), main_thread([frame("load"), frame("<module>")], "D"), Condition.BLOCKED_READ),
        (
            Process(state="S", syscall="futex"),
            main_thread([frame("lock"), frame("<module>")]),
            Condition.LOCK,
        ),
        (
            Process(state="S", syscall="wait4"),
            main_thread([frame("run"), frame("<module>")]),
            Condition.WAITING_FOR_CHILD,
        ),
        (
            Process(state="S", syscall="nanosleep"),
            main_thread([frame("c"), frame("<module>")], owns_gil=True),
            Condition.GIL_HELD,
        ),
        (Process(state="S", syscall="nanosleep"), main_thread([frame("at_exit")]), Condition.TEARDOWN),
    ],
)
def test_what_the_cause_does_is_told_by_process_and_stack(
    process: Process, thread: Thread, condition: Condition
) -> None:
    evidence = late(4, [2])
    rank = replace(evidence.ranks[2], process=process, threads=(thread,))
    assert judge(with_rank(evidence, rank)).culprits[0].condition is condition


def test_a_rank_that_may_wait_for_a_receive_is_not_blamed() -> None:
    evidence = late(4, [2])
    process = Process(state="S", wchan="futex_do_wait", syscall="futex")
    verdict = judge(with_rank(evidence, replace(evidence.ranks[2], process=process, calling="wait")))
    assert (verdict.kind, blamed(verdict)) == (Kind.UNKNOWN, [])


@pytest.mark.parametrize(
    ("kind", "lacks"), [("recv", "send to rank 0"), ("send_object", "recv_object from rank 0")]
)
def test_of_who_does_not_come_to_a_send_or_a_receive_its_own_end_is_named(kind: str, lacks: str) -> None:
    pending = call(7, kind=kind, peer=1, tag=3, done=False)
    world = {WORLD: range(2)}
    verdict = judge(job([waiting(0, [*history(6), pending], world), elsewhere(1, history(6), world)]))
    assert verdict.summary.startswith(f"rank 1 has not called {lacks} tag 3 #7, ")
    assert verdict.waits[0].call == f"{kind} {'to' if kind != 'recv' else 'from'} rank 1 tag 3 #7"


def test_a_receive_and_a_send_with_another_tag_do_not_meet() -> None:
    world = {WORLD: range(3)}
    evidence = job(
        [
            waiting(0, [call(1, kind="send", peer=1, tag=7, done=False)], world),
            waiting(1, [call(1, kind="recv", peer=0, tag=1, done=False)], world),
            elsewhere(2, history(3), world),
        ]
    )
    verdict = judge(evidence)
    assert (verdict.kind, blamed(verdict)) == (Kind.P2P_UNMATCHED, [])
    assert {it.ranks for it in verdict.sides} == {(0,), (1,)}


def test_another_order_is_told_by_the_lines_that_call() -> None:
    world = {WORLD: range(3)}
    a, b = frame("a", 1), frame("b", 2)
    right, wrong = [a, b, a, b, a, b], [a, b, b, a, a, b]

    def calls(sites: list[Frame]) -> list[Call]:
        return [call(at, site=site, at=NOW - 0.1) for at, site in enumerate(sites, 1)]

    ranks = [waiting(it, calls(wrong if it == 1 else right), world) for it in range(3)]
    verdict = judge(job(ranks))
    assert (verdict.kind, blamed(verdict)) == (Kind.ORDER, [1])
    assert "world#3" in verdict.summary


def test_branches_of_the_root_at_other_lines_are_no_other_order() -> None:
    world = {WORLD: range(2)}
    a, b = frame("a", 1), frame("b", 2)
    ranks = [
        waiting(it, [call(at, site=(a, b)[(at + it) % 2], at=NOW - 0.1) for at in range(1, 9)], world)
        for it in range(2)
    ]
    assert judge(job(ranks)).kind is Kind.HEALTHY


def test_the_oldest_calls_which_only_some_ranks_still_have_are_no_other_order() -> None:
    """The root, another one each time, calls from a line of its own. Ranks 2 and 3 have older calls than the others."""
    world = {WORLD: range(4)}
    root, other = frame("root", 1), frame("other", 2)
    ranks = [
        waiting(
            it,
            [
                call(at, site=root if at % 4 == it else other, at=NOW - 0.1)
                for at in range(1 if it > 1 else 5, 13)
            ],
            world,
        )
        for it in range(4)
    ]
    assert judge(job(ranks)).kind is Kind.HEALTHY


def test_a_rank_that_is_always_last_is_slow_and_others_are_not() -> None:
    world = {WORLD: range(3)}

    def calls(rank: int) -> list[Call]:
        return [call(at, at=NOW - 20 + at * 0.5 + (0.4 if rank == 1 else 0.0)) for at in range(1, 30)]

    verdict = judge(job([waiting(it, calls(it), world) for it in range(3)]))
    assert (verdict.kind, blamed(verdict)) == (Kind.SLOW, [1])


def test_without_calls_the_only_rank_outside_is_named_with_doubt() -> None:
    evidence = late(4, [2])
    blind = replace(
        evidence, ranks=tuple(replace(it, source="", calls=(), groups=()) for it in evidence.ranks)
    )
    verdict = judge(blind)
    assert (verdict.kind, blamed(verdict)) == (Kind.NEVER_CALLED, [2])
    assert verdict.confidence < 0.9


def test_without_calls_two_ranks_outside_are_not_named() -> None:
    evidence = late(4, [1, 2])
    blind = replace(
        evidence, ranks=tuple(replace(it, source="", calls=(), groups=()) for it in evidence.ranks)
    )
    assert judge(blind).kind is Kind.UNKNOWN


def test_who_waits_in_guard_within_a_backward_is_in_a_collective() -> None:
    guarding = (
        Frame(name="Link.wait", file="/x/rankbridge_server/links/link.py", line=58),
        Frame(name="_hook.<locals>.hook", file="/x/rankbridge_server/job/watch/hook.py", line=264),
        Frame(name="backward", file="/x/site-packages/torch/autograd/__init__.py", line=395),
        frame("step", 9),
        frame("<module>", 20),
    )
    read = Process(state="S", wchan="unix_stream_read_generic", syscall="recvfrom", blocked_s=9.0, cpu_s=0.0)
    world, before = {WORLD: range(3)}, [replace(it, done=None) for it in history(6)]
    ranks = [
        replace(
            waiting(it, [*before, call(7, done=None)], world),
            process=read,
            threads=(main_thread(guarding),),
            source="ring",
        )
        for it in range(2)
    ]
    asleep = replace(elsewhere(2, before, world), source="ring")
    verdict = judge(job([*ranks, asleep]))
    assert (verdict.kind, blamed(verdict)) == (Kind.NEVER_CALLED, [2])


def test_a_healthy_job_that_was_interrupted_has_no_culprit() -> None:
    world = {WORLD: range(3)}
    ranks = [
        replace(
            waiting(it, history(8 + (it == 1), until=NOW), world),
            process=Process(state=GONE, exit_status=1, reason="KeyboardInterrupt: "),
            threads=(),
            still=None,
            source="ring",
        )
        for it in range(3)
    ]
    assert blamed(judge(job(ranks))) == []


def over(rank: int, calls: int, process: Process) -> RankEvidence:
    """A rank of a job that has ended, as its record says."""
    made = waiting(rank, [replace(it, done=None) for it in history(calls, until=NOW)], {WORLD: range(3)})
    return replace(made, process=process, threads=(), still=None, source="ring")


def test_of_a_job_that_has_ended_the_one_that_raised_by_itself_is_named() -> None:
    reasons = ["RuntimeError: Connection closed by peer", "ValueError: a bad batch", ""]
    ranks = [over(it, 9 - (it == 1), Process(state=GONE, reason=reasons[it])) for it in range(3)]
    verdict = judge(job(ranks))
    assert (verdict.kind, blamed(verdict)) == (Kind.NEVER_CALLED, [1])
    assert "ValueError: a bad batch" in verdict.summary


def test_of_a_guarded_job_the_one_that_was_killed_is_named_and_not_those_that_raised() -> None:
    raised = Process(
        state=GONE, exit_status=1, reason="GuardError: PEER_LOST in barrier on world: rank 1 has gone"
    )
    killed = Process(state=GONE, exit_status=-9)
    verdict = judge(job([over(0, 9, raised), over(1, 8, killed), over(2, 9, raised)]))
    assert (verdict.kind, blamed(verdict)) == (Kind.NEVER_CALLED, [1])


def ended_at_once(rank: int, kind: str, peer: int, tag: int, error: str) -> RankEvidence:
    """A rank that guard has ended in a send or a receive, just after it has called it."""
    made = over(rank, 0, Process(state=GONE, exit_status=1, reason=f"GuardError: {error} in {kind} on world"))
    return replace(made, calls=(call(1, kind=kind, peer=peer, tag=tag, at=NOW - 0.5, done=None),))


@pytest.mark.parametrize("error", ["MISMATCH", "PEER_LOST"])
def test_what_guard_has_ended_would_have_waited_for_ever(error: str) -> None:
    """Rank 0 sends to another than the one that receives, and waits for it in a circle."""
    sends, receives = ended_at_once(0, "send", 1, 1, error), ended_at_once(1, "recv", 2, 0, error)
    lonely = ended_at_once(2, "recv", 0, 1, "PEER_LOST")
    verdict = judge(job([sends, receives, lonely]))
    kind = Kind.P2P_UNMATCHED if error == "MISMATCH" else Kind.UNKNOWN
    assert (verdict.kind, blamed(verdict)) == (kind, [])
    assert {it.ranks for it in verdict.sides} == ({(0,), (2,)} if error == "MISMATCH" else set())


def test_a_circle_that_guard_has_ended_is_one_however_short_it_was() -> None:
    groups = {"a": (0, 1), "b": (0, 1)}
    said = Process(state=GONE, exit_status=1, reason="GuardError: MISMATCH in all_reduce #1 on a")
    ranks = [
        replace(
            waiting(rank, [call(1, group=group, at=NOW - 0.5, done=None)], groups),
            process=said,
            source="ring",
        )
        for rank, group in enumerate("ab")
    ]
    verdict = judge(job(ranks))
    assert (verdict.kind, verdict.cycle, blamed(verdict)) == (Kind.ORDER_INVERSION, (0, 1), [])
    others = [replace(it, process=Process(state=GONE, exit_status=1)) for it in ranks]
    assert judge(job(others)).kind is Kind.UNKNOWN


def test_who_asked_for_a_status_is_named_if_the_others_waited_for_it_alone() -> None:
    left, killed = Process(state=GONE, exit_status=1, reason="SystemExit: 3"), Process(state=GONE)
    lost = replace(killed, exit_status=1, reason="RuntimeError: Connection closed by peer")
    for first, second in ((killed, killed), (killed, lost), (lost, lost)):
        verdict = judge(job([over(0, 9, first), over(1, 8, left), over(2, 9, second)]))
        assert (verdict.kind, blamed(verdict)) == (Kind.NEVER_CALLED, [1])
    # They waited for another, too.
    assert not blamed(judge(job([over(0, 9, killed), over(1, 8, left), over(2, 8, killed)])))
    assert not blamed(judge(job([over(0, 9, left), over(1, 8, killed), over(2, 9, killed)])))


def test_a_job_is_over_as_it_should_be_if_all_its_ranks_have_exited_normally() -> None:
    ranks = [over(it, 9, Process(state=GONE, exit_status=0)) for it in range(3)]
    verdict = judge(job(ranks))
    assert (verdict.kind, verdict.summary) == (
        Kind.HEALTHY,
        "the job is over: every rank has exited normally",
    )
    assert judge(replace(job(ranks), world_size=4)).kind is Kind.UNKNOWN
    ranks[2] = over(2, 9, Process(state=GONE, exit_status=1))
    assert judge(job(ranks)).kind is Kind.UNKNOWN


@pytest.mark.parametrize("absent", [[617], [3, 4, 5, 900]])
def test_a_thousand_ranks_are_judged_within_a_second_and_shown_on_one_screen(absent: list[int]) -> None:
    evidence = late(1000, absent, calls=30)
    # What other tests have left to collect is not its own.
    gc.disable()
    try:
        began = time.thread_time()
        verdict = judge(evidence)
        text = page(verdict)
        took = time.thread_time() - began
    finally:
        gc.enable()
    assert took < 1
    assert blamed(verdict) == absent
    assert len(text.splitlines()) < 24
    assert max(map(len, text.splitlines())) < 240


def test_a_thousand_ranks_without_a_majority_are_shown_on_one_screen() -> None:
    world = {WORLD: range(1000)}
    ranks = [waiting(it, [call(1, shapes=((it % 100,),), done=False)], world) for it in range(1000)]
    assert len(page(judge(job(ranks))).splitlines()) < 24


def test_what_a_job_has_written_moves_no_cursor() -> None:
    evidence = late(2, [1])
    evil = replace(
        evidence.ranks[1], threads=(main_thread([frame("\x1b[2J", file="/job/\n.py"), IN_CALL[-1]]),)
    )
    text = page(judge(with_rank(evidence, evil)))
    assert "\x1b" not in text
    assert "\\x1b[2J" in text


def test_one_group_with_different_members_is_shown_from_both_sides() -> None:
    pending = [call(1, group="g", done=False)]
    evidence = job(
        [
            waiting(0, pending, {"g": (0, 1)}),
            waiting(1, pending, {"g": (0, 1)}),
            waiting(2, pending, {"g": (1, 2)}),
        ]
    )
    verdict = judge(evidence)
    assert (verdict.kind, blamed(verdict)) == (Kind.MEMBERSHIP, [])
    assert {it.ranks for it in verdict.sides} == {(0, 1), (2,)}


def in_init(rank: int, size: str, blocked_s: float = 30.0) -> RankEvidence:
    frames = (Frame(name="init_process_group", file=IN_CALL[0].file, line=1), frame("<module>"))
    return replace(
        waiting(rank, [], {}),
        process=Process(state="S", syscall="recvfrom", blocked_s=blocked_s),
        threads=(main_thread(frames),),
        begun=False,
        environment={"WORLD_SIZE": size},
    )


def test_another_world_size_is_shown_from_both_sides() -> None:
    verdict = judge(job([in_init(0, "2"), in_init(1, "3")]))
    assert (verdict.kind, blamed(verdict)) == (Kind.RENDEZVOUS, [])
    assert {(it.ranks, it.what) for it in verdict.sides} == {((0,), "WORLD_SIZE=2"), ((1,), "WORLD_SIZE=3")}


def test_without_calls_the_only_rank_outside_of_init_is_named_as_such() -> None:
    blind = [replace(in_init(it, "3"), begun=None, source="") for it in range(2)]
    verdict = judge(job([*blind, replace(elsewhere(2, [], {}), begun=None, source="")]))
    assert (verdict.kind, blamed(verdict)) == (Kind.RENDEZVOUS, [2])


def test_a_rank_that_has_begun_is_not_blamed_for_another_that_begins_late() -> None:
    verdict = judge(job([in_init(0, "2"), replace(elsewhere(1, [], {}), begun=None, source="")]))
    assert blamed(verdict) == []


def test_a_rank_that_is_elsewhere_for_long_is_named_and_one_that_moves_is_not() -> None:
    late_one = replace(elsewhere(1, [], {}), begun=False)
    assert blamed(judge(job([in_init(0, "2"), late_one]))) == [1]
    assert blamed(judge(job([in_init(0, "2"), replace(late_one, still=False)]))) == []
    assert blamed(judge(job([in_init(0, "2", blocked_s=3.0), late_one]))) == []


def test_ranks_of_other_hosts_are_unknown_and_not_guilty() -> None:
    evidence = late(4, [2])
    verdict = judge(replace(evidence, ranks=tuple(it for it in evidence.ranks if it.rank != 2)))
    assert (verdict.kind, blamed(verdict)) == (Kind.UNKNOWN, [])
    assert "rank 2: not found on this host" in verdict.evidence


def test_when_all_have_come_alike_nobody_is_blamed() -> None:
    world = {WORLD: range(3)}
    verdict = judge(job([waiting(it, [call(1, done=False)], world) for it in range(3)]))
    assert (verdict.kind, blamed(verdict)) == (Kind.UNKNOWN, [])
    assert "all members have called all_reduce world#1" in verdict.summary


def test_a_record_does_not_say_what_is_done_and_a_rank_that_is_elsewhere_does_not_wait() -> None:
    world = {WORLD: range(3)}
    before = [replace(it, done=None) for it in history(6)]
    ranks = [
        replace(waiting(0, [*before, call(7, done=None)], world), source="ring"),
        replace(waiting(1, [*before, call(7, done=None)], world), source="ring"),
        replace(elsewhere(2, before, world), source="ring"),
    ]
    verdict = judge(job(ranks))
    assert blamed(verdict) == [2]
    assert {it.rank: it.waits_for for it in verdict.waits} == {0: (2,), 1: (2,)}


SUBGROUP = {WORLD: range(4), "pair": (0, 1)}


@pytest.mark.parametrize("done", [True, None])
def test_ranks_that_have_exited_are_not_waited_for_in_what_they_have_called(done: bool | None) -> None:
    """Two of four are through. The others go on in a group of their own, in which one sleeps."""
    before = [replace(it, done=done) for it in history(6)]
    through = Process(state=GONE, exit_status=0)
    ranks = [
        replace(waiting(0, [*before, call(1, group="pair", done=None)], SUBGROUP), source="ring"),
        replace(elsewhere(1, before, SUBGROUP), source="ring"),
        *(replace(waiting(it, before, SUBGROUP), source="ring", process=through) for it in (2, 3)),
    ]
    verdict = judge(job(ranks))
    assert blamed(verdict) == [1]
    assert [(it.rank, it.waits_for) for it in verdict.waits] == [(0, (1,))]


def test_who_died_with_several_calls_under_way_is_waited_for_in_the_oldest() -> None:
    calls = [*history(6), call(7, done=False), call(8, done=False)]
    dead = Process(state=GONE, exit_status=-9)
    ranks = [waiting(it, calls, {WORLD: range(2)}) for it in range(2)]
    verdict = judge(job([ranks[0], replace(ranks[1], process=dead)]))
    assert blamed(verdict) == [1]
    assert [(it.rank, it.call) for it in verdict.waits] == [(0, "all_reduce world#7")]


@pytest.mark.parametrize("issued", [6, 7])
def test_who_died_is_waited_for_in_the_newest_call(issued: int) -> None:
    """Of earlier ones it is not known that they are done."""
    calls = [replace(it, done=None) for it in [*history(6), call(7, at=NOW - 9)]]
    ranks = [
        replace(waiting(0, calls, {WORLD: range(2)}), source="ring"),
        replace(
            waiting(1, calls[:issued], {WORLD: range(2)}),
            source="ring",
            process=Process(state=GONE, exit_status=-9),
        ),
    ]
    verdict = judge(job(ranks))
    assert blamed(verdict) == [1]
    assert [(it.rank, it.call, it.waits_for) for it in verdict.waits] == [(0, "all_reduce world#7", (1,))]


def test_a_rank_that_has_noted_its_wait_waits_wherever_its_stack_is() -> None:
    world = {WORLD: range(3)}
    before = [replace(it, done=None) for it in history(6)]
    receive = call(1, kind="recv", peer=2, tag=0, done=None)
    ranks = [
        replace(elsewhere(0, [*before, receive], world), source="ring", waiting_s=9.0),
        replace(waiting(1, [*before, call(7, done=None)], world), source="ring"),
        replace(elsewhere(2, before, world), source="ring"),
    ]
    assert blamed(judge(job(ranks))) == [2]


def test_a_rank_that_sleeps_with_a_call_under_way_is_the_cause_and_no_part_of_a_circle() -> None:
    groups = {WORLD: range(3), "b": range(3)}
    before = history(6)
    ranks = [
        waiting(0, [*before, call(7, done=False)], groups),
        waiting(1, [*before, call(7, done=False)], groups),
        elsewhere(2, [*before, call(1, group="b", done=False)], groups),
    ]
    verdict = judge(job(ranks))
    assert (verdict.kind, blamed(verdict), verdict.cycle) == (Kind.NEVER_CALLED, [2], ())


def test_a_call_that_has_failed_long_ago_hides_no_newer_one() -> None:
    world = {WORLD: range(3)}
    before = [*history(5)[:2], replace(history(5)[2], done=False), *history(5)[3:]]
    ranks = [waiting(it, [*before, call(6, done=False)], world) for it in range(2)]
    assert blamed(judge(job([*ranks, elsewhere(2, before, world)]))) == [2]
