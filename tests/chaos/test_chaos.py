"""A short run of chaos, and proof that its checks can fail."""

from __future__ import annotations

import math
import subprocess
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import cast

import pytest
from tests.chaos.controllers.held import Held
from tests.chaos.faults.calls import Mismatch
from tests.chaos.faults.kinds import FAULTS
from tests.chaos.findings import Findings
from tests.chaos.newcomers import SLACK, count_leaks
from tests.chaos.operations import Operation, Values, draw
from tests.chaos.plan import BOTH, CLIENTS, Round, plan
from tests.chaos.run import Report, run
from tests.chaos.scene import Begun, Scene
from tests.chaos.soak import SIZE, Growth, formings
from tests.chaos.table import percentile, table
from tests.support.gangs import RunningGang
from tests.support.sampling import sample

from rankbridge import DeadlineExceededError, Gang, Pending
from rankbridge.harness.cases import load
from rankbridge.harness.usage import Usage, usage

# What allocators may still ask for once, in a run too short for it to matter less than the leak that is looked for.
NOISE_KB = 1024.0
# Its kill hits while the others wait for the victim: what must come of it does not hang on this machine's speed.
SEED = 11


@pytest.mark.parametrize(
    "client",
    sample(["python", *(pytest.param(it, marks=pytest.mark.elixir) for it in ("elixir", BOTH))], 1),
)
def test_a_short_run_holds(client: str, tmp_path: Path) -> None:
    rounds = plan(len(FAULTS), SEED, sizes=[3], max_bytes=1 << 20, clients=[client])
    report = run(rounds, tmp_path, lambda line: None)
    assert report.findings.held, table(report)
    assert report.done == len(rounds)
    assert set(report.findings.times) == {it.kind for it in FAULTS}
    assert {name: it.rounds for name, it in report.findings.clients.items()} == {client: len(rounds)}
    assert set(report.findings.calls) == ({"python", "elixir"} if client == BOTH else {client})
    assert len(report.usage) == 3
    assert (report.held is None) is (client == "python")


def test_forming_again_and_again_leaks_nothing(tmp_path: Path) -> None:
    findings = Findings()
    grown = formings(30, tmp_path, findings, warm_up=20)
    assert findings.held
    assert len(grown) == SIZE
    # `make soak` forms far more often, and takes nothing for noise.
    assert all(it.held(NOISE_KB, noise_fds=1) for it in grown), "\n".join(map(str, grown))


@pytest.mark.parametrize(
    ("after", "held"),
    [
        (Usage(10, 20, 1000), True),
        (Usage(9, 19, 1090), True),
        (Usage(11, 20, 1000), False),
        (Usage(10, 21, 1000), False),
        (Usage(10, 20, 1110), False),
    ],
)
def test_growth_of_threads_descriptors_or_memory_is_found(after: Usage, held: bool) -> None:
    growth = Growth(10, Usage(10, 20, 1000), after)
    assert growth.held() is held
    assert growth.held(noise_kb=10.0) is (held or after.rss_kb == 1110)
    assert growth.held(noise_fds=1) is (held or after.fds == 21)


def test_a_seed_repeats_a_run() -> None:
    one, again, other = (plan(50, seed, [2, 3, 4], 1 << 26) for seed in (1, 1, 2))
    assert one == again
    assert one != other


def test_the_clients_of_a_plan_change_nothing_else() -> None:
    everybody, alone = (plan(50, 1, [2, 3, 4], 1 << 26, clients) for clients in (CLIENTS, ["python"]))
    assert {it.client for it in alone} == {"python"}
    assert [replace(it, callers=()) for it in everybody] == [replace(it, callers=()) for it in alone]


def test_both_clients_issue_about_half_of_a_plans_calls() -> None:
    rounds = plan(500, 1, [2, 3, 4], 1 << 26)
    callers = [caller for it in rounds for caller in it.callers]
    assert 0.4 < callers.count("elixir") / len(callers) < 0.6
    shares = {client: sum(it.client == client for it in rounds) / len(rounds) for client in CLIENTS}
    assert min(shares.values()) > 0.15
    # Every group has the first and the last rank.
    mixed = [it for it in rounds if it.client == BOTH]
    assert all({it.callers[0], it.callers[-1]} == {"python", "elixir"} for it in mixed)
    assert all(len(it.callers) == it.size for it in rounds)
    assert "by elixir, python" in str(next(it for it in mixed if it.callers == ("elixir", "python")))


def test_a_long_plan_has_every_fault_size_and_group() -> None:
    rounds = plan(200, 1, [2, 3, 4], 1 << 26)
    assert {type(it.fault) for it in rounds} == set(FAULTS)
    assert {it.size for it in rounds} == {2, 3, 4}
    assert {it.group for it in rounds} == {"world", "pair"}
    sizes = sorted(it.operation.nbytes for it in rounds)
    assert sizes[0] < 100
    assert 1 << 24 < sizes[-1] <= 1 << 26


