"""Loading a module into ranks, and ending a rank whose function never returns."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest
from tests.conftest import PATIENT
from tests.support.gangs import RANKBRIDGE, RunningGang, up
from tests.support.prepared import rankbridge as rankbridge_command
from tests.support.waiting import until

import rankbridge
from rankbridge import InvalidArgumentError, PeerLostError

APP = str(Path(__file__).parents[1] / "support" / "apps" / "functions.py")


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("import rankbridge_server\n\n1 / 0\n", ["app.py", "line 3", "ZeroDivisionError"]),
        ("raise SystemExit(7)\n", ["SystemExit: 7"]),
        (
            "from rankbridge_server import function\n\n@function\ndef f(): ...\n\n@function(name='f')\ndef g(): ...\n",
            ["two functions have the name 'f'", "app.py:3", "app.py:6"],
        ),
        ("from rankbridge_server import function\n\n@function\nasync def f(): ...\n", ["async", "f"]),
        (None, ["no file"]),
    ],
    ids=["raises", "exits", "twice", "coroutine", "absent"],
)
def test_a_module_that_does_not_import_is_said_with_its_traceback_and_no_gang_starts(
    tmp_path: Path, source: str | None, says: list[str]
) -> None:
    app = tmp_path / "app.py"
    if source is not None:
        app.write_text(source)
    command = ["up", "--size", "2", "--backend", "fake", "--load", str(app), "--report", "json"]
    with rankbridge_command(command) as process:
        assert process.stdout is not None
        *_, last = map(json.loads, process.stdout)
    assert last["event"] == "failed"
    for said in says:
        assert said in last["reason"]
    assert "importlib" not in last["reason"]


def test_a_module_is_found_by_its_name_in_the_current_folder(tmp_path: Path) -> None:
    package = tmp_path / "pack"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "own.py").write_text("VALUE = 5\n")
    (package / "app.py").write_text(
        "from rankbridge_server import function\n\nfrom .own import VALUE\n\n"
        "@function\ndef five() -> int:\n    return VALUE\n"
    )
    endpoints = tmp_path / "endpoints.json"
    command = [
        *(RANKBRIDGE, "up", "--size", "2", "--backend", "fake", "--load", "pack.app"),
        *("--endpoints-file", str(endpoints), "--exit-on-stdin-close"),
    ]
    with subprocess.Popen(
        command, cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert any(line.startswith("ready:") for line in process.stdout)
        with rankbridge.connect(endpoints) as gang:
            assert gang.call("five") == [5, 5]
        assert process.stdin is not None
        process.stdin.close()


def test_what_is_preloaded_is_imported_once_before_the_ranks_are_forked(tmp_path: Path) -> None:
    (tmp_path / "early.py").write_text("import os\n\nPROCESS = os.getpid()\n")
    (tmp_path / "app.py").write_text(
        "import os\n\nimport early\nfrom rankbridge_server import function\n\n"
        "@function\ndef processes() -> list[int]:\n    return [early.PROCESS, os.getpid()]\n"
    )
    options = [*PATIENT, "--load", str(tmp_path / "app.py"), "--preload", str(tmp_path / "early.py")]
    with up(tmp_path, 2, "gloo", options) as running, rankbridge.connect(running.description) as gang:
        early, own = zip(*gang.call("processes"), strict=True)
        assert len(set(early)) == 1
        assert early[0] not in own
        os.kill(own[1], signal.SIGKILL)
        gang.form()
        assert gang[1].call("processes")[0] == early[0]


def test_what_cannot_be_preloaded_is_said_and_no_gang_starts(tmp_path: Path) -> None:
    (tmp_path / "early.py").write_text("1 / 0\n")
    command = ["up", "--size", "2", "--backend", "fake", "--preload", str(tmp_path / "early.py")]
    with rankbridge_command([*command, "--report", "json"]) as process:
        assert process.stdout is not None
        *_, last = map(json.loads, process.stdout)
    assert last["event"] == "failed"
    assert "ZeroDivisionError" in last["reason"]


def test_without_a_module_there_are_no_functions(fake4: RunningGang) -> None:
    description = fake4.description
    with rankbridge.connect(description) as gang:
        assert gang.functions() == []
        with pytest.raises(rankbridge.UnknownFunctionError, match="no function 'f'") as failed:
            gang.call("f")
        assert "rankbridge up --load" in failed.value.expected


def test_a_rank_in_which_a_function_never_returns_is_killed_and_replaced(tmp_path: Path) -> None:
    options = [*PATIENT, "--load", APP]
    with up(tmp_path, 2, "gloo", options) as running, rankbridge.connect(running.description) as gang:
        before = gang[1].status().pid
        with pytest.raises(InvalidArgumentError, match="another process has the rank"):
            gang[1].kill(pid=before + 1)
        call = gang.function("hold_on").start()
        until(lambda: all(it.pending().operations for it in gang))
        gang[0].call("let_go")
        assert gang[1].kill(pid=before) == before
        with pytest.raises(PeerLostError):
            call.result()
        gang.form()
        assert gang[1].status().pid != before
        assert gang.call("add", 1) == [3.0, 3.0]


def test_ranks_that_share_a_process_are_not_killed(fake4: RunningGang) -> None:
    with (
        rankbridge.connect(fake4.description) as gang,
        pytest.raises(InvalidArgumentError, match="has other ranks"),
    ):
        gang[0].kill()
