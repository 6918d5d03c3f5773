"""The plugin for pytest, as pytest loads it: gangs for tests, which leave nothing behind."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from tests.support.gangs import RANKBRIDGE

pytestmark = pytest.mark.usefixtures("quick_gangs")

TESTS = """
import os
import numpy as np
import pytest
import rankbridge

pids = {}

def total(gang):
    refs = gang.put([np.full(2, rank, np.float32) for rank in range(len(gang))])
    return gang[1].get(gang.all_reduce(refs)[1]).tolist()

@pytest.mark.gang(size=[2, 3], backend=["fake", "gloo"])
def test_runs_with_each(gang):
    pids.setdefault(len(gang), {})[os.environ["PYTEST_CURRENT_TEST"]] = gang.pids
    assert total(gang) == [sum(range(len(gang)))] * 2

@pytest.mark.gang(size=3, backend="gloo")
def test_fails_while_a_rank_is_missing(gang):
    assert gang.pids in pids[3].values()
    gang[0].submit("barrier", group=gang.group, operation_id="alone", timeout=60)
    while not gang[0].pending().admissions:
        pass
    assert gang.pids == {}

@pytest.mark.gang(size=3, backend="gloo")
def test_finds_the_gang_whole_after_a_failure(gang):
    assert gang.pids in pids[3].values()
    assert total(gang) == [3, 3]
    assert gang.client.status()[0].generation > 1

@pytest.mark.gang(size=3, backend="gloo")
def test_kills_a_rank(gang):
    waiting = gang[0].start("barrier", group=gang.group, timeout=60)
    while not gang[0].pending().operations:
        pass
    gang.kill(2)
    assert waiting.exception().code == "PEER_LOST"
    gang.form()
    assert total(gang) == [3, 3]

@pytest.mark.gang(size=3, backend="gloo")
def test_fails_after_calls(gang):
    refs = gang.put([np.full(2, rank, np.float32) for rank in range(3)])
    sums = gang.all_reduce(refs, op="max")
    gang.new_group("pair", [0, 2])
    assert gang.all_gather_object([1, 2, 1]) == [[1, 2, 1]] * 3
    sent = gang[0].start("send", sums[0], dst_rank_in_group=1, tag=3)
    gang[1].recv(src_rank_in_group=0, tag=3)
    sent.result()
    waiting = gang[0].start("barrier", timeout=60)
    while not gang[0].pending().operations:
        pass
    gang.kill(2)
    assert waiting.exception().code == "PEER_LOST"
    gang.form()
    with pytest.raises(rankbridge.PeerMissingError):
        gang[1].barrier(timeout=1)
    gang.submit("barrier")
    assert gang.pids == {}

@pytest.mark.gang(size=3, backend="gloo")
def test_leaves_a_group_behind(gang):
    gang.new_group("mine", [0, 1])

@pytest.mark.gang(size=3, backend="gloo")
def test_leaves_a_ref_behind(gang):
    rankbridge.connect(list(gang.client.targets), session=False)[1].put([1.0])

@pytest.mark.gang(size=2, load="app.py")
def test_fails_while_a_function_runs(gang):
    call = gang.function("waits", timeout=60).start()
    assert {next(call.reports()).value for _ in range(1)} == {"waiting"}
    assert gang.pids == {}

@pytest.mark.gang(size=3, backend="gloo")
def test_finds_nothing_of_them(gang):
    assert [it.name for it in gang.groups()] == [gang.group, "world"]
    assert [it.refs for status in gang.status() for it in status.sessions] == [0, 0, 0, 0, 0, 0]
    with gang.client.session():
        assert gang.list_refs() == [[], [], []]

clients = []

@pytest.mark.gang(size=3, backend="gloo")
def test_leaves_a_client_open(gang):
    clients.append(rankbridge.connect(list(gang.client.targets)))
    clients[0].barrier()

def test_has_four_ranks_on_fake_unless_it_says(gang):
    assert (len(gang), gang.status()[0].backend) == (4, "fake")
    assert total(gang) == [6, 6]
    with pytest.raises(ValueError, match="share one process"):
        gang.kill(1)
    gang.barrier()
"""

APP = """
import time
import rankbridge_server

@rankbridge_server.function
def waits(context):
    yield "waiting"
    while not context.cancelled:
        time.sleep(0.01)
"""

LIGHT = """
import sys

def test_nothing_is_imported():
    assert "pytest_rankbridge" in sys.modules
    assert not {"rankbridge", "grpc", "numpy"} & set(sys.modules)
