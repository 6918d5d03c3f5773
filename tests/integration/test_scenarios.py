"""Scenarios on real gangs: what is as expected is ok, and what is not is said."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.gangs import RANKBRIDGE
from tests.support.waiting import until

from rankbridge.harness.cases import cases_in
from rankbridge.harness.examples import NAMES
from rankbridge.harness.gangs import Pool
from rankbridge.harness.running import Result, run

pytestmark = pytest.mark.usefixtures("quick_gangs")

HEAD = """\
format = 1
name = "it"
gang = { size = 4 }
[tensors.x]
dtype = "float32"
shape = [4]
fill = "rank"
"""


@pytest.fixture(scope="module")
def pool(quick_gangs: None) -> Iterator[Pool]:
    with Pool() as it:
        yield it


def results(pool: Pool, steps: str, head: str = HEAD) -> list[Result]:
    return list(run(cases_in(head + steps, "it.toml"), pool))


def failures(pool: Pool, steps: str, head: str = HEAD) -> list[str]:
    (result,) = results(pool, steps, head)
    return [str(it) for it in result.failures]


def test_the_examples_are_written_and_all_pass(tmp_path: Path) -> None:
    def rankbridge(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [RANKBRIDGE, "test", *arguments], cwd=tmp_path, capture_output=True, text=True, timeout=120
        )

    written = rankbridge("--example", "scenarios").stdout.splitlines()
    assert written == [f"scenarios/{it}.toml" for it in NAMES]
    done = rankbridge("--junit", "junit.xml", *written)
    lines = done.stdout.splitlines()
    assert [it for it in lines[2:] if not it.startswith("ok ")] == []
    assert (done.returncode, done.stderr, lines[:2]) == (0, "", ["TAP version 14", "1..24"])
    suite = ElementTree.parse(tmp_path / "junit.xml").getroot()
    assert (suite.get("tests"), suite.get("failures")) == ("24", "0")
    again = rankbridge("--example", "scenarios")
    assert (again.returncode, "is there already" in again.stderr) == (2, True)


def test_nothing_runs_of_files_of_which_one_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "good.toml").write_text(HEAD + '[[step]]\ncall = "barrier"\n')
    (tmp_path / "bad.toml").write_text(HEAD + '[[step]]\ncall = "barier"\n')
    command = [RANKBRIDGE, "test", "good.toml", "bad.toml"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("bad.toml:9:1: expected an operation")
    assert done.stderr.endswith("got 'barier'; did you mean `barrier`?\n")


def test_a_gang_that_does_not_start_ends_the_run_with_3(tmp_path: Path) -> None:
    (tmp_path / "it.toml").write_text(HEAD + '[[step]]\ncall = "barrier"\n')
    for command in ("false", "/none/rankbridge"):
        done = subprocess.run(
            [RANKBRIDGE, "test", "--report", "json", "it.toml"],
            cwd=tmp_path,
            env={**os.environ, "RANKBRIDGE_COMMAND": command},
            capture_output=True,
            text=True,
            timeout=60,
        )
        begin, stopped = map(json.loads, done.stdout.splitlines())
        assert (done.returncode, begin) == (3, {"event": "begin", "results": 1})
        assert stopped["reason"].startswith("4 ranks on fake did not start: ")


@pytest.mark.sampled
@pytest.mark.parametrize("signum", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_every_rank_ends_with_a_run_that_is_ended(tmp_path: Path, signum: signal.Signals) -> None:
    waits = "absent = [1]\ntimeout_ms = 60000\n"
    (tmp_path / "it.toml").write_text(HEAD + '[[step]]\ncall = "barrier"\n' + waits)
    home = tmp_path / "t"
    home.mkdir()
    process = subprocess.Popen(
        [RANKBRIDGE, "test", "it.toml"],
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(home), "RANKBRIDGE_COMMAND": RANKBRIDGE},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    until(lambda: any(home.glob("rankbridge-*/gang.json")) or any(home.glob("*/*")))
    process.send_signal(signum)
    process.wait(30)
    until(lambda: not any(home.glob("*/rank-*")))


def test_wrong_values_are_said_with_the_first_that_differs_and_the_ranks(pool: Pool) -> None:
    step = '[[step]]\ncall = "all_reduce"\nof = "x"\nexpect.ok = '
    wrong = "4 of 4 elements differ, the first at [0]: expected 7.0, got 6.0"
    assert failures(pool, step + "{ all = 7 }") == [f"ok: ranks 0-3: {wrong}"]
    assert failures(pool, step + "{ 2 = 7 }") == [f"ok: rank 2: {wrong}"]
    assert failures(pool, step + "{ all = [6, 6, 6, 6] }") == []
    assert failures(pool, step + "{ all = [6, 6] }") == ["ok: ranks 0-3: expected float32[2], got float32[4]"]
    assert failures(pool, step + "false") == ["ok: ranks 0-3: expected a failure"]


def test_a_call_that_fails_unexpectedly_is_said_with_its_error_and_its_place(pool: Pool) -> None:
    step = '[[step]]\ncall = "barrier"\n[[step]]\ncall = "all_reduce"\nof = "x"\nabsent = [2]\ntimeout_ms = 2000\n'
    (result,) = results(pool, step)
    assert (result.status, result.line, result.step) == ("failed", 10, "step 2, all_reduce")
    (failure,) = result.failures
    assert failure.ranks == (0, 1, 3)
    assert "missing: rank 2" in failure.text
    # The gang is as good as before.
    assert failures(pool, '[[step]]\ncall = "barrier"') == []


WRONG = {
    'expect.error = "PEER_MISSING"': "error: ranks 0-3: expected PEER_MISSING, got MISMATCH: ",
    'expect.error = { 0 = "MISMATCH", 1 = ["OK", "ABORTED"] }': "error: rank 1: expected OK or ABORTED, got MISMATCH: ",
    'expect = { error = "MISMATCH", indefinite = true }': "indefinite: ranks 0-3: expected true, got false: ",
    'expect = { error = "MISMATCH", sides = [[0, 1], [2, 3]] }': "sides: ranks 0-3: expected [[0, 1], [2, 3]], "
    "got [[0, 1, 3], [2]]: ",
    'expect = { error = "MISMATCH", names = { lost = [2] } }': "names: ranks 0-3: expected lost [2], got []: ",
    'expect = { error = "MISMATCH", within_ms = 1 }': "within_ms: expected 1 ms at most, took ",
}


@pytest.mark.parametrize("expect", WRONG)
def test_every_expectation_can_fail(pool: Pool, expect: str) -> None:
    step = f'[[step]]\ncall = "all_reduce"\nof = "x"\nbut = {{ 2 = {{ op = "max" }} }}\n{expect}'
    (said,) = failures(pool, step)
    assert said.startswith(WRONG[expect])


def test_a_tensor_that_changed_is_not_unchanged(pool: Pool) -> None:
    step = (
        '[[step]]\ncall = "all_reduce"\nof = "x"\nin_place = true\nexpect.ok = true\nexpect.unchanged = ["x"]'
    )
    (said, *_) = failures(pool, step)
    assert said.startswith("unchanged: rank 0: x has changed: 4 of 4 elements differ")


def test_results_have_names_and_what_is_in_place_is_known_afterwards(pool: Pool) -> None:
    steps = """
