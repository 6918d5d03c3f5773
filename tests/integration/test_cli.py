"""`rankbridge status` and `rankbridge call`, as a shell uses them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import grpc
import pytest
from tests.conftest import PATIENT
from tests.support.gangs import RANKBRIDGE, RunningGang, up

from rankbridge.v1 import operation_service_pb2, rank_service_pb2, ref_service_pb2
from rankbridge.v1.rank_service_pb2_grpc import RankServiceStub
from rankbridge.v1.ref_service_pb2_grpc import RefServiceStub
from rankbridge_server.cli.commands import COMMANDS

ROOT = Path(__file__).resolve().parents[2]
TIMEOUT_S = 60


def cli(
    gang: RunningGang | None, *arguments: str, folder: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Runs a command. `folder`: where it looks for gangs that run on this host."""
    environ = {key: value for key, value in os.environ.items() if key != "RANKBRIDGE_ENDPOINTS"}
    if folder is not None:
        environ["TMPDIR"] = str(folder)
    if gang is not None:
        environ["RANKBRIDGE_ENDPOINTS"] = str(gang.endpoints_file)
    return subprocess.run(
        [RANKBRIDGE, *arguments], capture_output=True, text=True, timeout=TIMEOUT_S, env=environ, check=False
    )


def call(gang: RunningGang, *arguments: str) -> list[Any]:
    done = cli(gang, "call", *arguments)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def ids(lines: list[Any]) -> list[str]:
    return [line["ref"] for line in lines]


def test_a_program_of_calls_gives_values(gloo2: RunningGang) -> None:
    made = call(gloo2, "create", "float32", "2", "--init", "full:1.5")
    sums = call(gloo2, "all_reduce", *ids(made), "--op", "sum")
    assert call(gloo2, "get", *ids(sums)) == [[3.0, 3.0]] * 2
    assert call(gloo2, "barrier") == [None]
    assert call(gloo2, "release", *ids(made + sums)) == [4]
    assert call(gloo2, "list") == []


@pytest.mark.sampled
def test_sizes_are_a_list_or_rows(gloo2: RunningGang) -> None:
    made = call(gloo2, "put", "[1, 2, 3]", "--dtype", "int64")
    parts = call(gloo2, "reduce_scatter", *ids(made), "--sizes", "1,2")
    assert call(gloo2, "get", *ids(parts)) == [[2], [4, 6]]
    joined = call(gloo2, "all_gather", *ids(parts), "--sizes", "1,2")
    assert call(gloo2, "get", *ids(joined)) == [[2, 4, 6]] * 2
    swapped = call(gloo2, "all_to_all", *ids(made), "--sizes", "1,2/0,3")
    assert call(gloo2, "get", *ids(swapped)) == [[1], [2, 3, 1, 2, 3]]
    listed = call(gloo2, "all_gather", *ids(made), "--layout", "list")
    assert [len(line) for line in listed] == [2, 2]
    call(gloo2, "release", *ids(made + parts + joined + swapped + listed[0] + listed[1]))


@pytest.mark.sampled
def test_values_are_json(gloo2: RunningGang) -> None:
    assert call(gloo2, "all_gather_object", '{"a": [1, null]}', "true") == [[{"a": [1, None]}, True]] * 2
    assert call(gloo2, "broadcast_object", '"x"', "--src-rank-in-group", "1") == ["x", "x"]
    assert call(gloo2, "all_reduce_value", "--op", "max", "--", "-1.5", "-2.0") == [-1.5, -1.5]
    made = call(gloo2, "create", "int8", "2", "--init", "full:3")
    given = json.dumps({"n": 1, "w": {"ref": made[0]["ref"]}})
    given_to = call(gloo2, "broadcast_tensor_dict", given)
    assert [line["n"] for line in given_to] == [1, 1]
    assert call(gloo2, "get", given_to[1]["w"]["ref"]) == [[3, 3]]
    call(gloo2, "release", *ids(made), *{line["w"]["ref"] for line in given_to} - set(ids(made)))


