"""What ranks log on standard error: what an operator needs, and nothing for a single operation."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.support.gangs import RANKBRIDGE
from tests.support.waiting import until

import rankbridge
from rankbridge.errors import MismatchError, ResourceExhaustedError
from rankbridge_server.cli.logs import OfRank
from rankbridge_server.core.events import Kind

TIMEOUT_S = 30.0


@contextmanager
def gang(directory: Path, options: Sequence[str]) -> Iterator[tuple[Path, dict[str, Any]]]:
    """A gang of two; gives what is on its standard error, and its description."""
    endpoints, errors = directory / "endpoints.json", directory / "stderr"
    arguments = ["up", "--size", "2", "--endpoints-file", str(endpoints), "--max-refs", "8", *options]
    with (
        errors.open("w") as stderr,
        subprocess.Popen(
            [RANKBRIDGE, *arguments], stdout=subprocess.PIPE, stderr=stderr, text=True
        ) as process,
    ):
        try:
            assert process.stdout is not None
            assert any(line.startswith("ready:") for line in process.stdout)
            yield errors, json.loads(endpoints.read_text())
        finally:
            process.terminate()


def logged(errors: Path) -> list[dict[str, Any]]:
    """The lines of JSON; what else is there is of `up` itself."""
    return [json.loads(line) for line in errors.read_text().splitlines() if line.startswith("{")]


def events(errors: Path, rank: int) -> list[str]:
    return [it["event"] for it in logged(errors) if it.get("rank") == rank]


@pytest.mark.sampled
def test_lines_of_json_say_what_happens_to_ranks(tmp_path: Path) -> None:
    with gang(tmp_path, ["--log-format", "json", "--log-level", "info"]) as (errors, description):
        assert events(errors, 0) == events(errors, 1) == ["serving", "formed"]
        with rankbridge.connect(description, timeout=TIMEOUT_S) as controller:
            for _ in range(5):
                controller.barrier()
            refs = controller.create("float32", (2,))
            other = [refs[0], controller[1].create("float32", (3,))]
            assert len(events(errors, 0)) == 2
            with pytest.raises(MismatchError):
                controller.all_reduce(other)
            for _ in range(7):
                controller[0].create("uint8", ())
            with pytest.raises(ResourceExhaustedError):
                controller[0].create("uint8", ())
            with pytest.raises(rankbridge.RankBridgeError):
                rankbridge.connect([rank["endpoints"][1] for rank in description["ranks"]]).close()
            os.kill(description["ranks"][1]["pid"], signal.SIGKILL)
            until(lambda: "over" in events(errors, 0))
        found = {it["event"]: it for it in logged(errors) if it["rank"] == 0}
    assert [found[event]["level"] for event in ("formed", "mismatch", "limit", "refused", "over")] == [
        *("info", "warning", "warning", "warning", "warning")
    ]
    assert found["formed"]["message"] == "a generation of 2 ranks is formed, with groups world [0, 1]"
    assert "rank 1 is lost" in found["over"]["message"]
    assert "float32[3]" in found["mismatch"]["message"]
    assert "too many refs" in found["limit"]["message"]
    assert "no token" in found["refused"]["message"]


def test_by_default_there_is_a_line_for_what_goes_wrong_alone(tmp_path: Path) -> None:
    with (
        gang(tmp_path, []) as (errors, description),
        rankbridge.connect(description, timeout=TIMEOUT_S) as controller,
    ):
        controller.barrier()
        assert "rank 0" not in errors.read_text()
        os.kill(description["ranks"][1]["pid"], signal.SIGKILL)
        until(lambda: "rank 0 warning: the generation is over" in errors.read_text())
    assert " info" not in errors.read_text()


def test_the_page_has_every_event() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "logs.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| (info|warning) \|", page, re.MULTILINE)
    kinds = {kind.name.lower() for kind in Kind}
    assert {event for event, _ in rows} == kinds | {"serving", "refused", "limit"}


def test_what_a_ranks_own_code_prints_begins_with_the_rank() -> None:
    out, end = os.pipe()
    with os.fdopen(out) as read, os.fdopen(end, "w") as stream, OfRank(stream, 3) as marked:
        print("one\ntwo", file=marked)
        print("three", end="", file=marked)
        print(" four", file=marked)
        marked.flush()
        stream.close()
        marked.close()
        assert read.read() == "rank 3: one\nrank 3: two\nrank 3: three four\n"
