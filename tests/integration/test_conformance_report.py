"""`rankbridge test --conformance`: what it tells the author of a backend."""

from __future__ import annotations

import io
import json
import subprocess
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from glob import escape
from pathlib import Path

import pytest
from tests.support.gangs import RANKBRIDGE
from tests.support.sampling import sample

from rankbridge.errors import ErrorCode, RankBridgeError
from rankbridge.harness.conformance.command import report_on
from rankbridge.harness.conformance.running import probes
from rankbridge.harness.conformance.verdicts import verdict_of
from rankbridge.harness.judging import Failure
from rankbridge.harness.running import Result

pytestmark = pytest.mark.usefixtures("quick_gangs")
BACKENDS = Path(__file__).parent.parent / "support" / "backends"


def reported(module: str, patterns: Sequence[str], junit: Path) -> tuple[int, dict[str, str]]:
    """The exit status, and each case's verdict."""
    out = io.StringIO()
    backend = f"c10d:{BACKENDS / module}.py"
    status = report_on(backend, patterns=patterns, report="json", junit_file=junit, out=out)
    begin, *lines = map(json.loads, out.getvalue().splitlines())
    assert begin["results"] == len(lines)
    return status, {it["name"]: it["verdict"] for it in lines}


@pytest.mark.sampled
def test_three_planted_defects_are_found_and_named(tmp_path: Path) -> None:
    # Values of four dtypes' sums, broadcasts in groups, and the orders in which members enter.
    status, verdicts = reported(
        "broken",
        ["*reduce sum *float*", "broadcast *group*", "all_gather*order*"],
        tmp_path / "junit.xml",
    )
    assert status == 1
    bad = {name: verdict for name, verdict in verdicts.items() if verdict != "right"}
    assert bad == {
        "all_reduce sum bfloat16": "wrong value",
        "reduce sum bfloat16": "wrong value",
        "broadcast float32: in a group of ranks [2, 0, 3]": "wrong value",
        "broadcast float32: in a group of ranks [3, 1]": "wrong value",
        "all_gather: entered in the order 0 3 1 2": "hangs",
    }
    assert len(verdicts) == 36
    cases = ElementTree.parse(tmp_path / "junit.xml").getroot().findall("testcase")
    assert {it.get("name") for it in cases if it.find("failure") is not None} == set(bad)


@pytest.mark.sampled
def test_a_right_backend_has_no_finding(tmp_path: Path) -> None:
    drawn = [escape(it.name) for it in sample(probes(), 30)]
    assert len({it.name for it in probes()}) == len(probes()) > 300
    status, verdicts = reported("toy", drawn, tmp_path / "junit.xml")
    assert (status, set(verdicts.values()), len(verdicts)) == (0, {"right"}, len(drawn))


@pytest.mark.sampled
def test_what_a_backend_lacks_is_unsupported_and_no_finding(tmp_path: Path) -> None:
    ended = subprocess.run(
        [
            RANKBRIDGE,
            "test",
            "--conformance",
            "--backend",
            f"c10d:{BACKENDS / 'partial.py'}",
            "--only",
            "*sum float*",
        ],
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    lines = ended.stdout.splitlines()
    assert "all_reduce sum      right: 1 of 3; unsupported: float64, float16" in lines
    assert "reduce sum          unsupported: all 3 dtypes" in lines


@pytest.mark.parametrize(
    ("code", "text", "word"),
    [
        (ErrorCode.BACKEND_FAILED, "LookupError: no", "raises"),
        (ErrorCode.BACKEND_FAILED, "it did not return in 3.0 s", "hangs"),
        (ErrorCode.ABORTED, "wait timeout after 3000ms", "hangs"),
        (ErrorCode.DEADLINE_EXCEEDED, "not in time", "hangs"),
        (ErrorCode.PEER_LOST, "rank 2 is lost: its connection was closed after a timeout", "dies"),
    ],
)
def test_an_error_has_a_word(code: ErrorCode, text: str, word: str) -> None:
    error = RankBridgeError(text)
    error.code = code
    assert verdict_of(Result("it", "f", "failed", failures=[Failure("ok", text, (1,), error)])) == word


@pytest.mark.parametrize(
    ("failure", "word"),
    [
        (Failure("ok", "1 of 2 elements differ"), "wrong value"),
        (Failure("names", "expected missing [2], got []"), "wrong value"),
        (Failure("fault", "the step had ended before the fault came"), "not run"),
        (Failure("gang", "FORMING_FAILED: wait timeout"), "hangs"),
        (Failure("gang", "FORMING_FAILED: KeyError"), "raises"),
    ],
)
def test_what_was_not_as_expected_has_a_word(failure: Failure, word: str) -> None:
    assert verdict_of(Result("it", "f", "failed", failures=[failure])) == word