def test_one_rank_is_called_alone(gloo2: RunningGang) -> None:
    made = call(gloo2, "put", "[7]", "--dtype", "int64")
    with subprocess.Popen(
        [RANKBRIDGE, "call", "recv", "--rank", "1", "--endpoints", str(gloo2.endpoints_file)],
        stdout=subprocess.PIPE,
        text=True,
    ) as receiving:
        call(gloo2, "send", made[0]["ref"], "--rank", "0", "--dst-rank-in-group", "1")
        came, source = json.loads(receiving.communicate(timeout=TIMEOUT_S)[0])
    assert (source, call(gloo2, "get", came["ref"])) == (0, [[7]])
    call(gloo2, "release", *ids(made), came["ref"])


def test_groups_are_made_used_and_destroyed(gloo2: RunningGang) -> None:
    assert call(gloo2, "new_group", "one", "1")[0]["ranks"] == [1]
    made = call(gloo2, "put", "[[1, 2], [3, 4]]", "--dtype", "int64")
    gathered = call(gloo2, "all_gather", made[1]["ref"], "--dim", "0", "--group", "one")
    assert gathered[0]["shape"] == [2, 2]
    assert [line["group"] for line in call(gloo2, "groups")] == ["one", "world"]
    assert re.search(r"^one +1 ", cli(gloo2, "status").stdout, re.MULTILINE)
    call(gloo2, "destroy_group", "one")
    assert [line["group"] for line in call(gloo2, "groups")] == ["world"]
    assert not re.search(r"^one ", cli(gloo2, "status").stdout, re.MULTILINE)
    call(gloo2, "release", *ids(made + gathered))


def test_status_shows_ranks_groups_and_refs(gloo2: RunningGang) -> None:
    made = call(gloo2, "create", "int8", "3")
    shown, told = cli(gloo2, "status"), cli(gloo2, "status", "--json")
    call(gloo2, "release", *ids(made))
    assert (shown.returncode, told.returncode) == (0, 0), shown.stderr
    for rank, pid in enumerate(gloo2.pids):
        row = rf"^{rank} +{pid} .* gloo +1 +formed +\d\d:\d\d:\d\d +0$"
        assert re.search(row, shown.stdout, re.MULTILINE)
    assert re.search(r"^world +0 1 +1 +\d+ \d+$", shown.stdout, re.MULTILINE)
    assert re.search(r"^\(shared\) +1 1 +3 3$", shown.stdout, re.MULTILINE)
    answer = json.loads(told.stdout)
    assert (answer["whole"], [it["pid"] for it in answer["ranks"]], answer["pending"]) == (
        True,
        gloo2.pids,
        [],
    )


