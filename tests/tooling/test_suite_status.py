"""scripts/test and .ci/run: every suite runs, and none's failure is lost."""

import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PYTEST = "== 1 failed, 12 passed in 3.45s =="
PYTEST_FAILURE = "FAILED tests/test_it.py::test_that - assert 1 == 2"
EXUNIT = "2 doctests, 34 tests, 0 failures"
EXUNIT_FAILURE = "  1) test that (ItTest)"


def stand_in(path: Path, script: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def execute(tree: Path, *command: str | Path, **variables: str) -> "subprocess.CompletedProcess[str]":
    environment = {**os.environ, "WHOLE": "", **variables, "PATH": f"{tree / 'bin'}:{os.environ['PATH']}"}
    return subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize(
    ("pytest_status", "mix_status", "expected"), [(0, 0, 0), (1, 0, 1), (0, 2, 1), (1, 2, 1)]
)
def test_the_tests_fail_if_either_suite_fails(
    tmp_path: Path, pytest_status: int, mix_status: int, expected: int
) -> None:
    shutil.copytree(ROOT / "scripts", tmp_path / "scripts")
    (tmp_path / "elixir_client" / "compat").mkdir(parents=True)
    stand_in(
        tmp_path / ".venv" / "bin" / "python",
        f"echo '{PYTEST_FAILURE}'; echo '{PYTEST}'; exit {pytest_status}",
    )
    stand_in(
        tmp_path / "bin" / "mix",
        f'[ "$1" = compile ] || {{ echo "{EXUNIT_FAILURE}"; echo "{EXUNIT}"; }}; exit {mix_status}',
    )
    done = execute(tmp_path, tmp_path / "scripts" / "test")
    assert done.returncode == expected
    projects = ("elixir_client", "elixir_client/compat")
    folders = "chaos conformance contract cross_language fuzz model score unit"
    beside = " ".join(["pytest", *(f"tests/{it}" for it in folders.split())])
    suites = [
        *(f"{name}: {PYTEST}" for name in ("pytest of the others", beside)),
        *(f"ExUnit in {project}: {EXUNIT}" for project in projects),
    ]
    assert "\n".join(suites) in done.stdout
    closing = done.stdout.split(EXUNIT, len(projects))[-1]
    assert (PYTEST_FAILURE in closing) == (pytest_status == 1)
    assert (EXUNIT_FAILURE in closing) == (mix_status == 2)
    for name in ("pytest of the others", beside):
        assert (f"{name} (status 1)" in done.stderr) == (pytest_status == 1)
    for project in projects:
        assert (f"ExUnit in {project} (status 2)" in done.stderr) == (mix_status == 2)


@pytest.mark.parametrize(("failing", "expected"), [("", 0), ("lint", 1), ("test", 1), ("site", 1)])
def test_ci_runs_all_and_fails_if_one_fails(tmp_path: Path, failing: str, expected: int) -> None:
    shutil.copytree(ROOT / ".ci", tmp_path / ".ci")
    stand_in(tmp_path / "bin" / "make", f'echo "make $1"; [ "$1" != "{failing}" ]')
    done = execute(tmp_path, "bash", ".ci/run")
    assert done.returncode == expected
    assert done.stdout.splitlines() == ["make lint", "make test", "make site"]


@pytest.mark.parametrize(
    ("whole", "option", "of_elixir"), [("", "--sampled", "no 1"), ("1", "--whole", "1 no")]
)
def test_the_suites_have_every_test_once(tmp_path: Path, whole: str, option: str, of_elixir: str) -> None:
    shutil.copytree(ROOT / "scripts", tmp_path / "scripts")
    (tmp_path / "elixir_client").mkdir()
    stand_in(tmp_path / ".venv" / "bin" / "python", 'echo "python $*"')
    stand_in(tmp_path / "bin" / "mix", 'echo "Elixir: ${RANK_BRIDGE_WHOLE-no} ${RANK_BRIDGE_SAMPLED-no}"')
    ran = execute(tmp_path, tmp_path / "scripts" / "test", WHOLE=whole).stdout.splitlines()
    runs = [line.split(" -m pytest ") for line in ran if line.startswith("python ")]
    assert all(("faulthandler_exit_on_timeout=true" in options) == (not whole) for _, options in runs)
    others, few = [options.partition("on_timeout=true ")[2].split() or options.split() for _, options in runs]
    workers = ["-n", "2", "--dist", "loadfile"]
    assert others == [option, *(f"--ignore={folder}" for folder in few[1:]), *workers]
    assert few[0] == option
    assert all((ROOT / folder).is_dir() for folder in few[1:])
    assert f"Elixir: {of_elixir}" in ran


def test_arguments_go_to_one_run_of_pytest(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "scripts", tmp_path / "scripts")
    stand_in(tmp_path / ".venv" / "bin" / "python", 'echo "python $*"')
    ran = execute(tmp_path, tmp_path / "scripts" / "test", "-k", "one").stdout.splitlines()
    (run,) = [line for line in ran if line.startswith("python ")]
    assert run.startswith("python -X faulthandler -m pytest ")
    assert run.endswith(" -k one")


def test_a_suite_that_hangs_is_ended_and_what_a_suite_leaves_behind_is_not_waited_for(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "scripts", tmp_path / "scripts")
    left = tmp_path / "left"
    stand_in(
        tmp_path / ".venv" / "bin" / "python",
        f'case "$*" in *-n\\ 2*) sleep 300 & echo $! >"{left}"; echo "{PYTEST}";; *) exec sleep 300;; esac',
    )
    done = execute(tmp_path, tmp_path / "scripts" / "test", SUITE_S="8")
    os.kill(int(left.read_text()), signal.SIGKILL)
    assert done.returncode == 1
    assert f"pytest of the others: {PYTEST}" in done.stdout
    assert re.search(r"error: failed: pytest tests/.* \(status 124\)$", done.stderr.rstrip())
