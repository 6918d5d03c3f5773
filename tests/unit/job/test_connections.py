"""Connections of processes: of this one, which has one to itself, and of one that has none."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

import pytest

from rankbridge_server.job.outside.connections import has_connection


@pytest.mark.parametrize(("family", "host"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")])
def test_a_connection_is_of_who_has_it_open_at_either_end(family: socket.AddressFamily, host: str) -> None:
    with socket.socket(family) as listener:
        try:
            listener.bind((host, 0))
        except OSError as error:
            pytest.skip(f"no {host}: {error}")
        listener.listen()
        port = listener.getsockname()[1]
        # To listen is not to be connected.
        assert not has_connection(os.getpid(), port)
        with socket.create_connection((host, port)) as near, listener.accept()[0]:
            assert has_connection(os.getpid(), port)
            assert has_connection(os.getpid(), near.getsockname()[1])
            with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
                assert not has_connection(other.pid, port)
                other.communicate()
    assert not has_connection(os.getpid(), port)


def test_a_process_that_has_ended_has_none() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    assert not has_connection(process.pid, 1)
