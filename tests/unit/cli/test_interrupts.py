"""What becomes of an interrupt while a command is being imported."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from rankbridge_server.cli.interrupts import interrupts_end_it

# The place where Python ignores exceptions is the end of an object.
PROGRAM = """
import signal, sys
from rankbridge_server.cli.interrupts import interrupts_end_it
class Module:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)
with interrupts_end_it():
    Module()
print("goes on")
"""


def test_an_interrupt_where_exceptions_are_ignored_ends_the_process() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (-signal.SIGINT, "")


@pytest.mark.parametrize("handler", [signal.SIG_IGN, lambda *_: None, signal.default_int_handler])
def test_whoever_handles_or_ignores_interrupts_still_does(handler: signal._HANDLER) -> None:
    before = signal.signal(signal.SIGINT, handler)
    try:
        with interrupts_end_it():
            meanwhile = signal.getsignal(signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert (meanwhile is handler) is (handler is not signal.default_int_handler)
