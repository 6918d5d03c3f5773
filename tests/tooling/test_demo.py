"""`make demo` stopped at any moment leaves no process behind."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import uuid
from pathlib import Path

import pytest
from tests.support.processes import watched

DEMO = Path(__file__).resolve().parents[2] / "scripts" / "demo.py"
MARK = "RANKBRIDGE_TEST_MARK"
DEADLINE_SECONDS = 60.0


def marked(mark: str) -> dict[int, str]:
    """Command by pid of every process whose environment has the mark and that has not ended."""
    found = {}
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if f"{MARK}={mark}".encode() in (process / "environ").read_bytes().split(b"\0"):
                command = (process / "cmdline").read_bytes()
                found[int(process.name)] = command.replace(b"\0", b" ").decode()
    return found


@pytest.mark.elixir
@pytest.mark.sampled
@pytest.mark.parametrize(
    ("number", "moment"),
    [
        (signal.SIGINT, "demo: compiling"),
        (signal.SIGINT, "demo: starting a gang"),
        (signal.SIGTERM, "demo: starting a gang"),
        (signal.SIGINT, "demo: the gang is ready"),
        (signal.SIGINT, "== Elixir =="),
        (signal.SIGHUP, "== Elixir =="),
        (signal.SIGINT, "== Python =="),
        (signal.SIGKILL, "== Python =="),
    ],
)
def test_a_demo_that_is_stopped_leaves_no_process(number: signal.Signals, moment: str) -> None:
    mark = uuid.uuid4().hex
    with subprocess.Popen(
        [sys.executable, DEMO],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, MARK: mark},
        process_group=0,
    ) as demo:
        assert demo.stdout is not None
        said = []
        for line in demo.stdout:
            said.append(line)
            if line.startswith(moment):
                break
        else:
            pytest.fail(f"the demo never came to {moment!r}; it said: {''.join(said)}")
        pids = list(marked(mark))
        assert pids
        with watched(pids) as running:
            os.killpg(demo.pid, number)  # as a terminal does: to the whole foreground group
            assert demo.wait(DEADLINE_SECONDS) == -number
            demo.stdout.read()
            if number is signal.SIGKILL:  # nobody is left to wait for them: they must find out by themselves
                assert running.alive_after(DEADLINE_SECONDS) == []
    assert marked(mark) == {}


@pytest.mark.elixir
def test_the_demo_succeeds_and_says_the_same_in_both_languages() -> None:
    done = subprocess.run(
        [sys.executable, DEMO], capture_output=True, text=True, timeout=5 * DEADLINE_SECONDS
    )
    assert done.returncode == 0, done.stdout
    _, elixir, python = re.split("\n== (?:Elixir|Python) ==\n", done.stdout)
    python, _, tail = python.partition("\ndemo: ")
    steps = [re.sub(r" +[0-9.]+ ms$", " - ms", line) for line in elixir.splitlines() if line]
    assert steps == [re.sub(r" +[0-9.]+ ms$", " - ms", line) for line in python.splitlines() if line]
    assert steps[-1] == "all values are right"
    assert tail.endswith("no process is left\n")
