"""What holds for every job."""

from dataclasses import replace

from hypothesis import given, settings, strategies as st
from tests.diagnose.recorded import recorded
from tests.support.jobs import NOW, WORLD, call, job, late, waiting

from rankbridge_server.doctor.bundle import dump, load
from rankbridge_server.doctor.evidence import Evidence
from rankbridge_server.doctor.focus import focus
from rankbridge_server.doctor.judge import judge
from rankbridge_server.doctor.verdict import Kind, Verdict

KEPT = [evidence for _, _, _, evidence in recorded()]


@st.composite
def kept_jobs(draw: st.DrawFn) -> Evidence:
    return KEPT[draw(st.integers(0, len(KEPT) - 1))]


@st.composite
def late_jobs(draw: st.DrawFn) -> Evidence:
    size = draw(st.integers(3, 8))
    absent = draw(st.sets(st.integers(0, size - 1), min_size=1, max_size=size - 1))
    return late(size, sorted(absent), draw(st.integers(0, 6)))


@st.composite
def permuted(draw: st.DrawFn) -> tuple[Evidence, list[int]]:
    evidence = draw(st.one_of(late_jobs(), kept_jobs()))
    order = draw(st.permutations(range(evidence.world_size)))
    return evidence, list(order)


def renamed(evidence: Evidence, order: list[int]) -> Evidence:
    """The same job, whose ranks have other numbers."""
    ranks = []
    for it in evidence.ranks:
        groups = tuple(replace(at, ranks=tuple(order[rank] for rank in at.ranks)) for at in it.groups)
        calls = tuple(
            replace(
                at,
                peer=None if at.peer is None else order[at.peer],
                root=None if at.root is None else order[at.root],
            )
            for at in it.calls
        )
        ranks.append(replace(it, rank=order[it.rank], groups=groups, calls=calls))
    return replace(evidence, ranks=tuple(sorted(ranks, key=lambda it: it.rank)))


def essence(verdict: Verdict, order: list[int]) -> object:
    """What of a verdict is about ranks, by their new numbers."""
    return (
        verdict.kind,
        sorted((order[it.rank], it.condition) for it in verdict.culprits),
        sorted(order[it] for it in verdict.cycle),
        sorted(sorted(order[rank] for rank in it.ranks) for it in verdict.sides),
        sorted((order[it.rank], sorted(order[rank] for rank in it.waits_for)) for it in verdict.waits),
    )


@given(permuted())
def test_other_numbers_of_the_ranks_are_the_same_verdict(job_and_order: tuple[Evidence, list[int]]) -> None:
    evidence, order = job_and_order
    same = list(range(evidence.world_size))
    assert essence(judge(renamed(evidence, order)), same) == essence(judge(evidence), order)


@st.composite
def healthy_jobs(draw: st.DrawFn) -> Evidence:
    """Every rank is at some call of a program that all follow; each has waited for less than the patience."""
    size = draw(st.integers(2, 8))
    groups = {WORLD: range(size), "low": range((size + 1) // 2)}
    kinds = st.sampled_from(["all_reduce", "broadcast", "barrier", "all_to_all_single"])
    program = draw(st.lists(st.tuples(st.sampled_from(list(groups)), kinds), min_size=1, max_size=40))
    # Always last by more than half of a step would be slow.
    jitter = st.floats(0, 0.15)
    ranks = []
    for rank in range(size):
        mine = [(at, *it) for at, it in enumerate(program) if rank in groups[it[0]]]
        mine = mine[: len(mine) - draw(st.integers(0, 1))]
        numbers = dict.fromkeys(groups, 0)
        calls = []
        for at, group, kind in mine:
            numbers[group] += 1
            when = NOW - 1.5 - (len(program) - at) * 0.4 + draw(jitter)
            calls.append(call(numbers[group], kind, group, when, done=at < mine[-1][0]))
        calls = [*calls[:-1], *(replace(it, called_at=NOW - draw(st.floats(0, 1.9))) for it in calls[-1:])]
        ranks.append(replace(waiting(rank, calls, groups), still=draw(st.booleans())))
    return job(ranks)


@given(healthy_jobs())
@settings(max_examples=200)
def test_a_job_in_which_nobody_has_waited_for_long_has_no_culprit(evidence: Evidence) -> None:
    verdict = judge(evidence)
    assert verdict.kind in (Kind.HEALTHY, Kind.UNKNOWN)
    assert verdict.culprits == ()


@given(late_jobs())
def test_exactly_those_that_are_absent_are_named(evidence: Evidence) -> None:
    absent = [it.rank for it in evidence.ranks if all(at.done for at in it.calls)]
    assert [it.rank for it in judge(evidence).culprits] == absent


@given(kept_jobs())
def test_a_bundle_gives_back_the_evidence(evidence: Evidence) -> None:
    assert load(dump(evidence)) == evidence


@given(kept_jobs())
def test_the_verdict_on_what_matters_is_that_on_all(evidence: Evidence) -> None:
    assert judge(focus(evidence)) == judge(evidence)
