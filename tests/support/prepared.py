"""`rankbridge` as a fork of a process that has imported what it needs, for tests that are about what comes after.

To import torch alone takes a second. As a program, this is the process that is forked: for each message
of its standard input, a socket, which brings a command's arguments, environment and folder, and its three streams.
What starts, reports and ends a gang is the same; tests of the command itself start it as people do.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import traceback
from collections.abc import Mapping, Sequence
from functools import cache
from types import TracebackType
from typing import IO, Any, NoReturn, Self

_MAX_MESSAGE = 1 << 17
_STREAMS = 3


class Forked:
    """A process that was forked for a test, which is no child of it: as `subprocess.Popen`, but without a status."""

    def __init__(self, pid: int, stdin: IO[str], stdout: IO[str]) -> None:
        """Takes over the streams."""
        self.pid = pid
        self.stdin: IO[str] | None = stdin
        self.stdout: IO[str] | None = stdout
        self._pidfd = os.pidfd_open(pid)

    def __enter__(self) -> Self:
        """Gives itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Closes its streams, and waits for its end."""
        for stream in (self.stdin, self.stdout):
            assert stream is not None
            stream.close()
        self.wait()
        os.close(self._pidfd)

    def send_signal(self, number: int) -> None:
        """Sends a signal, if it has not ended."""
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._pidfd, number)

    def kill(self) -> None:
        """Kills it."""
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        """Asks it to end."""
        self.send_signal(signal.SIGTERM)

    def wait(self, timeout: float | None = None) -> None:
        """Waits for its end. Raises `subprocess.TimeoutExpired` when `timeout` seconds have passed before."""
        poll = select.poll()
        poll.register(self._pidfd, select.POLLIN)
        if not poll.poll(None if timeout is None else timeout * 1000):
            raise subprocess.TimeoutExpired(str(self.pid), timeout or 0)


def rankbridge(arguments: Sequence[str], environ: Mapping[str, str] = os.environ) -> Forked:
    """Runs the command with what this process has for folder and standard error."""
    stdin, to_stdin = os.pipe()
    from_stdout, stdout = os.pipe()
    message = {"arguments": list(arguments), "environ": dict(environ), "folder": os.getcwd()}
    try:
        pid = forked(json.dumps(message).encode(), [stdin, stdout, 2])
    finally:
        os.close(stdin)
        os.close(stdout)
    return Forked(pid, os.fdopen(to_stdin, "w"), os.fdopen(from_stdout))


def forked(message: bytes, streams: Sequence[int]) -> int:
    """Has a process forked that runs the message's command on three streams; gives its pid."""
    with _TURN:
        process = _process()
        socket.send_fds(process, [message], list(streams))
        return int(process.recv(32))


_TURN = threading.Lock()


@cache
def _process() -> socket.socket:
    """The process that is forked. It ends with this one, however that ends."""
    ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with its:
        process = subprocess.Popen([sys.executable, __file__], stdin=its.fileno())

    def end() -> None:
        ours.close()
        process.wait()

    atexit.register(end)
    return ours


def _main() -> NoReturn:
    import rankbridge_server.backends.fake
    import rankbridge_server.backends.gloo
    import rankbridge_server.cli.rank_process  # noqa: F401

    # Those that end are waited for by nobody; an interrupt is for those that were forked.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with socket.socket(fileno=os.dup(0)) as requests:
        while True:
            message, streams, _, _ = socket.recv_fds(requests, _MAX_MESSAGE, _STREAMS)
            if not message:
                os._exit(0)
            pid = os.fork()
            if pid == 0:
                requests.close()
                _become(json.loads(message), streams)
            for stream in streams:
                os.close(stream)
            requests.send(str(pid).encode())


def _become(request: dict[str, Any], streams: Sequence[int]) -> NoReturn:
    from rankbridge_server.cli import main

    status = 1
    try:
        for place, stream in enumerate(streams):
            os.dup2(stream, place)
            os.close(stream)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.environ.clear()
        os.environ.update(request["environ"])
        os.chdir(request["folder"])
        status = main(request["arguments"])
        sys.stdout.flush()
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    _main()