"""


def run(folder: Path, text: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    (folder / "test_it.py").write_text(text)
    (folder / "app.py").write_text(APP)
    (folder / "pytest.ini").write_text("[pytest]\nfilterwarnings = error\naddopts = --strict-markers\n")
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", *arguments, "test_it.py"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory, quick_gangs: None) -> str:
    return run(tmp_path_factory.mktemp("it"), TESTS, "-rA").stdout


@pytest.mark.sampled
def test_tests_run_with_each_size_and_backend_on_gangs_that_are_used_again(output: str) -> None:
    passed = set(re.findall(r"^PASSED test_it.py::test_(\S+)", output, re.MULTILINE))
    assert passed == {
        *(f"runs_with_each[{size}-{backend}]" for size in (2, 3) for backend in ("fake", "gloo")),
        *(
            f"{it}[3-gloo]"
            for it in (
                *("finds_the_gang_whole_after_a_failure", "kills_a_rank", "finds_nothing_of_them"),
                *("leaves_a_group_behind", "leaves_a_ref_behind", "leaves_a_client_open"),
            )
        ),
        "has_four_ranks_on_fake_unless_it_says",
    }
    assert re.search(r"3 failed, 11 passed, 3 errors", output)


def test_a_failure_shows_how_the_gang_is(output: str) -> None:
    section = output.partition(" gang ---")[2]
    assert re.search(r"^3 ranks on gloo, group test-\d+$", section, re.MULTILINE)
    assert re.search(r"^rank 0: pid \d+, generation 1 formed$", section, re.MULTILINE)
    assert re.search(r"^  pending: barrier on test-\d+, admission, for \d+ ms$", section, re.MULTILINE)
    assert re.search(r"^  test-\d+ waits for ranks \[1, 2\] in barrier$", section, re.MULTILINE)


def test_a_failure_shows_a_verdict(output: str) -> None:
    report = output.partition(" test_fails_while_a_rank_is_missing[3-gloo] _")[2]
    section = report.partition(" verdict ---")[2].partition(" gang ---")[0]
    said = (
        r"^NEVER_CALLED: ranks 1-2 have not called barrier test-\d+, are idle for [\d.]+ s: it has no call$"
    )
    assert re.search(said, section, re.MULTILINE)


def test_a_failure_shows_what_the_ranks_did_last(output: str) -> None:
    report = output.partition(" test_fails_after_calls[3-gloo] _")[2]
    section = report.partition(" record of ranks ---")[2].partition(" stacks of ranks ---")[0]
    # The third was killed, and its record has gone with it.
    assert re.search(
        r"^all_reduce on ranks 0-1, [\d.]+ ms apart, [\d.]+ ms, at \S*test_it\.py:\d+: done \(all_reduce ",
        section,
        re.MULTILINE,
    )


def test_what_a_test_leaves_behind_is_its_error(output: str) -> None:
    assert "the test has left behind: group 'mine'\n" in output
    assert "the test has left behind: 1 refs in the shared session of rank 1\n" in output
    assert re.search(
        r"the test has left behind: \d open descriptors in rank 0: a client that is not closed\?", output
    )


def test_a_failure_shows_where_functions_are(output: str) -> None:
    section = output.rpartition(" stacks of ranks ---")[2]
    assert re.search(r"rank 0:\n  thread .*\n(    .*\n)*    waits \(\S*/app.py:9\)\n", section)


def test_a_failure_shows_a_scenario_that_asks_for_the_same(output: str, tmp_path: Path) -> None:
    report = output.partition(" test_fails_after_calls[3-gloo] _")[2]
    text = report.partition(" scenario ---")[2].partition("\n")[2].partition("\n____")[0]
    assert text.startswith("# There is no word for gang.submit.\nformat = 1\n")
    (tmp_path / "it.toml").write_text(text)
    command = [RANKBRIDGE, "test", "it.toml"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + text
    steps = tomllib.loads(text)["step"]
    reduced, gathered, sent, received, waits, killed, formed, missed = steps
    own = {"1": {"of": "tensor0b"}, "2": {"of": "tensor0c"}}
    assert reduced == {"call": "all_reduce", "op": "max", "of": "tensor0a", "but": own, "as": "tensor3"}
    assert (gathered["value"], gathered["but"]) == (1, {"1": {"value": 2}})
    assert (sent["each"][0]["of"], sent["wait"], received["each"][0]["rank"]) == ("tensor3", False, 1)
    assert (waits["wait"], waits["expect"]) == (False, {"error": "PEER_LOST"})
    assert (killed, formed) == ({"each": [], "fault": {"kill": [2]}}, {"form": True})
    assert (missed["timeout_ms"], missed["expect"]) == (1000, {"error": "PEER_MISSING"})


def test_nothing_is_imported_by_who_asks_for_no_gang(tmp_path: Path) -> None:
    done = run(tmp_path, LIGHT)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("marker", "said"),
    [
        ("gang(sise=2)", "gang has no argument `sise`; did you mean `size`?"),
        ("gang(2)", "gang takes its arguments by name: size, backend, timeout, load"),
        ("gang(size=[2, 'three'])", "gang's size is [2, 'three'], and not like 4"),
    ],
)
def test_a_wrong_marker_is_refused_at_collection(tmp_path: Path, marker: str, said: str) -> None:
    text = f"import pytest\n\n@pytest.mark.{marker}\ndef test_it(gang):\n    pass\n"
    done = run(tmp_path, text)
    assert done.returncode != 0
    assert f"test_it.py::test_it: {said}" in done.stdout + done.stderr
