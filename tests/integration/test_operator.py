"""What an operator asks of gangs that run on a host: `rankbridge ls`, `status`, `events`, with nothing configured."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.support.gangs import RANKBRIDGE, up
from tests.support.processes import stop
from tests.support.waiting import until

import rankbridge

TIMEOUT_S = 60


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that stands for a host: no other test's gang runs there."""
    # Short, as sockets' paths must be.
    with tempfile.TemporaryDirectory(prefix="rb") as folder:
        monkeypatch.setenv("TMPDIR", folder)
        monkeypatch.delenv("RANKBRIDGE_ENDPOINTS", raising=False)
        yield Path(folder)


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [RANKBRIDGE, *arguments], capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )


def asked(*arguments: str) -> Any:
    done = run(*arguments, "--json")
    assert "Traceback" not in done.stderr
    return json.loads(done.stdout)


@pytest.mark.sampled
def test_gangs_are_found_by_who_names_none_and_gone_when_they_end(host: Path) -> None:
    assert asked("ls") == []
    with ExitStack() as stack:
        first = stack.enter_context(up(host, 2, "fake", ["--name", "one"], own=True))
        (listed,) = asked("ls")
        assert {name: listed[name] for name in ("gang", "ranks", "backend", "generation")} == {
            "gang": "one",
            "ranks": 2,
            "backend": "fake",
            "generation": 1,
        }
        assert rankbridge.connect(listed["endpoints_file"], session=False).status()[0].pid == first.pids[0]
        assert asked("status")["whole"]
        assert run("call", "barrier").stdout == "null\n"
        stack.enter_context(up(host, 3, "fake", ["--name", "two"], own=True))
        refused = run("status")
        assert refused.returncode == 1
        assert "2 gangs run on this host; say which one:" in refused.stderr
        assert f"--endpoints {listed['endpoints_file']}  (one)" in refused.stderr
        assert len(asked("status", "--gang", "two")["ranks"]) == 3
        assert "by the name of 'three'" in run("status", "--gang", "three").stderr
        table = run("ls").stdout.splitlines()
        assert [line.split()[0] for line in table] == ["gang", "one", "two"] or sorted(
            line.split()[0] for line in table
        ) == ["gang", "one", "two"]
    assert asked("ls") == []


def test_a_gang_whose_agent_was_killed_is_not_listed(host: Path) -> None:
    with up(host, 1, "fake", own=True) as gang:
        assert len(asked("ls")) == 1
        gang.process.kill()
        gang.process.wait(TIMEOUT_S)
        assert asked("ls") == []


def test_the_files_have_the_generation_that_a_controller_has_formed(host: Path) -> None:
    with up(host, 2, own=True) as gang, rankbridge.connect(gang.description) as driver:
        assert [it["generation"] for it in asked("ls")] == [1]
        formed = driver.form()
        assert formed.generation == 2
        until(lambda: json.loads(gang.endpoints_file.read_text())["generation"] == 2)
        until(lambda: [it["generation"] for it in asked("ls")] == [2])


@pytest.mark.sampled
def test_status_answers_when_ranks_do_not(host: Path) -> None:
    options = ["--on-rank-exit", "leave", "--heartbeat-misses", "15"]
    with up(host, 3, options=options, own=True) as gang:
        os.kill(gang.pids[2], signal.SIGKILL)
        until(lambda: all(it["error"] for it in asked("status", "--timeout", "20")["ranks"]))
        found = asked("status", "--timeout", "20")
        assert not found["whole"]
        assert [it["state"] for it in found["ranks"]] == ["over", "over", "not reached"]
        # The others say when they lost it.
        assert found["ranks"][2]["since"] == min(it["since"] for it in found["ranks"][:2])
        assert "UNAVAILABLE" in found["ranks"][2]["error"]
        shown = run("status", "--timeout", "20")
        assert shown.returncode == 1
        assert re.search(r"^2 +not reached +\d\d:\d\d:\d\d$", shown.stdout, re.MULTILINE)
        assert re.search(rf"^0 +{gang.pids[0]} .* over ", shown.stdout, re.MULTILINE)
        assert "rank 2 is lost" in shown.stdout


