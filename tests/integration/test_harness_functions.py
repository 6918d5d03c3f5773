"""Functions of a module in scenarios and in the driver."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.gangs import RANKBRIDGE

from rankbridge.harness.cases import cases_in
from rankbridge.harness.gangs import Pool
from rankbridge.harness.running import run

pytestmark = pytest.mark.usefixtures("quick_gangs")

APP = """
import torch
import torch.distributed as dist
import rankbridge_server

calls = 0

@rankbridge_server.function
def step(context, batch, lr=1.0):
    global calls
    calls += 1
    gradient = batch.clone()
    dist.all_reduce(gradient)
    return {"calls": calls, "loss": float(gradient.sum()), "scaled": [gradient * lr]}

@rankbridge_server.function
def fails_on(context, rank: int):
    if context.rank == rank:
        raise ValueError("no batch")
    total = torch.ones(1)
    dist.all_reduce(total)

@rankbridge_server.function
def doubled(x):
    return x * 2

entered = {"world": 0, "pair": 0}

@rankbridge_server.function
def loop(context, steps: int):
    found = []
    for _ in range(steps):
        source = torch.tensor([float(context.rank)])
        dist.broadcast(source, 0)
        entered["world"] += 1
        if context.rank > 0:
            total = torch.tensor([float(context.rank), 1.0])
            dist.all_reduce(total, group=context.group("pair"))
            entered["pair"] += 1
            found.append([float(source), *total.tolist()])
    return found

@rankbridge_server.function
def counted():
    return entered
"""
# On a busy machine it may take longer than the usual 10 s until ranks are ready for functions.
HEAD = """\
format = 1
name = "it"
timeout_ms = 60000
gang = { size = 3, load = "app.py" }
[tensors.x]
dtype = "float32"
shape = [2]
fill = "rank"
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    it = tmp_path_factory.mktemp("scenario")
    (it / "app.py").write_text(APP)
    return it


@pytest.fixture(scope="module")
def pool(quick_gangs: None) -> Iterator[Pool]:
    with Pool() as it:
        yield it


def failures(pool: Pool, folder: Path, first: str, steps: str) -> list[list[str]]:
    """What was not as expected, of each repetition."""
    found = run(cases_in(f"{first}\n{HEAD}{steps}", str(folder / "it.toml")), pool)
    return [[str(failure) for failure in it.failures] for it in found]


def test_functions_are_called_with_arguments_by_rank_and_what_they_give_and_raise_is_judged(
    pool: Pool, folder: Path
) -> None:
    steps = """
[[step]]
call = "call_function"
function = "step"
tensors = { batch = "x" }
named = { lr = 0.5 }
but = { 2 = { named = { lr = 2.0 } } }
expect.ok = { 0 = { calls = 1, loss = 6, scaled = [1.5] }, 2 = { calls = 1, loss = 6, scaled = [[6, 6]] } }
expect.unchanged = ["x"]
[[step]]
call = "call_function"
function = "doubled"
args = ["$rank"]
expect.ok = { 0 = 0, 1 = 2, 2 = 4 }
[[step]]
each = [{ rank = 1, call = "call_function", function = "doubled", tensors = { x = "x" }, alone = true, as = "y" }]
[[step]]
call = "call_function"
function = "fails_on"
args = [1]
expect.error = "FUNCTION_FAILED"
expect.raised = { type = "ValueError", text = "batch", where = "app.py:", rank = 1 }
[[step]]
form = true
[[step]]
each = [{ rank = 1, call = "call_function", function = "doubled", tensors = { x = "y" } },
  { rank = 0, call = "call_function", function = "doubled", args = ["a"] },
  { rank = 2, call = "call_function", function = "doubled", args = [[]] }]
expect.ok = { 0 = "aa", 1 = 4, 2 = [] }
"""
    assert failures(pool, folder, "", steps) == [[]]


def test_each_repetition_has_the_module_as_it_was_and_what_differs_is_said(pool: Pool, folder: Path) -> None:
    steps = """
[[step]]
call = "call_function"
function = "step"
tensors = { batch = "x" }
expect.ok = { all = { calls = 1, loss = 6, scaled = [7] } }
"""
    wrong = "ok: ranks 0-2: scaled: 2 of 2 elements differ, the first at [0]: expected 7.0, got 3.0"
    assert failures(pool, folder, "repeat = 2", steps) == [[wrong], [wrong]]
    again = '[[step]]\ncall = "call_function"\nfunction = "fails_on"\nargs = [0]\n'
    expect = 'expect.error = "FUNCTION_FAILED"\nexpect.raised = { type = "KeyError" }\n'
    (said,) = failures(pool, folder, "", again + expect)
    line = APP.split("\n").index('        raise ValueError("no batch")') + 1
    got = f"got ValueError: no batch (rank 0, app.py:{line} in fails_on)"
    assert said == [f"raised: ranks 0-2: expected type 'KeyError', {got}"]