def test_every_operation_of_the_proto_has_a_command() -> None:
    kinds = {*operation_service_pb2.Operation.DESCRIPTOR.fields_by_name}
    done = cli(None, "call", "--help")
    offered = set(re.findall(r"^  ([a-z_]+)  ", done.stdout.partition("Commands:")[2], re.MULTILINE))
    # `call_function` is the command `function`. The others take operations, or end with their controller's session.
    assert "function" in offered
    others = {"call_function", "coalesce", "run_program", "replay", "begin_capture", "end_capture"}
    assert kinds - offered == others & kinds


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("all_reduce", "nonsense"), "no ref 'nonsense'"),
        (
            ("all_reduce", "1", "--opp", "sum"),
            "No such option '--opp'. (Did you mean one of: '--group', '--op'?)",
        ),
        (("all_reduce", "1", "--op", "mean"), "'mean' is not one of 'sum', 'product'"),
        (("broadcast", "1", "--src", "0"), "'--src'"),
        (("barrier", "red"), "unexpected extra argument (red)"),
        (("create", "float32", "2", "--init", "ones"), "say one of zeros"),
        (("create", "float32", "two"), "two"),
        (("put", "[1,"), "'[1,' is no JSON"),
        (("broadcast_object", "red"), "a text is '\"red\"'"),
        (("all_to_all", "1", "--input-sizes", "1,1"), "--input-sizes is for a call with --rank"),
        (("send", "1", "--dst-rank-in-group", "1"), "Missing option '--rank'"),
        (("all_reduse", "1"), "No such command 'all_reduse'"),
    ],
)
def test_arguments_that_cannot_be_read_are_named(
    gloo2: RunningGang, arguments: tuple[str, ...], said: str
) -> None:
    done = cli(gloo2, "call", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_what_the_ranks_refuse_is_told_with_every_ranks_part(gloo2: RunningGang) -> None:
    done = cli(gloo2, "call", "barrier", "--group", "nowhere")
    assert done.returncode == 1
    assert "nowhere" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("command", [("status",), ("call", "barrier")])
def test_without_a_gang_the_way_to_name_one_is_told(command: tuple[str, ...], tmp_path: Path) -> None:
    done = cli(None, *command, folder=tmp_path)
    assert done.returncode == 1
    assert "RANKBRIDGE_ENDPOINTS" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_gang_that_is_not_there_is_told(tmp_path: Path) -> None:
    done = cli(None, "status", "--endpoints", f"unix:{tmp_path}/nobody", "--timeout", "20")
    assert done.returncode == 1
    assert re.search(r"^0 +not reached$", done.stdout, re.MULTILINE)
    assert "UNAVAILABLE" in done.stdout
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("command", [(), *((name,) for name in COMMANDS)])
def test_help_is_printed(command: tuple[str, ...]) -> None:
    done = cli(None, *command, "--help")
    assert (done.returncode, done.stdout.startswith(f"Usage: {' '.join(('rankbridge', *command))}")) == (
        0,
        True,
    )


@pytest.mark.parametrize("command", [(), *((name,) for name in COMMANDS), ("call", "all_reduce")])
def test_a_command_starts_without_what_it_does_not_need(command: tuple[str, ...]) -> None:
    python = [sys.executable, "-X", "importtime", "-m", "rankbridge_server"]
    done = subprocess.run(
        [*python, *command, "--help"], capture_output=True, text=True, timeout=TIMEOUT_S, check=True
    )
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "click" in imported
    assert imported & {"torch", "grpc", "numpy", "rich", "rankbridge", "asyncio", "opentelemetry"} == set()


def test_the_readmes_python_program_prints_what_it_says(gloo4: RunningGang, tmp_path: Path) -> None:
    readme = (ROOT / "README.md").read_text()
    program = readme.partition("<!-- python example: begin -->\n```python\n")[2].partition("```")[0]
    (tmp_path / "endpoints.json").write_text(json.dumps(gloo4.description))
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("[6. 8.]\n", "")
    assert "# [6. 8.]" in program


def test_the_readmes_shell_program_prints_what_it_says(gloo4: RunningGang) -> None:
    readme = (ROOT / "README.md").read_text()
    program = readme.partition("<!-- call example: begin -->\n```sh\n")[2].partition("```")[0]
    path = f"{Path(RANKBRIDGE).parent}:{os.environ['PATH']}"
    environ = {**os.environ, "PATH": path, "RANKBRIDGE_ENDPOINTS": str(gloo4.endpoints_file)}
    done = subprocess.run(
        ["bash", "-euc", f"{program}\nrankbridge call release $refs $sums"],
        capture_output=True,
        text=True,
        env=environ,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert (done.stdout.splitlines(), done.stderr) == (["[6.0, 6.0]"] * 4 + ["8"], "")


def test_text_of_others_moves_no_cursor(tmp_path: Path) -> None:
    hostile = "\x1b]0;owned\x07\x1b[2J\r\u202e\u009b1m"
    with up(tmp_path, 2, "fake", PATIENT) as running, grpc.insecure_channel(running.targets[0]) as channel:
        opened = RefServiceStub(channel).OpenSession(
            ref_service_pb2.OpenSessionRequest(session_id=hostile), timeout=TIMEOUT_S
        )
        assert not opened.HasField("error")
        shown = cli(running, "status")
        assert (shown.returncode, r"\x1b]0;owned\x07\x1b[2J\r\u202e\x9b1m" in shown.stdout) == (0, True)
        RankServiceStub(channel).AbortGeneration(
            rank_service_pb2.AbortGenerationRequest(generation=1, reason=hostile), timeout=TIMEOUT_S
        )
        shown, refused = cli(running, "status"), cli(running, "call", "barrier")
        assert (shown.returncode, refused.returncode) == (1, 1)
        for text in (shown.stdout, refused.stderr):
            assert r"\x1b]0;owned\x07\x1b[2J\r\u202e\x9b1m" in text
            assert all(it.isprintable() or it == "\n" for it in text)
