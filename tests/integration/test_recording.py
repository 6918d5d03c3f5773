"""A session of the driver, written as a scenario, gives the same when it runs."""

from __future__ import annotations

import json
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
from tests.support.gangs import RANKBRIDGE

pytestmark = pytest.mark.usefixtures("quick_gangs")

SESSION: list[dict[str, Any]] = [
    {"do": "open", "protocol": 1, "size": 3, "timeout_ms": 9000},
    {"do": "groups", "groups": {"pair": [2, 0]}},
    {"do": "create", "name": "x", "dtype": "float32", "shape": [2], "fill": "random"},
    {"do": "put", "name": "half", "dtype": "bfloat16", "shape": [2], "base64": "gD8AQA=="},
    {"do": "put", "name": "one", "rank": 1, "dtype": "int8", "shape": [1], "values": [7]},
    {"do": "call", "call": "all_reduce", "of": "x", "as": "y"},
    {"do": "await"},
    {"do": "get", "name": "y", "rank": 1},
    {"do": "call", "call": "all_reduce", "of": "half", "but": {"2": {"op": "max"}}},
    {"do": "await"},
    {"do": "call", "call": "none"},
    {"do": "call", "call": "all_reduce", "of": "none"},
    {"do": "call", "call": "barrier", "absent": [1]},
    {"do": "call", "call": "gather_object", "value": "$rank", "group": "pair"},
    {"do": "each", "each": [{"rank": 1, "call": "barrier"}]},
    {"do": "await"},
    {"do": "call", "call": "barrier", "absent": [2]},
    {"do": "fault", "kill": [2], "at": "waiting"},
    {"do": "await"},
    {"do": "fault", "cont": [1]},
    {"do": "form"},
    {"do": "call", "call": "barrier", "absent": [0], "timeout_ms": 900, "expect": {"error": "PEER_MISSING"}},
]


def test_a_session_is_written_and_gives_the_same(tmp_path: Path) -> None:
    lines = "".join(json.dumps({"id": place, **it}) + "\n" for place, it in enumerate(SESSION))
    said = subprocess.run(
        [RANKBRIDGE, "drive", "--record", "it.toml"],
        cwd=tmp_path,
        input=lines,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert said.stderr == ""
    text = (tmp_path / "it.toml").read_text()
    assert text.startswith("# one was brought to rank 1; here every rank has it\nformat = 1\n")
    it = tomllib.loads(text)
    assert (it["gang"], it["groups"]) == ({"size": 3, "backend": "gloo"}, {"pair": [2, 0]})
    assert it["tensors"]["x"]["fill"] == {"seed": 0}
    assert it["tensors"]["half"] == {"dtype": "bfloat16", "shape": [2], "values": [1.0, 2.0]}
    summed, differs, waits, *_, killed, alone, formed, missing = it["step"]
    assert (summed["expect"], waits["wait"]) == ({"ok": True}, False)
    assert differs["expect"]["error"] == dict.fromkeys("012", "MISMATCH")
    assert killed["fault"] == {"kill": [2], "at": "waiting"}
    assert killed["expect"]["names"] == {it: {"lost": [2]} for it in "01"}
    assert (alone, formed) == (
        {"each": [], "fault": {"cont": [1]}},
        {"form": True, "expect": {"replaced": [2]}},
    )
    assert missing["expect"] == {"error": "PEER_MISSING"}
    done = subprocess.run(
        [RANKBRIDGE, "test", "it.toml"], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stdout


def test_a_file_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    requests: list[dict[str, Any]] = [
        {"do": "open", "protocol": 1, "size": 2, "backend": "fake"},
        {"do": "call", "call": "barrier"},
    ]
    lines = "".join(json.dumps({"id": place, **it}) + "\n" for place, it in enumerate(requests))
    command = [RANKBRIDGE, "drive", "--record", str(tmp_path / "none" / "it.toml")]
    done = subprocess.run(command, input=lines, capture_output=True, text=True, timeout=60)
    last = [json.loads(line) for line in done.stdout.splitlines()][-1]
    assert (last["event"], "No such file" in last["reason"]) == ("not recorded", True)