[[step]]
call = "all_reduce"
of = "x"
in_place = true
expect.ok = { all = 6 }
[[step]]
call = "all_gather"
of = "x"
as = "all"
expect.ok = true
[[step]]
call = "reduce_scatter"
of = "all"
op = "max"
expect.ok = { all = 6 }
[[step]]
call = "broadcast"
of = "all"
src_rank_in_group = 3
expect.ok = true
"""
    assert failures(pool, steps) == []


def test_every_operation_that_a_step_can_call_is_judged_by_the_model(pool: Pool) -> None:
    steps = """
[[step]]
call = "gather"
of = "x"
layout = "stacked"
dst_rank_in_group = 2
expect.ok = true
[[step]]
call = "reduce"
of = "x"
op = "product"
expect.ok = true
[[step]]
call = "scatter"
of = "x"
src_rank_in_group = 1
but = { 0 = { of = "part" }, 2 = { of = "part" }, 3 = { of = "part" } }
expect.ok = { all = 1 }
[[step]]
call = "all_to_all"
of = "rows"
sizes = [[1, 1, 1, 1], [0, 0, 4, 0], [2, 0, 0, 2], [0, 0, 0, 4]]
expect.ok = true
[[step]]
call = "scan"
of = "x"
exclusive = true
expect.ok = { 0 = 0, 1 = 0, 2 = 1, 3 = 3 }
[[step]]
call = "broadcast_object"
value = { steps = [1, 2.5, "three"] }
src_rank_in_group = 2
expect.ok = true
[[step]]
call = "scatter_object"
values = ["a", "b", "c", "d"]
expect.ok = { 3 = "d" }
[[step]]
call = "gather_object"
value = "$rank"
expect.ok = { 0 = [0, 1, 2, 3] }
[[step]]
call = "all_gather_object"
value = ["$rank", "$size"]
expect.ok = true
[[step]]
call = "all_reduce_value"
value = "$rank"
op = "max"
expect.ok = { all = 3 }
[[step]]
call = "broadcast_tensor_dict"
tensors = { w = "x", b = "rows" }
src_rank_in_group = 3
expect.ok = true
[[step]]
each = [
  { rank = 0, call = "send", of = "x", dst_rank_in_group = 3, tag = 1 },
  { rank = 3, call = "recv", src_rank_in_group = 0, tag = 1, into = "x" },
  { rank = 1, call = "send_object", value = "hello", dst_rank_in_group = 2 },
  { rank = 2, call = "recv_object", src_rank_in_group = 1 },
]
expect.ok = true
[[step]]
call = "all_reduce"
of = "x"
expect.ok = { all = 3 }
"""
    more = """
