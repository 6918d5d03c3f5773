"""`rankbridge page` on the command line, without a browser."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import urlopen

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
        # Those of other tests may still be ending.
        until(lambda: _watches(gang) == 0)
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


def test_an_interrupt_ends_it_at_once_and_the_stream_of_its_browser(fake4: RunningGang) -> None:
    command = [RANKBRIDGE, "page", "--listen", "127.0.0.1:0", "--endpoints", str(fake4.endpoints_file)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as page:
        assert page.stdout
        at = page.stdout.readline().split()[1]
        with urlopen(f"{at}events", timeout=TIMEOUT_S) as stream:
            assert stream.readline().startswith(b"data: ")
            page.send_signal(signal.SIGINT)
            assert page.wait(TIMEOUT_S) == 130
            stream.read()


def test_who_may_only_observe_sees_ranks_and_no_tensors(running: RunningGang, tmp_path: Path) -> None:
    observed = {**running.tcp, "tokens": {"observe": running.description["tokens"]["observe"]}}
    endpoints = tmp_path / "observed.json"
    endpoints.write_text(json.dumps(observed))
    with served("--endpoints", str(endpoints)) as at, rankbridge.connect(running.description) as gang:
        refs = gang.put([[1.0], [2.0]])
        gang.all_reduce(refs)
        where = urlsplit(at)
        ranks: dict[str, dict[str, Any]] = {}
        with closing(HTTPConnection("127.0.0.1", where.port or 0, timeout=TIMEOUT_S)) as connection:
            connection.request("GET", f"{where.path}events")
            for line in connection.getresponse():
                sent = json.loads(line.removeprefix(b"data: ")) if line.startswith(b"data: ") else {}
                ranks |= sent.get("ranks", {})
                # A guest sees its own operations and sessions: none.
                assert "ended" not in sent
                # On a busy machine a rank may answer too late for the first verdict.
                if (sent.get("verdict") or {}).get("kind", "unknown") != "unknown" and len(ranks) == 2:
                    break
            assert [(it["state"], it["well"], it["refs"]) for it in ranks.values()] == [
                ("formed", True, 0)
            ] * 2
            assert sent["verdict"]["kind"] == "healthy"
            with urlopen(f"{at}tensors/0", timeout=TIMEOUT_S) as answer:
                assert json.load(answer)["tensors"] == []


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
