"""The Elixir client's part in chaos: that its outcomes are judged, and that its silence is found."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.chaos import run as running, scene as scenes
from tests.chaos.__main__ import main
from tests.chaos.checks import Allowed
from tests.chaos.controllers.elixir import ElixirController
from tests.chaos.controllers.forms import ElixirError, Json, value_of
from tests.chaos.controllers.held import Held
from tests.chaos.controllers.process import (
    ElixirMissingError,
    ElixirProcess,
    NoAnswerError,
    compile_client,
)
from tests.chaos.faults.calls import Cancel, Mismatch
from tests.chaos.faults.fault import Fault
from tests.chaos.findings import Findings
from tests.chaos.operations import Operation, Values
from tests.chaos.plan import Round
from tests.chaos.run import run
from tests.chaos.scene import Scene
from tests.chaos.stage import scene

from rankbridge import CallCancelledError, ErrorCode, RankDetail

SUM = Operation("all_reduce", "int32", 3, 1, {"op": "sum"})
# Says that it is ready, then reads what it is asked and does not answer.
SILENT = "import sys; print('ready', flush=True); sys.stdin.read()"
# Says that it is ready, and ends when it is asked.
ENDING = "import sys; print('ready', flush=True); sys.stdin.readline(); sys.exit('enough')"
BABBLING = "import sys; print('ready', flush=True); sys.stdin.readline(); print('what?', flush=True); sys.stdin.read()"
LATE = "import sys; sys.exit('not today')"


@pytest.fixture(scope="module")
def elixir(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ElixirProcess]:
    compile_client()
    with ElixirProcess(tmp_path_factory.mktemp("elixir") / "log") as process:
        yield process
        assert process.logged() == ""
    assert not process.lost


@pytest.fixture(scope="module")
def stage(elixir: ElixirProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with scene(tmp_path_factory.mktemp("stage"), 2, Findings(), elixir) as it:
        yield it


@pytest.fixture
def pair(stage: Scene) -> Scene:
    """Two ranks that get their calls from Elixir, of which nothing was found yet."""
    stage.findings, stage.callers = Findings(), ("elixir", "elixir")
    return stage


@pytest.mark.elixir
def test_right_outcomes_of_elixir_are_not_found(pair: Scene) -> None:
    assert pair.good(SUM, "world")
    Mismatch(0, False, 0.0).happen(pair, SUM, "world")
    Cancel(0, True, 0.0).happen(pair, SUM, "world")
    assert pair.findings.held, pair.findings.all


@pytest.mark.elixir
@pytest.mark.parametrize("kind", ["all_reduce", "broadcast", "gather", "all_gather"])
def test_what_one_client_put_the_other_fetches(pair: Scene, kind: str) -> None:
    options = {"broadcast": {"src_rank_in_group": 1}, "gather": {"dst_rank_in_group": 0}}.get(kind, {})
    operation = Operation(kind, "float64", 1000, 5, options or {"op": "max"} if "all_g" not in kind else {})
    values = operation.inputs(2)
    for callers in (("python", "elixir"), ("elixir", "python")):
        pair.callers = callers
        refs = pair.put(dict(enumerate(values)))
        flights = [
            pair.start(rank, kind, ref, "world", f"{kind} by {callers}", 30.0, **operation.options)
            for rank, ref in refs.items()
        ]
        outcomes = [it.outcome(60.0) for it in flights]
        for it, expected in zip(outcomes, operation.results(values), strict=True):
            assert it.error is None
            assert (it.value is None) is (expected is None)
            if it.value is not None:
                for controller in pair.controllers.values():
                    np.testing.assert_array_equal(controller.fetch(it.value), expected)
        pair.release(refs)


@pytest.mark.elixir
def test_a_forged_result_of_elixir_is_found(pair: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    right = ElixirController.fetch

    def forged(self: ElixirController, ref: Any) -> Values:
        values = right(self, ref)
        return values + values.dtype.type(1) if ref.rank == 1 else values

    monkeypatch.setattr(ElixirController, "fetch", forged)
    assert pair.good(SUM, "world")
    assert len(pair.findings.wrong) == 2
    assert all("rank 1" in it for it in pair.findings.wrong)


def altered(**fields: Any) -> Callable[[Json], Json]:
    return lambda error: {**error, **fields}


def blaming(rank: int) -> Callable[[Json], Json]:
    return lambda error: {**error, "ranks": [{**it, "rank": rank} for it in error["ranks"]]}


@pytest.mark.elixir
@pytest.mark.parametrize(
    ("change", "found"),
    [
        (lambda error: error, ""),
        (altered(code="PEER_LOST"), "PEER_LOST"),
        (altered(code="OF_A_NEWER_PROTOCOL"), "OF_A_NEWER_PROTOCOL"),
        (altered(indefinite=True), "cannot tell"),
        (altered(ranks=[]), "names []"),
        (blaming(7), "names [7]"),
    ],
)
def test_a_forged_error_of_elixir_is_found(
    pair: Scene, monkeypatch: pytest.MonkeyPatch, change: Callable[[Json], Json], found: str
) -> None:
    right = ElixirProcess.take

    def forged(self: ElixirProcess, line: bytes) -> None:
        answer = json.loads(line)
        if "error" in answer:
            answer["error"] = change(answer["error"])
        right(self, json.dumps(answer).encode())

    monkeypatch.setattr(ElixirProcess, "take", forged)
    Mismatch(0, False, 0.0).happen(pair, SUM, "world")
    errors = pair.findings.errors
    assert len(errors) == (2 if found else 0)
    assert all(found in it for it in errors)


@pytest.mark.elixir
def test_a_call_that_elixir_makes_and_nobody_joins_names_who_is_missing(pair: Scene) -> None:
    begun = pair.begin(SUM, "world", absent={1}, timeout=0.3)
    ((error, _),) = pair.collect(begun, 0.0).values()
    assert isinstance(error, ElixirError)
    assert error.code is ErrorCode.PEER_MISSING
    assert RankDetail(rank=1, rank_in_group=1, state="missing") in error.ranks
    assert (error.group, error.operation, error.operation_id) == ("world", "all_reduce", begun.operation_id)
    pair.judge(begun, {0: (error, None)}, {0: Allowed(frozenset({ErrorCode.PEER_MISSING}), frozenset({1}))})
    assert pair.findings.held


@pytest.mark.elixir
def test_what_the_controller_holds_more_than_at_first_is_found(elixir: ElixirProcess, pair: Scene) -> None:
    now = Held.by(elixir).count_leaks(elixir, pair.findings)
    assert pair.findings.held, pair.findings.all
    assert now.ports >= pair.size
    Held(0, 2 * now.ports).count_leaks(elixir, pair.findings, seconds=0.0)
    Held(2 * now.processes, 0).count_leaks(elixir, pair.findings, seconds=0.0)
    assert len(pair.findings.leaks) == 2


@pytest.mark.elixir
def test_a_request_that_is_none_is_a_crash_and_not_the_end(elixir: ElixirProcess) -> None:
    with pytest.raises(ElixirError, match="FunctionClauseError"):
        elixir.ask("the impossible")
    assert Held.by(elixir).processes > 0


def of_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scenes, "CALL_TIMEOUT_S", 1.0)
    monkeypatch.setattr(scenes, "PATIENCE_S", 1.0)


class Fate(Fault):
    """Something happens to the Elixir controller itself while it waits for a rank."""

    kind = "fate"

    def strike(self, process: ElixirProcess) -> None:
        """Does it."""

    def happen(self, scene: Scene, operation: Operation, group: str) -> None:
        controller = scene.controllers["elixir"]
        assert isinstance(controller, ElixirController)
        begun = scene.begin(operation, group, absent={0})
        self.strike(controller.process)
        scene.judge(begun, scene.collect(begun, 0.0), {1: Allowed(frozenset())})


class Killed(Fate):
    def strike(self, process: ElixirProcess) -> None:
        os.kill(process.pid, signal.SIGKILL)


class Stopped(Fate):
    def strike(self, process: ElixirProcess) -> None:
        process.patience = 1.0
        os.kill(process.pid, signal.SIGSTOP)


class Misled(Fate):
    def strike(self, process: ElixirProcess) -> None:
        process.send({"no": "request"})


@pytest.mark.elixir
@pytest.mark.parametrize(
    ("fate", "why"),
    [(Killed, "ended, with status -9"), (Stopped, "did not answer"), (Misled, "ended, with status 1")],
)
def test_a_controller_that_dies_or_falls_silent_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fate: type[Fate], why: str
) -> None:
    if fate is Stopped:
        # The harness reports the end of one that ends, however long it takes.
        of_seconds(monkeypatch)
    rounds = [
        Round(number, 2, ("elixir", "elixir"), (), SUM, "world", fate(0, False, 0.0)) for number in (1, 2)
    ]
    report = run(rounds, tmp_path, lambda line: None)
    assert report.done == 0
    assert not report.findings.held
    call, run_itself = report.findings.hangs
    assert "rank 1" in call
    assert all(why in it for it in (call, run_itself))
    # What it says when it falls over is found as well.
    assert any("FunctionClauseError" in it for it in report.findings.errors) is (fate is Misled)


@contextmanager
def acting(program: str, directory: Path) -> Iterator[ElixirProcess]:
    with ElixirProcess(directory / "log", [sys.executable, "-c", program], patience=0.2) as process:
        yield process


@pytest.mark.parametrize(
    ("program", "why"),
    [(SILENT, "did not answer connect"), (ENDING, "status 1: enough"), (BABBLING, "which is no answer")],
)
def test_a_program_that_does_not_answer_is_no_controller(tmp_path: Path, program: str, why: str) -> None:
    with acting(program, tmp_path) as process:
        process.patience = 0.2 if program == SILENT else 60.0
        with pytest.raises(NoAnswerError, match=why):
            ElixirController(process, tmp_path, ["unix:nowhere"])
        assert process.lost


def test_a_program_that_does_not_begin_is_no_controller(tmp_path: Path) -> None:
    with pytest.raises(NoAnswerError, match="not today"), acting(LATE, tmp_path):
        pass


def test_a_run_with_a_silent_controller_does_not_hold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def silent(log: Path) -> ElixirProcess:
        return ElixirProcess(log, [sys.executable, "-c", SILENT], patience=0.2)

    monkeypatch.setattr(running, "compile_client", lambda: None)
    monkeypatch.setattr(running, "ElixirProcess", silent)
    rounds = [Round(1, 2, ("elixir", "elixir"), (), SUM, "world", Mismatch(0, False, 0.0))]
    report = run(rounds, tmp_path, lambda line: None)
    assert report.done == 0
    assert len(report.findings.hangs) == 1
    assert "did not answer connect" in report.findings.hangs[0]


@pytest.mark.parametrize(
    "answer", [{"crash": "ouch"}, {"id": 1}, {"error": "no"}, {"ok?": 1}, {"gone": False}]
)
def test_an_answer_that_is_none_is_an_error_that_no_rule_allows(answer: Json) -> None:
    with pytest.raises(ElixirError) as raised:
        value_of(answer)
    assert raised.value.code is ErrorCode.UNSPECIFIED


def test_a_caller_that_was_killed_has_let_go() -> None:
    with pytest.raises(CallCancelledError) as raised:
        value_of({"gone": True})
    assert raised.value.indefinite


def test_without_elixir_chaos_says_so_and_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ElixirMissingError):
        compile_client()
    arguments: Sequence[str] = ["--rounds", "1", "--clients", "elixir"]
    assert main(list(arguments)) == 1
    assert "make setup" in capsys.readouterr().err