def test_a_stopped_rank_is_waited_for_no_longer_than_said(host: Path) -> None:
    with up(host, 2, options=["--heartbeat-interval", "60"], own=True) as gang:
        stop(gang.pids[1])
        try:
            found = asked("status", "--timeout", "5")
        finally:
            os.kill(gang.pids[1], signal.SIGCONT)
        assert [it["state"] for it in found["ranks"]] == ["formed", "not reached"]
        # Nor does gRPC wait for longer than 2 s for a connection.
        assert found["ranks"][1]["error"].partition(":")[0] in ("DEADLINE_EXCEEDED", "UNAVAILABLE")


def test_status_names_what_is_pending_and_who_is_missing(host: Path) -> None:
    with up(host, 3, "fake", own=True) as gang, rankbridge.connect(gang.description) as driver:
        for rank in (0, 2):
            driver[rank].submit("barrier", operation_id="stuck", timeout=60)

        def pending() -> list[tuple[Any, ...]]:
            return [
                (it["operation"], it["operation_id"], it["group"], it["at"], it["missing"])
                for it in asked("status")["pending"]
            ]

        at = {"0": "admission", "2": "admission"}
        until(lambda: pending() == [("barrier", "stuck", "world", at, [1])])
        shown = run("status").stdout
        assert re.search(r"^barrier +stuck +world +\d+\.\d s +0 2 \(waiting\) +1$", shown, re.MULTILINE)
        driver[1].barrier(operation_id="stuck")
        # The other ranks may still leave the backend.
        until(lambda: pending() == [])


@pytest.mark.sampled
def test_top_shows_rates_and_for_whom_the_others_wait(host: Path) -> None:
    with up(host, 3, "fake", own=True) as gang, rankbridge.connect(gang.description) as driver:
        with _following("top", "--interval", "0.05", "--json") as lines:
            first = json.loads(next(lines))
            assert [it["per_second"] for it in first["groups"]] == [None]
            driver.all_reduce(driver.put([np.ones(1000, np.float32)] * 3))
            world = _until_a_look(lines, lambda it: it["groups"][0]["per_second"])["groups"][0]
        assert (world["name"], world["ranks"], world["slowest"], world["of"]) == (
            "world",
            [0, 1, 2],
            "all_reduce",
            1,
        )
        assert world["bytes_per_second"] == pytest.approx(4000 * world["per_second"])
        assert world["took"] > world["behind"] >= 0
        for rank in (0, 2):
            driver[rank].submit("barrier", operation_id="stuck", timeout=60)
        until(lambda: [set(it.arrived) for it in driver[0].pending().admissions] == [{0, 2}])
        shown = run("top", "--once", "--interval", "0.01").stdout
        assert re.search(
            r"^world +0 1 2 +0\.0 +0\.0 +1 +\d+\.\d s +1 +[012] \(1 of 1\) ", shown, re.MULTILINE
        )
        assert re.search(
            rf"^2 +\S+ +{gang.pids[2]} +1 +formed +\d\d:\d\d:\d\d +1 +0\.0 +[01] of 1$", shown, re.MULTILINE
        )
        assert re.search(r"^barrier +stuck +world +\d+\.\d s +0 2 \(waiting\) +1$", shown, re.MULTILINE)
        driver[1].barrier(operation_id="stuck")
        until(lambda: not any(it.pending_operations for it in driver.status()))
        found = asked("top", "--once", "--interval", "0.01")
        assert [it["last_in"] for it in found["ranks"]][1] >= 1
        (world,) = found["groups"]
        assert (world["pending"], world["slowest"], world["of"]) == (0, "barrier", 2)


def _until_a_look(lines: Iterator[str], fits: Callable[[Any], object]) -> Any:
    return next(it for it in map(json.loads, lines) if fits(it))