def test_faults_come_before_the_collective_of_a_function_that_they_name(pool: Pool, folder: Path) -> None:
    steps = """
[groups]
pair = [1, 2]
[[step]]
call = "call_function"
function = "loop"
args = [3]
fault = { kill = [2], at = "second all_reduce of group pair on rank 1" }
expect.error = { 1 = "PEER_LOST" }
[[step]]
form = true
expect.replaced = [2]
[[step]]
call = "call_function"
function = "counted"
expect.ok = { 1 = { world = 2, pair = 1 }, 2 = { world = 0, pair = 0 } }
[[step]]
call = "call_function"
function = "loop"
args = [3]
fault = [
  { change = { 1 = { op = "max" }, 2 = { op = "max" } }, at = "second all_reduce of group pair" },
  { change = { 0 = { root_rank_in_group = 2 } }, at = "3rd broadcast" },
  { change = { 1 = { root_rank_in_group = 2 } }, at = "3rd broadcast" },
  { change = { 2 = { root_rank_in_group = 2 } }, at = "3rd broadcast" },
  { delay_ms = { 1 = 50 }, at = "first all_reduce" },
]
expect.ok = { 0 = [], 1 = [[0, 3, 2], [0, 2, 1], [2, 3, 2]], 2 = [[0, 3, 2], [0, 2, 1], [2, 3, 2]] }
[[step]]
call = "call_function"
function = "loop"
args = [2]
timeout_ms = 3000
fault = { hold = [1], at = "second broadcast" }
expect.error = { 1 = "DEADLINE_EXCEEDED", 2 = "DEADLINE_EXCEEDED" }
[[step]]
form = true
[[step]]
call = "call_function"
function = "loop"
args = [1]
fault = { kill = [1], at = "second barrier" }
"""
    (said,) = failures(pool, folder, "", steps)
    assert said == ["fault: rank 1 did not come to the second barrier"]


def test_a_driver_calls_functions_of_its_folder_and_refuses_a_file_that_is_not_there(folder: Path) -> None:
    requests: list[dict[str, object]] = [
        {"do": "open", "protocol": 1, "size": 2, "load": "none.py"},
        {"do": "open", "protocol": 1, "size": 2, "load": ["app.py"], "points": True},
        {"do": "create", "name": "x", "dtype": "float32", "shape": [2], "fill": "rank"},
        {"do": "call", "call": "call_function", "function": "step", "tensors": {"batch": "x"}},
        {"do": "await"},
        {"do": "call", "call": "call_function", "function": "fails_on", "args": [0]},
        {"do": "await"},
        {"do": "call", "call": "call_function", "function": "doubled", "args": [1], "of": "x"},
        {"do": "form"},
        {"do": "fault", "kill": [1], "at": "first all_reduce"},
        {"do": "call", "call": "call_function", "function": "fails_on", "args": [2]},
        {"do": "await"},
        {"do": "close"},
        {"do": "open", "protocol": 1, "size": 2, "backend": "fake"},
        {"do": "fault", "cancel": [1], "at": "first barrier"},
        {"do": "call", "call": "barrier", "fault": {"cancel": [1], "at": "first barrier"}},
    ]
    text = "".join(json.dumps({"id": place, **it}) + "\n" for place, it in enumerate(requests))
    command = [RANKBRIDGE, "drive"]
    done = subprocess.run(command, cwd=folder, input=text, capture_output=True, text=True, timeout=60)
    said = {it["id"]: it for it in map(json.loads, done.stdout.splitlines()) if "id" in it}
    assert said[0]["error"]["message"] == f"there is no file {folder / 'none.py'}"
    scaled = [{"dtype": "float32", "shape": [2]}]
    assert said[3]["ok"]["ranks"]["1"] == {"calls": 1, "loss": 2.0, "scaled": scaled}
    raised = said[5]["error"]["ranks"]["1"]["raised"]
    assert (raised["rank"], raised["type"], raised["text"]) == (0, "ValueError", "no batch")
    assert said[9] == {"id": 9, "ok": {}}
    assert {it["code"] for it in said[10]["error"]["ranks"].values()} == {"PEER_LOST", "UNAVAILABLE"}
    refused = "collectives of functions are no points in this gang: first barrier"
    assert said[15]["error"]["message"] == refused
    assert said[7]["error"]["message"] == "unknown word `of` in request of call; did you mean `do`?"