[tensors.part]
dtype = "float32"
shape = [1]
[tensors.rows]
dtype = "int64"
shape = [4, 2]
fill = { seed = 3 }
"""
    assert failures(pool, steps, HEAD + more) == []


def test_of_a_step_that_nobody_waits_for_the_end_is_judged_where_it_is_awaited(pool: Pool) -> None:
    steps = """
[[step]]
name = "late"
call = "barrier"
absent = [3]
wait = false
timeout_ms = {timeout}
[[step]]
each = [{{ rank = 3, call = "barrier" }}]
[[step]]
await = "late"
expect.within_ms = 5000
"""
    assert failures(pool, steps.format(timeout=5000)) == []
    (result,) = results(
        pool, '[[step]]\nname = "late"\ncall = "barrier"\nabsent = [3]\nwait = false\ntimeout_ms = 50'
    )
    assert (result.status, result.step) == ("failed", "step 1, barrier (late)")


def test_a_rank_that_comes_late_is_waited_for_and_a_call_that_is_withdrawn_is_not(pool: Pool) -> None:
    late = '[[step]]\ncall = "barrier"\nfault = { delay_ms = { 1 = 60 } }\nexpect.ok = true\n'
    assert failures(pool, late) == []
    withdrawn = """
[[step]]
call = "barrier"
absent = [3]
fault = { cancel = [1], at = "waiting" }
timeout_ms = 3000
expect.error = { 0 = "PEER_MISSING", 1 = "CANCELLED", 2 = "PEER_MISSING" }
expect.indefinite = false
"""
    assert failures(pool, withdrawn) == []


def test_sometimes_fails_when_no_repetition_had_it(pool: Pool) -> None:
    step = '[[step]]\ncall = "barrier"\nabsent = [3]\ntimeout_ms = {timeout}\nexpect = {expect}\n'
    expect = '{ error = ["PEER_MISSING"], sometimes = { names = { missing = [3] } } }'
    again = HEAD.replace("format = 1", "format = 1\nrepeat = 2")
    found = results(pool, step.format(timeout=500, expect=expect), again)
    assert [(it.name, it.status) for it in found] == [
        ("it (1 of 2)", "ok"),
        ("it (2 of 2)", "ok"),
        ("it: sometimes, in step 1, barrier", "ok"),
    ]
    never = expect.replace("missing = [3]", "missing = [2]")
    *_, last = results(pool, step.format(timeout=50, expect=never), again)
    assert [str(it) for it in last.failures] == ["sometimes: names: in none of 2 repetitions"]


def test_a_fault_that_comes_too_late_is_no_pass(pool: Pool) -> None:
    head = HEAD.replace("size = 4", 'size = 4, backend = "gloo"')
    step = '[[step]]\ncall = "barrier"\nfault = { stop = [1], after_ms = 60000 }\n'
    assert failures(pool, step, head) == ["fault: the step had ended before the fault came"]


def test_ranks_that_are_stopped_or_cut_off_are_lost_and_the_next_case_finds_the_gang_whole(
    pool: Pool,
) -> None:
    head = HEAD.replace("size = 4", 'size = 4, backend = "gloo"')
    for fault in ("stop", "drop_link"):
        steps = f"""
