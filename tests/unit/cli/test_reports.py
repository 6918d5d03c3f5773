"""What `rankbridge up` writes for people and for programs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from rankbridge_server.cli.reports import JsonReport, TextReport, WithEndpointsFiles
from rankbridge_server.sidecar import endpoints

GANG = endpoints.describe("name", "gloo", 1, [11, 12], [["unix:/0"], ["unix:/1"]], None)
SHARED = endpoints.describe("name", "fake", 1, [11, 11], [["unix:/0"], ["unix:/1"]], None)


def reported(program: str, **options: Any) -> list[dict[str, Any]]:
    """What a report in a process of its own writes."""
    lines = run(program, **options).stdout.splitlines()
    return [json.loads(line) for line in lines]


def run(program: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """The report takes standard output for itself, so it has a process of its own."""
    begin = "from rankbridge_server.cli.reports import JsonReport\nreport = JsonReport()\n"
    return subprocess.run(
        [sys.executable, "-c", begin + program],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        **options,
    )


def test_every_event_is_a_line_with_its_name() -> None:
    lines = reported(
        f"report.starting(2)\nreport.ready({GANG!r})\nreport.suspected(1, 12)\n"
        "report.exited(1, 12, 'killed by SIGKILL', True)\nreport.replaced(1, 13, ['unix:/1'])\n"
        "report.ended('ended by SIGTERM')\n"
    )
    assert lines[0].pop("pid") > 0
    assert lines == [
        {"event": "starting", "size": 2},
        {
            "event": "ready",
            "name": "name",
            "size": 2,
            "backend": "gloo",
            "generation": 1,
            "ranks": GANG["ranks"],
        },
        {"event": "suspected", "rank": 1, "pid": 12},
        {"event": "exited", "rank": 1, "pid": 12, "how": "killed by SIGKILL", "replaced": True},
        {"event": "replaced", "rank": 1, "pid": 13, "endpoints": ["unix:/1"]},
        {"event": "ended", "reason": "ended by SIGTERM"},
    ]


def test_the_end_of_a_process_of_several_ranks_is_that_of_each() -> None:
    lines = reported(f"report.ready({SHARED!r})\nreport.exited(0, 11, 'exited with status 1', False)")[1:]
    assert [(line["rank"], line["pid"]) for line in lines] == [(0, 11), (1, 11)]


def test_a_replacement_that_ends_before_it_serves_is_the_rank_it_was_meant_for() -> None:
    lines = reported(
        f"report.ready({GANG!r})\nreport.exited(1, 12, 'x', True)\nreport.exited(1, 13, 'y', False)"
    )
    assert [(line["rank"], line["pid"], line["replaced"]) for line in lines[1:]] == [
        (1, 12, True),
        (1, 13, False),
    ]


def test_what_others_print_goes_to_standard_error() -> None:
    result = run(
        "import os\nprint('of Python', flush=True)\nos.write(1, b'of an engine\\n')\nreport.failed('why')"
    )
    assert json.loads(result.stdout) == {"event": "failed", "reason": "why"}
    assert result.stderr.splitlines() == ["of Python", "of an engine", "rankbridge up: why"]


@contextmanager
def standard_output(fd: int) -> Iterator[None]:
    old = os.dup(1)
    os.dup2(fd, 1)
    try:
        yield
    finally:
        os.dup2(old, 1)
        os.close(old)


def test_a_reader_that_is_gone_is_no_failure(capfd: pytest.CaptureFixture[str]) -> None:
    reader, writer = os.pipe()
    with standard_output(writer):
        report = JsonReport()
    os.close(reader)
    os.close(writer)
    report.starting(2)
    report.ended("anything")
    assert capfd.readouterr().out == ""


def test_a_reader_that_takes_nothing_stops_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rankbridge_server.cli.reports._PATIENCE_S", 0.01)
    reader, writer = os.pipe()
    with standard_output(writer):
        report = JsonReport()
    os.close(writer)
    for rank in range(5000):
        report.replaced(rank, rank, [])
    with os.fdopen(reader) as lines:
        os.close(report._fd)
        assert json.loads(lines.readline())["rank"] == 0


def test_a_line_longer_than_a_pipe_takes_at_once_is_whole() -> None:
    many = endpoints.describe("name", "gloo", 1, [1] * 5000, [["unix:/some/where"]] * 5000, None)
    begin = "from rankbridge_server.sidecar import endpoints\n"
    line = reported(
        f"{begin}report.ready(endpoints.describe('name', 'gloo', 1, [1] * 5000, [['unix:/some/where']] * 5000, None))"
    )[0]
    assert line["ranks"] == many["ranks"]


def test_text_is_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    report = TextReport()
    report.starting(2)
    report.ready(GANG)
    report.suspected(1, 12)
    report.exited(1, 12, "killed by SIGKILL", True)
    report.replaced(1, 13, ["unix:/1"])
    report.ended("ended by SIGTERM")
    out, err = capsys.readouterr()
    assert out.splitlines() == [
        "rank 0  pid 11  unix:/0",
        "rank 1  pid 12  unix:/1",
        "ready: 2 ranks on gloo, generation 1",
    ]
    assert err.splitlines() == [
        "rank 1 (pid 12) killed by SIGKILL",
        "rank 1 is replaced by pid 13  unix:/1",
        "rankbridge up: ended by SIGTERM",
    ]


def test_the_endpoints_file_is_true_when_a_replacement_is_told(tmp_path: Path) -> None:
    path = tmp_path / "endpoints.json"
    seen: list[Any] = []

    class Reader(TextReport):
        def replaced(self, rank: int, pid: int, endpoints: list[str]) -> None:
            seen.append(json.loads(path.read_text())["ranks"][rank])

    gang = endpoints.describe("n", "gloo", 1, [11, 12], [["unix:/0"], ["unix:/1"]], None)
    watcher = WithEndpointsFiles(Reader(), endpoints.Published(gang, [path]))
    watcher.exited(1, 12, "killed by SIGKILL", True)
    watcher.replaced(1, 13, ["unix:/2"])
    assert seen == [{"rank": 1, "pid": 13, "endpoints": ["unix:/2"]}]


def test_the_endpoints_files_have_the_generation_as_it_is_now(tmp_path: Path) -> None:
    paths = [tmp_path / "endpoints.json", tmp_path / "gang.json"]
    published = endpoints.Published(endpoints.describe("n", "gloo", 1, [11], [["unix:/0"]], None), paths)
    watcher = WithEndpointsFiles(TextReport(), published)
    for generation in (1, 3, 2):
        watcher.formed(generation)
    assert [json.loads(path.read_text())["generation"] for path in paths] == [3, 3]
    published.remove()
    assert list(tmp_path.iterdir()) == []
