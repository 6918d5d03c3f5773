"""`rankbridge page` on the command line, without a browser."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from tests.conftest import PATIENT
from tests.support.gangs import RANKBRIDGE, RunningGang, up
from tests.support.pages import served, url
from tests.support.waiting import until

import rankbridge
from rankbridge import Gang

TIMEOUT_S = 60.0


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningGang]:
    with up(tmp_path_factory.mktemp("page"), 2, "fake", [*PATIENT, "--page", "127.0.0.1:0"]) as it:
        yield it


def test_the_command_names_what_it_cannot_do(running: RunningGang, tmp_path: Path) -> None:
    taken = urlsplit(url(running)).netloc
    cases = [
        (["--listen", taken, "--endpoints", str(running.endpoints_file)], f"cannot be served at {taken}"),
        (["--listen", "[::1"], "must be HOST:PORT"),
        (["--gang", "nobody's"], "no gang of yours runs on this host by the name of"),
        ([str(tmp_path / "nothing")], "is no folder: name the one that"),
    ]
    for arguments, said in cases:
        done = subprocess.run(
            [RANKBRIDGE, "page", *arguments], capture_output=True, text=True, timeout=TIMEOUT_S
        )
        assert (done.returncode, done.stdout) == (2, "")
        assert said in done.stderr
        assert "Traceback" not in done.stderr
    command = [RANKBRIDGE, "up", "--size", "1", "--backend", "fake", "--page", taken]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S)
    assert done.returncode == 1
    assert f"no page can be served at {taken}" in done.stderr


def test_ranks_are_asked_while_a_browser_looks_and_not_otherwise(fake4: RunningGang) -> None:
    with (
        rankbridge.connect(fake4.description, timeout=TIMEOUT_S) as gang,
        served("--endpoints", str(fake4.endpoints_file)) as at,
    ):
        assert _watches(gang) == 0
        where = urlsplit(at)
        with subprocess.Popen(
            [sys.executable, "-c", _READ, str(where.port), where.path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        ) as reader:
            assert reader.stdin
            until(lambda: _watches(gang) == 4)
            reader.stdin.close()
            reader.wait(TIMEOUT_S)
        until(lambda: _watches(gang) == 0)


_READ = """
import http.client, sys, threading
connection = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]))
connection.request("GET", sys.argv[2] + "events")
threading.Thread(target=connection.getresponse().read, daemon=True).start()
sys.stdin.read()
"""


def _watches(gang: Gang) -> int:
    """Threads of the process of all ranks that answer a watch of a record."""
    frames = [frame.function for it in gang[0].stacks() for frame in it.frames]
    return sum("RecordWatch.wait" in it for it in frames)