[[step]]
call = "all_reduce"
of = "x"
absent = [2]
fault = {{ {fault} = [2], at = "waiting" }}
expect.error = "PEER_LOST"
expect.names = {{ lost = [2] }}
expect.unchanged = ["x"]
""".replace('expect.unchanged = ["x"]\n', "" if fault == "stop" else 'expect.unchanged = ["x"]\n')
        assert failures(pool, steps, head) == []
        assert failures(pool, '[[step]]\ncall = "barrier"\nexpect.ok = true', head) == []


def test_ranks_that_cannot_reach_each_other_fail_by_control_or_by_data(pool: Pool) -> None:
    head = HEAD.replace("size = 4", 'size = 4, backend = "gloo"')
    steps = """
[[step]]
call = "all_reduce"
of = "x"
absent = [3]
fault = { partition = [[0, 1], [2, 3]], at = "waiting" }
expect.error = { 0 = "PEER_LOST", 1 = "PEER_LOST", 2 = "PEER_LOST" }
expect.names = { 2 = { lost = [0] } }
expect.unchanged = ["x"]
[[step]]
form = true
expect.replaced = []
[[step]]
each = []
fault = { partition = [[1], [2]] }     # their control links are to rank 0: this is the data's alone
[[step]]
call = "all_reduce"
of = "x"
expect.error = ["ABORTED", "BACKEND_FAILED"]
expect.indefinite = true
[[step]]
form = true
[[step]]
call = "all_reduce"
of = "x"
expect.ok = true
"""
    assert failures(pool, steps, head) == []


def test_a_session_without_room_is_refused_on_every_rank_and_has_room_again(pool: Pool) -> None:
    head = HEAD.replace("size = 4", "size = 4, limits = { max_session_refs = 5 }")
    steps = """
