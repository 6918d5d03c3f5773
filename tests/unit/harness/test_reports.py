"""Results as TAP, JUnit and lines of JSON, and what is known to fail."""

from __future__ import annotations

import io
import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from rankbridge.harness.judging import Failure
from rankbridge.harness.known import load_known
from rankbridge.harness.problems import BadScenario
from rankbridge.harness.reports import JsonLines, Tap, junit
from rankbridge.harness.running import Result

FAILED = Result(
    "a # name",
    "f.toml",
    "failed",
    line=3,
    step="step 1, barrier",
    failures=[Failure("ok", "expected <success>,\n  got \x00 nothing", (0, 2))],
    events=[{"event": "exited", "rank": 2}],
)
RESULTS = [
    Result("fine", "f.toml", took=0.5),
    FAILED,
    Result("none", "f.toml", "skipped", reason="no scan"),
    Result("todo", "f.toml", "failed", failures=[Failure("ok", "no")], known="later"),
    Result("done", "f.toml", known="later"),
]


def test_tap_has_a_plan_and_a_block_for_each_that_counts_as_failed() -> None:
    out = io.StringIO()
    tap = Tap(out)
    tap.begin(5)
    for it in RESULTS:
        tap.result(it)
    tap.stop("no gang")
    assert out.getvalue().splitlines() == [
        "TAP version 14",
        "1..5",
        "ok 1 - fine",
        "not ok 2 - a \\# name",
        "  ---",
        '  message: "ok: ranks 0, 2: expected <success>,"',
        '  at: "f.toml:3"',
        '  step: "step 1, barrier"',
        "  failures:",
        '    - word: "ok"',
        "      ranks: [0, 2]",
        '      text: "expected <success>,\\n  got \\u0000 nothing"',
        "  events:",
        '    - event: "exited"',
        "      rank: 2",
        "  ...",
        "ok 3 - none # SKIP no scan",
        "not ok 4 - todo # TODO later",
        "not ok 5 - done",
        "  ---",
        '  message: "it is known to fail, and passes: later"',
        '  file: "f.toml"',
        "  ...",
        "Bail out! no gang",
    ]


def test_junit_counts_and_escapes() -> None:
    suite = ElementTree.fromstring(junit(RESULTS))
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("5", "2", "1")
    failure = suite.findall("testcase")[1].find("failure")
    assert failure is not None
    assert failure.get("message") == "ok: ranks 0, 2: expected <success>,"
    assert suite.findall("testcase")[3].find("skipped") is not None


def test_lines_of_json_say_the_same() -> None:
    out = io.StringIO()
    report = JsonLines(out)
    report.begin(5)
    for it in RESULTS:
        report.result(it)
    begin, fine, failed, *_, last = map(json.loads, out.getvalue().splitlines())
    assert begin == {"event": "begin", "results": 5}
    assert fine == {"event": "result", "name": "fine", "status": "ok", "ok": True, "took_ms": 500.0}
    assert (failed["ok"], failed["at"], failed["failures"][0]["ranks"]) == (False, "f.toml:3", [0, 2])
    assert (last["ok"], last["known"]) == (False, "later")


def test_a_pattern_takes_brackets_as_they_are(tmp_path: Path) -> None:
    file = tmp_path / "known.toml"
    file.write_text('format = 1\n[[known]]\npattern = "it [n=?]*"\nreason = "why"\n')
    known = load_known(str(file))
    assert known.reason("it [n=?] (1 of 2)") == "why"
    assert known.reason("it [n=1]") == ""
    assert known.unused(["it [n=1]"]) == ["it [n=?]*"]


def test_a_file_of_what_is_known_is_checked_too(tmp_path: Path) -> None:
    file = tmp_path / "known.toml"
    file.write_text('format = 1\n[[known]]\npatern = "it"\nreason = "why"\n')
    with pytest.raises(BadScenario) as caught:
        load_known(str(file))
    assert [str(it).rpartition("/")[2] for it in caught.value.problems] == [
        "known.toml:2:1: known needs `pattern`",
        "known.toml:3:1: unknown word `patern` in known; did you mean `pattern`?",
    ]
