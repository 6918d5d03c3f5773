"""The plugin for pytest in the workers of pytest-xdist: each has gangs of its own, and none is left when it ends."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from tests.support.waiting import until

pytestmark = pytest.mark.sampled

MARK = "RANKBRIDGE_TEST_OF_XDIST"

TESTS = """
import json
import os
from pathlib import Path

import numpy as np
import pytest

def note(gang):
    pids = sorted({*gang.pids.values(), gang._running.process.pid})
    for pid in pids:
        assert os.environ["MARK"].encode() in Path(f"/proc/{pid}/environ").read_bytes()
    with open("noted", "a") as file:
        file.write(json.dumps([os.environ["PYTEST_XDIST_WORKER"], gang.client[0].status().backend, pids]) + "\\n")

@pytest.mark.gang(size=2, backend=["fake", "gloo"])
@pytest.mark.parametrize("number", range(4))
def test_passes(gang, number):
    note(gang)
    sums = gang.all_reduce(gang.put([np.full(1, rank + number, np.float32) for rank in range(2)]))
    assert gang.get(sums)[1].tolist() == [2 * number + 1]

@pytest.mark.gang(size=2, backend="gloo")
def test_fails(gang):
    note(gang)
    gang[0].submit("barrier", group=gang.group, operation_id="alone", timeout=60)
    while not gang[0].pending().admissions:
        pass
    assert gang.pids == {}

@pytest.mark.gang(size=2, backend="gloo")
def test_leaves_a_group(gang):
    note(gang)
    gang.new_group("mine", [0, 1])

@pytest.mark.gang(size=2, backend="gloo")
def test_crashes(gang):
    note(gang)
    os._exit(3)
""".replace("MARK", MARK)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the tests have run, each of whose processes has the folder in its environment."""
    folder = tmp_path_factory.mktemp("xdist")
    (folder / "test_it.py").write_text(TESTS)
    (folder / "pytest.ini").write_text("[pytest]\nfilterwarnings = error\naddopts = --strict-markers\n")
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-n", "2", "test_it.py"]
    environment = {**os.environ, MARK: str(folder)}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=180)
    (folder / "output").write_text(done.stdout + done.stderr)
    return folder


def marked(folder: Path) -> list[int]:
    """The processes of the run, and theirs."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if f"{MARK}={folder}".encode() in (process / "environ").read_bytes().split(b"\0"):
                found.append(int(process.name))
    return found


@pytest.fixture
def output(folder: Path) -> str:
    return (folder / "output").read_text()


def test_tests_on_gangs_pass_fail_and_leave_things_behind_as_without_workers(output: str) -> None:
    assert "2 failed, 9 passed, 1 error in" in output, output
    assert "the test has left behind: group 'mine'" in output
    assert re.search(r"worker 'gw\d' crashed while running 'test_it.py::test_crashes\[2-gloo\]'", output)


def test_the_report_of_a_failure_comes_from_the_worker_whole(output: str) -> None:
    _, _, report = output.partition(" test_fails[2-gloo] _")
    titles = re.findall(r"^-+ ([a-z ]+) -+$", report, re.MULTILINE)
    assert titles[:5] == ["verdict", "gang", "record of ranks", "stacks of ranks", "scenario"]
    assert re.search(r"^NEVER_CALLED: rank 1 has not called barrier test-\d+", report, re.MULTILINE)
    assert re.search(r"^  test-\d+ waits for ranks \[1\] in barrier$", report, re.MULTILINE)


def test_no_two_workers_have_a_process_in_common(folder: Path) -> None:
    by_worker: dict[str, set[int]] = {}
    backends: set[str] = set()
    for line in (folder / "noted").read_text().splitlines():
        worker, backend, pids = json.loads(line)
        by_worker.setdefault(worker, set()).update(pids)
        backends.add(backend)
    # Both have had tests from the beginning, and one after the crash may have taken the place of either.
    assert by_worker.keys() >= {"gw0", "gw1"}
    assert backends == {"fake", "gloo"}
    assert sum(map(len, by_worker.values())) == len(set().union(*by_worker.values()))


def test_no_process_is_left_also_of_a_worker_that_has_crashed(folder: Path) -> None:
    until(lambda: not marked(folder))