[[step]]
call = "all_reduce"
of = "x"
fault = { quota = [2] }
expect.error = "RESOURCE_EXHAUSTED"
expect.indefinite = false
expect.unchanged = ["x"]
[[step]]
call = "all_reduce"
of = "x"
expect.ok = true
"""
    assert failures(pool, steps, head) == []


def test_a_gang_that_dies_fails_its_case_and_the_next_has_another(pool: Pool) -> None:
    head = HEAD.replace("size = 4", 'size = 2, backend = "gloo"')
    step = '[[step]]\ncall = "barrier"\nabsent = [1]\n'
    killed = step + 'fault = { kill = [0, 1], at = "waiting" }\nexpect.error = "PEER_LOST"'
    (result,) = results(pool, killed, head)
    assert result.status == "failed"
    assert failures(pool, '[[step]]\ncall = "barrier"\nexpect.ok = true', head) == []


def test_what_the_backend_has_not_is_skipped_and_says_what(pool: Pool) -> None:
    head = (
        HEAD.replace("size = 4", 'size = 2, backend = "gloo"') + "[needs]\nreductions = { avg = ['int32'] }\n"
    )
    (result,) = results(pool, '[[step]]\ncall = "all_reduce"\nof = "x"', head)
    assert (result.status, result.reason) == ("skipped", "the backend gloo has no avg of int32")


def test_quotas_are_of_the_gang(pool: Pool) -> None:
    head = HEAD.replace("size = 4", "size = 2, limits = { max_session_refs = 1 }")
    assert (
        failures(pool, '[[step]]\ncall = "all_reduce"\nof = "x"\nexpect.error = "RESOURCE_EXHAUSTED"', head)
        == []
    )


def test_a_case_that_is_known_to_fail_fails_the_run_when_it_passes(tmp_path: Path) -> None:
    step = '[[step]]\ncall = "all_reduce"\nof = "x"\nexpect.ok = { all = "$sum" }\n[matrix]\nsum = [6, 7]\n'
    (tmp_path / "it.toml").write_text(HEAD + step)

    known = "format = 1\n" + "".join(
        f'[[known]]\npattern = "{it}"\nreason = "reason"\n' for it in ("it [sum=7]", "*=6]", "other*")
    )
    (tmp_path / "known.toml").write_text(known)
    command = [RANKBRIDGE, "test", "--known-failing", "known.toml", "it.toml"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert 'not ok 1 - it [sum=6]\n  ---\n  message: "it is known to fail, and passes: reason"' in done.stdout
    assert done.stdout.endswith("not ok 2 - it [sum=7] # TODO reason\n")
    assert done.stderr == "known.toml: no case is named other*\n"


@pytest.mark.sampled
def test_a_run_that_fails_is_written_as_a_scenario_and_as_the_smallest_that_fails_so(tmp_path: Path) -> None:
    steps = """
[matrix]
op = ["max", "sum"]
[[step]]
call = "barrier"
[[step]]
call = "all_reduce"
of = "x"
op = "$op"
but = { 3 = { op = "max" } }
fault = { delay_ms = { 1 = 5 } }
expect.ok = true
[[step]]
call = "barrier"
"""
    (tmp_path / "it.toml").write_text(HEAD + steps)

    def test(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [RANKBRIDGE, "test", *arguments]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)

    done = test("it.toml", "--record", "as_it_was.toml", "--shrink", "small.json", "--still", "1/1")
    assert done.returncode == 1
    recorded, *tries, shrunk = done.stderr.splitlines()
    assert tries[0].startswith("3 steps, 4 ranks, ")
    assert recorded == "as_it_was.toml: it [op=sum]"
    assert shrunk.startswith("small.json: 1 steps, 2 ranks, ")
    small = json.loads((tmp_path / "small.json").read_text())
    assert small["tensors"] == {"x": {"dtype": "float32", "shape": [], "fill": "rank"}}
    assert small["step"] == [{"call": "all_reduce", "of": "x", "but": {"1": {"op": "max"}}}]
    again = test("as_it_was.toml", "small.json", "--report", "json")
    failed = [json.loads(line)["message"] for line in again.stdout.splitlines()[1:]]
    assert [it.partition(": expected success, got MISMATCH")[0] for it in failed] == [
        "ok: ranks 0-3",
        "ok: ranks 0-1",
    ]
    refused = test("it.toml", "--shrink", "small.toml", "--still", "4/3")
    assert "--still is K/N, in K of N runs, as 2/3; not '4/3'" in refused.stderr
