"""A command for `RANKBRIDGE_COMMAND` that is `rankbridge` as a fork of a prepared process, with its caller's streams.

As a program, this is that command: it has what the fork reads and writes, and ends with it.
"""

from __future__ import annotations

import json
import os
import select
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_MAX_MESSAGE = 1 << 17
_STREAMS = 3


@contextmanager
def prepared_command(folder: Path) -> Iterator[str]:
    """Makes the command in a folder, and serves it until it is left."""
    from tests.support.prepared import forked

    command, address = folder / "rankbridge", folder / "prepared"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -S -E {__file__} {address} "$@"\n')
    command.chmod(0o755)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server:
        server.bind(str(address))
        server.listen()

        def serve() -> None:
            with suppress(OSError):
                while True:
                    client, _ = server.accept()
                    with client:
                        message, streams, _, _ = socket.recv_fds(client, _MAX_MESSAGE, _STREAMS)
                        try:
                            client.send(str(forked(message, streams)).encode())
                        finally:
                            for stream in streams:
                                os.close(stream)

        thread = threading.Thread(target=serve)
        thread.start()
        yield str(command)
        server.shutdown(socket.SHUT_RDWR)
        thread.join()


def _main(address: str, *arguments: str) -> None:
    message = {"arguments": arguments, "environ": dict(os.environ), "folder": os.getcwd()}
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server:
        server.connect(address)
        socket.send_fds(server, [json.dumps(message).encode()], [0, 1, 2])
        pid = int(server.recv(32))
    with suppress(ProcessLookupError):
        fork = os.pidfd_open(pid)
        for stream in range(_STREAMS):
            os.close(stream)
        poll = select.poll()
        poll.register(fork, select.POLLIN)
        poll.poll()


if __name__ == "__main__":
    _main(*sys.argv[1:])