def test_events_follow(host: Path) -> None:
    with up(host, 2, "fake", own=True) as gang, _following("events", "--all", "--json") as lines:
        seen = [json.loads(next(lines)) for _ in range(2)]
        assert sorted((it["event"], it["rank"], it["generation"]) for it in seen) == [
            ("formed", 0, 1),
            ("formed", 1, 1),
        ]
        with rankbridge.connect(gang.description) as driver:
            driver.form()
        later = [json.loads(next(lines)) for _ in range(4)]
        assert sorted((it["event"], it["generation"]) for it in later) == [
            ("formed", 2),
            ("formed", 2),
            ("over", 1),
            ("over", 1),
        ]


def test_events_are_lines_for_people(host: Path) -> None:
    with up(host, 1, "fake", own=True), _following("events", "--all", "--kind", "formed") as lines:
        assert re.fullmatch(r"\d\d:\d\d:\d\d  rank 0  formed: generation 1 of 1 ranks\n", next(lines))


def test_a_reader_that_has_enough_is_no_error(host: Path) -> None:
    with up(host, 2, "fake", own=True):
        following = subprocess.Popen(
            [RANKBRIDGE, "top", "--interval", "0.01", "--json"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        with following:
            assert following.stdout
            assert following.stderr
            following.stdout.readline()
            following.stdout.close()
            assert following.stderr.read() == ""
        assert following.returncode == 128 + signal.SIGPIPE


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_is_told_how_to_complete(shell: str) -> None:
    assert "_RANKBRIDGE_COMPLETE" in run("completion", shell).stdout


def test_bash_completes_commands_operations_and_options(tmp_path: Path) -> None:
    def completed(*words: str) -> list[str]:
        environ = {
            **os.environ,
            "_RANKBRIDGE_COMPLETE": "bash_complete",
            "COMP_WORDS": " ".join(("rankbridge", *words)),
            "COMP_CWORD": str(len(words)),
        }
        done = subprocess.run([RANKBRIDGE], capture_output=True, text=True, env=environ, check=True)
        return [line.partition(",")[2] for line in done.stdout.splitlines()]

    assert completed("st") == ["status"]
    assert completed("call", "all_red") == ["all_reduce", "all_reduce_value"]
    assert completed("call", "all_reduce", "--in") == ["--in-place", "--insecure-token"]
    assert completed("call", "all_reduce", "--op", "m") == ["min", "max"]


class _following:
    """The lines of a command that goes on until it is interrupted."""

    def __init__(self, *arguments: str) -> None:
        self._process = subprocess.Popen([RANKBRIDGE, *arguments], stdout=subprocess.PIPE, text=True)

    def __enter__(self) -> Iterator[str]:
        assert self._process.stdout
        return iter(self._process.stdout)

    def __exit__(self, *_: object) -> None:
        self._process.send_signal(signal.SIGINT)
        assert self._process.stdout
        self._process.stdout.close()
        assert self._process.wait(TIMEOUT_S) in (130, 128 + signal.SIGPIPE)


PAGE = (Path(__file__).resolve().parents[2] / "docs" / "operator.md").read_text()


def test_the_pages_commands_answer(host: Path) -> None:
    asked_for = dict.fromkeys(re.findall(r"`rankbridge ((?:ls|status|top|events|record|call)\b[^`]*)`", PAGE))
    commands = [it.split() for it in asked_for if "OPERATION" not in it]
    assert len(commands) == 10
    with up(host, 2, "fake", own=True):
        for words in commands:
            if words[0] in ("events", "top"):
                with _following(*words, *(["--all"] if words == ["events"] else [])) as lines:
                    assert next(lines)
            else:
                done = run(*words)
                assert (done.returncode, done.stderr) == (0, ""), words


def test_the_pages_session_prints_what_it_says(host: Path) -> None:
    session = PAGE.partition("<!-- shell session: begin -->\n```sh\n")[2].partition("```")[0]
    environ = {**os.environ, "PATH": f"{Path(RANKBRIDGE).parent}:{os.environ['PATH']}"}
    with up(host, 3, "fake", own=True):
        done = subprocess.run(
            ["bash", "-e", "-c", session], capture_output=True, text=True, env=environ, timeout=TIMEOUT_S
        )
    assert done.stderr == ""
    values = '[{"lr": 0.1}, "second", 3]'
    assert done.stdout.splitlines() == [*["[6.0, 6.0, 6.0]"] * 3, *[values] * 3, "6"]
