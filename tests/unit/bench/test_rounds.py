"""Who is measured when."""

from pathlib import Path

import pytest
from bench import rounds
from bench.contender import Contender
from bench.operation import BY_NAME
from bench.rounds import Plan, Run, Turn, in_order, turns
from bench.samples import Measure, Samples


def turn(name: str) -> Turn:
    # Not asked for anything.
    return Turn(Contender.__new__(Contender), "calls", BY_NAME[name])


def test_every_other_round_goes_backward() -> None:
    turns = [turn("barrier"), turn("all_reduce_4B"), turn("broadcast_4MB")]
    assert list(in_order(turns, 0)) == turns
    assert list(in_order(turns, 1)) == turns[::-1]
    assert list(in_order(turns, 2)) == turns


def test_what_is_large_is_measured_in_few_rounds() -> None:
    turns = [turn("barrier"), turn("fetch_1GiB")]
    rounds_of_it = [number for number in range(10) if turns[1] in list(in_order(turns, number))]
    assert rounds_of_it == [0, 1, 2]


def test_a_block_has_at_least_one_call() -> None:
    plan = Plan(rounds=1, seconds=1.0, scale=0.001)
    assert plan.calls(BY_NAME["barrier"]) == 1


@pytest.fixture
def steady(monkeypatch: pytest.MonkeyPatch) -> None:
    def stand_in(name: str, *arguments: str, log: Path) -> Contender:
        return Contender(name, *arguments, log=log, module="tests.unit.bench.stand_ins")

    monkeypatch.setattr(rounds, "Contender", stand_in)


def run(plan: Plan, log: Path) -> Run:
    return Run(size=2, plan=plan, samples=Samples(), loads=[], log=log, say=lambda text: None)


@pytest.mark.usefixtures("steady")
def test_a_round_takes_what_is_there_and_tells_what_is_not(tmp_path: Path) -> None:
    it = run(Plan(rounds=3, seconds=600.0, scale=0.1, quick=True), tmp_path)
    rounds.measure(["absent", "steady"], it)
    # It dies when it is asked for a broadcast, before the first round.
    assert list(it.samples) == []
    assert it.samples.why_missing(Measure("steady", "calls", "barrier", 2)) == "it has ended"
    for where, why in {
        ("steady", "calls", "all_reduce_4B"): "failed: ValueError: 1 calls too many",
        ("steady", "calls", "broadcast_4MB"): "failed: it has ended: a line on standard output",
        ("steady", "stream", "barrier"): "no streams",
        ("steady", "calls", "fetch_64MB"): "no fetch",
        ("absent", "calls", "barrier"): "No module named 'a_peer_that_nobody_has'",
    }.items():
        assert it.samples.why_missing(Measure(*where, 2)) == why


@pytest.mark.usefixtures("steady")
def test_every_round_adds_a_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounds, "OPERATIONS", [BY_NAME["barrier"]])
    it = run(Plan(rounds=2, seconds=600.0, scale=0.1, quick=True), tmp_path)
    rounds.measure(["steady"], it)
    assert it.samples[Measure("steady", "calls", "barrier", 2)].seconds == [2.0] * 10
    assert len(it.loads) == 2


@pytest.mark.usefixtures("steady")
@pytest.mark.parametrize(("free", "blocks"), [(1 << 50, 3), (0, 0)])
def test_what_takes_much_memory_is_measured_alone_if_there_is_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free: int, blocks: int
) -> None:
    monkeypatch.setattr(rounds, "OPERATIONS", [BY_NAME["put_1GiB"]])
    monkeypatch.setattr(rounds, "available_bytes", lambda: free)
    it = run(Plan(rounds=20, seconds=600.0), tmp_path)
    rounds.measure(["steady"], it)
    samples = {measure: sample.calls for measure, sample in it.samples.items()}
    assert samples == ({Measure("steady", "calls", "put_1GiB", 2): blocks} if blocks else {})
    assert (("steady", "large tensors") in it.samples.missing) == (not blocks)


@pytest.mark.usefixtures("steady")
def test_a_quick_run_leaves_it_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounds, "OPERATIONS", [BY_NAME["put_1GiB"]])
    it = run(Plan(rounds=1, seconds=600.0, quick=True), tmp_path)
    rounds.measure(["steady"], it)
    assert len(it.samples) == 0


@pytest.mark.usefixtures("steady")
def test_no_further_round_begins_when_the_time_is_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rounds, "OPERATIONS", [BY_NAME["barrier"]])
    it = run(Plan(rounds=50, seconds=0.0, scale=0.02, quick=True), tmp_path)
    rounds.measure(["steady"], it)
    assert it.samples[Measure("steady", "calls", "barrier", 2)].calls == 1


def test_what_is_compared_is_measured_one_after_the_other() -> None:
    ours, theirs = (Contender.__new__(Contender) for _ in range(2))
    ours.ways = {"gang": ["barrier", "put_1GiB"], "ranks": ["barrier"]}
    theirs.ways = {"calls": ["empty_all", "barrier"]}
    order = [(it.operation.name, it.contender, it.way) for it in turns([theirs, ours], alone=False)]
    assert order == [
        ("empty_all", theirs, "calls"),
        ("barrier", theirs, "calls"),
        ("barrier", ours, "gang"),
        ("barrier", ours, "ranks"),
    ]
