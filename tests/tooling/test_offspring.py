"""No process outlives the program that started it: scripts/offspring.py and scripts/lib.sh."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.support.processes import watched

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
DEADLINE_SECONDS = 30.0

# Each is a child that starts a child of its own and says both pids; the stubborn heeds nothing but KILL.
STUBBORN = "trap '' TERM HUP INT; sleep 300 & echo $$ $!; wait"
DOCILE = "sleep 300 & echo $$ $!; wait"

PYTHON_PROGRAM = """
import sys
from offspring import Interrupted, Offspring
with Offspring(grace_seconds=float(sys.argv[2])) as offspring:
    try:
        offspring.start(["sh", "-c", sys.argv[1]]).wait(300)
    except Interrupted as stop:
        offspring.die_by(stop.signal)
"""
SHELL_PROGRAM = f'source "{SCRIPTS}/lib.sh"; GRACE_TENTHS=${{2}}0; run sh -c "$1"'


def programs(script: str, grace_seconds: int) -> dict[str, list[str]]:
    return {
        "python": [sys.executable, "-c", PYTHON_PROGRAM, script, str(grace_seconds)],
        "shell": ["bash", "-c", SHELL_PROGRAM, "bash", script, str(grace_seconds)],
    }


def interrupt(command: list[str], number: signal.Signals) -> tuple[int, list[int]]:
    """Signals the program once its children run: its status, and which of them have not ended."""
    environment = {**os.environ, "PYTHONPATH": str(SCRIPTS)}
    # A shell cannot act on what it was started to ignore, as under nohup.
    command = ["env", "--default-signal", *command]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as program:
        assert program.stdout is not None
        pids = [int(pid) for pid in program.stdout.readline().split()]
        assert len(pids) == 2
        with watched(pids) as children:
            program.send_signal(number)
            return program.wait(DEADLINE_SECONDS), children.alive_after(DEADLINE_SECONDS)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("language", ["python", "shell"])
def test_a_signal_ends_children_and_their_children(language: str, number: signal.Signals) -> None:
    assert interrupt(programs(DOCILE, 2 * int(DEADLINE_SECONDS))[language], number) == (-number, [])


@pytest.mark.parametrize("language", ["python", "shell"])
def test_children_that_ignore_the_request_are_killed(language: str) -> None:
    begun = time.monotonic()
    assert interrupt(programs(STUBBORN, 1)[language], signal.SIGTERM) == (-signal.SIGTERM, [])
    assert time.monotonic() - begun >= 1