@pytest.mark.parametrize("size", [2, 3, 4])
def test_expected_results_are_those_of_plain_arithmetic(size: int) -> None:
    random = Random(0)
    reductions: dict[str, Callable[[list[int]], int]] = {
        "sum": sum,
        "product": math.prod,
        "min": min,
        "max": max,
    }
    kinds = set()
    for _ in range(200):
        operation = draw(random, size, 200)
        inputs = operation.inputs(size)
        results = [None if it is None else it.tolist() for it in operation.results(inputs)]
        lists = [it.tolist() for it in inputs]
        kinds.add(operation.kind)
        assert {it.nbytes for it in inputs} == {operation.nbytes}
        if operation.kind == "all_reduce":
            reduced = [
                reductions[operation.options["op"]](list(column)) for column in zip(*lists, strict=True)
            ]
            if operation.dtype == "uint8":
                reduced = [it % 256 for it in reduced]
            assert results == [reduced] * size
        elif operation.kind == "broadcast":
            assert results == [lists[operation.options["src_rank_in_group"]]] * size
        else:
            joined = [number for it in lists for number in it]
            destination = operation.options.get("dst_rank_in_group")
            assert results == [joined if destination in (None, rank) else None for rank in range(size)]
    assert kinds == {"all_reduce", "broadcast", "gather", "all_gather"}


def test_a_run_whose_expectations_are_forged_does_not_hold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = Operation.results

    def forged(self: Operation, inputs: list[Values]) -> list[Values | None]:
        return [None if it is None else it + it.dtype.type(1) for it in right(self, inputs)]

    monkeypatch.setattr(Operation, "results", forged)
    operation = Operation("all_reduce", "int32", 3, 1, {"op": "sum"})
    report = run(
        [
            Round(
                1,
                2,
                ("python", "python"),
                ((operation, "world"),),
                operation,
                "world",
                Mismatch(0, False, 0.0),
            )
        ],
        tmp_path,
        lambda line: None,
        tmp_path / "rounds",
    )
    assert [it.data["gang"]["size"] for it in load([str(tmp_path / "rounds" / "round-1.toml")])] == [2]
    assert len(report.findings.wrong) == 2
    assert not report.findings.held


def test_a_call_without_an_answer_is_found() -> None:
    class Silent:
        def outcome(self, timeout: float) -> None:
            raise TimeoutError("nothing came")

    findings = Findings()
    pending = cast("Pending[object]", Silent())
    it = Scene(cast(Gang, [None, None]), cast(RunningGang, None), findings)
    outcomes = it.collect(Begun("id", {}, {}, {1: pending}), time.monotonic())
    assert len(findings.hangs) == 1
    assert "rank 1" in findings.hangs[0]
    assert isinstance(outcomes[1][0], DeadlineExceededError)


def test_a_process_that_holds_more_than_at_first_is_found() -> None:
    findings = Findings()
    # A process of its own, that holds the same all the time: this one has threads of gRPC that come and go.
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as idle:
        assert idle.stdin is not None
        assert idle.stdout is not None
        idle.stdin.write(b"\n")
        idle.stdin.flush()
        assert idle.stdout.read(1) == b"\n"
        now = usage(idle.pid)
        it = Scene(cast(Gang, [None]), cast(RunningGang, None), findings, pids=[idle.pid])
        it.baseline[idle.pid] = now
        count_leaks(it, seconds=0.0)
        assert findings.held
        it.baseline[idle.pid] = Usage(now.threads - SLACK - 1, now.fds - SLACK - 1, 0)
        count_leaks(it, seconds=0.0)
        assert len(findings.leaks) == 2
        idle.stdin.close()


def test_the_table_counts_what_was_found() -> None:
    report = Report()
    report.findings.begin_round("kill -9", "both", "round 7")
    report.findings.begin_operation()
    report.findings.calls.update(python=3, elixir=2)
    report.findings.wrong_result("rank 1 got nothing")
    report.findings.hang("rank 2 did not answer")
    report.findings.failed_after(0.3)
    for seconds in (0.2, 0.1, 0.4):
        report.findings.whole_after(seconds)
    report.usage.append((Usage(10, 20, 0), Usage(11, 20, 0)))
    report.held = Held(90, 8), Held(90, 9)
    text = table(report)
    assert "| kill -9 | 1 | 1 | 1 | 300 ms | 300 ms | 200 ms | 400 ms |" in text
    assert "| both | 1 | 1 | 1 | 300 ms | 300 ms | 200 ms | 400 ms |" in text
    assert "operations judged: 1, by 2 elixir and 3 python calls" in text
    assert "processes +0, ports +1" in text
    assert "wrong results: 1; wrong errors: 0; hangs: 1" in text
    assert "threads +1, file descriptors +0" in text
    assert "FOUND: round 7: rank 1 got nothing" in text


@pytest.mark.parametrize(("percent", "expected"), [(50, 2.0), (99, 4.0), (25, 1.0), (75, 3.0)])
def test_a_percentile_is_one_of_the_values(percent: float, expected: float) -> None:
    assert percentile([4.0, 1.0, 3.0, 2.0], percent) == expected
    assert percentile([], percent) is None
