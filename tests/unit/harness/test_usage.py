"""What a process holds, as the kernel tells it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from rankbridge.harness.usage import upper_bound, usage

CHILD = """
import os, sys, threading
print("ready", flush=True)
sys.stdin.readline()
for _ in range(3):
    threading.Thread(target=threading.Event().wait, daemon=True).start()
pair = os.pipe()
print("more", flush=True)
sys.stdin.readline()
"""


def test_the_upper_bound_counts_every_thread_and_descriptor_of_a_process() -> None:
    command = [sys.executable, "-c", CHILD]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        before = upper_bound(child.pid)
        print(file=child.stdin, flush=True)
        assert child.stdout.readline() == "more\n"
        now = upper_bound(child.pid)
        assert (now.threads, now.fds) == (before.threads + 3, before.fds + 2)
        assert not usage(child.pid).exceeds(now)
        child.stdin.close()
        child.wait()
    with pytest.raises(FileNotFoundError):
        upper_bound(child.pid)
