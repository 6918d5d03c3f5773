"""A sidecar in jobs of all launchers, and how such jobs end."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from tests.support.foreign_jobs import BIN, END_S, SCRIPT, job, torchrun
from tests.support.gangs import START_TIMEOUT_S
from tests.support.waiting import until

import rankbridge
from rankbridge.errors import RankBridgeError

SIZE = 2
PAGE = Path(__file__).resolve().parents[2] / "docs" / "attach.md"
SPAWN = str(Path(SCRIPT).with_name("spawned_job.py"))
BY_MPI = 'RANK=$PMI_RANK WORLD_SIZE=$PMI_SIZE exec "$0" "$@"'


def works(endpoints_file: Path) -> bool:
    with rankbridge.connect(endpoints_file) as gang:
        refs = gang.put([np.full(3, rank + 1, np.float32) for rank in range(SIZE)])
        return [np.asarray(it).tolist() for it in gang.get(gang.all_reduce(refs))] == [[3.0] * 3] * SIZE


@pytest.fixture
def directories(tmp_path: Path) -> tuple[Path, Path]:
    made = tmp_path / "attached", tmp_path / "alone"
    for it in made:
        it.mkdir()
    return made


def reduce_for_ever(gang: rankbridge.Gang) -> None:
    refs = gang.put([np.ones(1 << 16, np.float32)] * SIZE)
    while True:
        gang.release(gang.all_reduce(refs))


@pytest.mark.sampled
def test_a_script_without_a_line_computes_and_ends_as_if_it_were_alone(
    directories: tuple[Path, Path],
) -> None:
    attached, alone = directories
    with job(attached, torchrun(SIZE, attached=True), ["--leave"]) as one:
        one.attached()
        with rankbridge.connect(one.endpoints_file) as gang:
            refs = gang.put([np.ones(1 << 16, np.float32)] * SIZE)
            steps = one.count("step")
            while one.count("step") < steps + 20:
                gang.release(gang.all_reduce(refs))
            # The job ends while operations are under way: threads of the sidecar are in Gloo's code then.
            with ThreadPoolExecutor(1) as pool:
                calling = pool.submit(reduce_for_ever, gang)
                assert one.end() == 0
                with pytest.raises(RankBridgeError):
                    calling.result(END_S)
        until(lambda: one.count("atexit") == SIZE)
    assert not one.endpoints_file.exists()
    with job(alone, [sys.executable, SPAWN], ["--file-store", str(alone / "store")]) as other:
        other.began(SIZE)
        until(lambda: other.count("step") >= 20)
    both = one.digests().keys() & other.digests().keys()
    assert len(both) >= 20
    assert {it: one.digests()[it] for it in both} == {it: other.digests()[it] for it in both}


def test_the_examples_of_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    script, controller = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    (tmp_path / "train.py").write_text(script)
    monkeypatch.chdir(tmp_path)
    command = [*torchrun(SIZE)[:-1], "train.py"]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        try:
            until((tmp_path / "endpoints.json").exists, START_TIMEOUT_S)
            exec(controller, {})
        finally:
            process.terminate()
    assert (
        capsys.readouterr().out
        == "['world']\n[array([1., 1.], dtype=float32), array([1., 1.], dtype=float32)]\n"
    )


@pytest.mark.sampled
def test_a_job_that_is_started_again_is_attached_again(tmp_path: Path) -> None:
    options = ["--line", "before", "--file-store", str(tmp_path / "store")]
    with job(tmp_path, torchrun(SIZE, "--max-restarts", "1"), options) as it:
        it.attached()
        assert works(it.endpoints_file)
        first = it.pids()
        it.say("raise")
        it.began(2 * SIZE)
        second = it.pids()
        assert set(first.values()).isdisjoint(second.values())

        def shown() -> list[int]:
            # The first attempt may have taken its file away.
            with suppress(FileNotFoundError):
                return [rank["pid"] for rank in json.loads(it.endpoints_file.read_text())["ranks"]]
            return []

        until(lambda: shown() == [second[rank] for rank in range(SIZE)])
        assert works(it.endpoints_file)
        it.goes_on()
        assert it.end() == 0
    # What fails is the job's own: the rank that raises, and those that were in a collective with it.
    output = (tmp_path / "output").read_text()
    assert "RuntimeError: one rank fails" in output
    assert "rankbridge_server" not in output


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("command", "options", "status"),
    [
        ([sys.executable, SPAWN], ["--backend", "mine"], 0),
        (
            [str(BIN / "mpirun"), "-n", str(SIZE), "sh", "-c", BY_MPI, sys.executable, SCRIPT],
            ["--exit-with", "3"],
            3,
        ),
    ],
    ids=["spawn with a backend of its own", "mpirun"],
)
def test_a_job_of_another_launcher_is_attached(
    tmp_path: Path, command: list[str], options: list[str], status: int
) -> None:
    more = ["--line", "before", "--file-store", str(tmp_path / "store"), *options]
    with job(tmp_path, command, more) as it:
        it.attached()
        assert works(it.endpoints_file)
        it.goes_on()
        assert it.end() == status
        until(lambda: it.count("atexit") == SIZE)
    assert not it.endpoints_file.exists()
