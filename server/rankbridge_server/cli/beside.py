"""Commands that serve something of a gang: by themselves, or beside `rankbridge up`."""

from __future__ import annotations

import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..core.address import Address


class NotServed(Exception):
    """What should be served beside a gang cannot be; says what and where."""


def ready(command: str, url: str) -> None:
    """Says where a command serves."""
    print(_line(command) + url, flush=True)


def wait(stdin: bool) -> None:
    """Waits until an interrupt, or until standard input is closed."""
    awake, wake = socket.socketpair()
    with awake, wake:
        wake.setblocking(False)
        # An interrupt that comes just before the wait would not end it otherwise.
        signal.set_wakeup_fd(wake.fileno())
        try:
            select.select([awake, *([sys.stdin] if stdin else [])], [], [])
        finally:
            signal.set_wakeup_fd(-1)


@contextmanager
def served(command: str, at: Address, endpoints: Path) -> Iterator[str]:
    """Runs the command for a gang in another process; gives the URL. Raises NotServed.

    Another process: this one forks ranks, which must find no gRPC in it, and ranks may be lost.
    """
    started = [sys.executable, "-m", "rankbridge_server", command, "--exit-on-stdin-close"]
    started += ["--listen", str(at), "--endpoints", str(endpoints)]
    with subprocess.Popen(started, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin
        assert process.stdout
        try:
            line = process.stdout.readline()
            if not line.startswith(_line(command)):
                raise NotServed(f"no {command} can be served at {at}")
            yield line.removeprefix(_line(command)).strip()
        finally:
            process.stdin.close()
            # It may have been stopped.
            process.kill()


def _line(command: str) -> str:
    return f"{command}  "
