"""`rankbridge doctor` on real jobs: some of `make diagnose`, and what cannot be judged."""

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.diagnose.faults import Program
from tests.diagnose.jobs import descendants
from tests.diagnose.plan import Plan
from tests.diagnose.programs import programs
from tests.diagnose.recorded import EVIDENCE
from tests.diagnose.run import diagnose
from tests.diagnose.said import Said
from tests.diagnose.score import score
from tests.diagnose.variants import Variant
from tests.support.sampling import sample, seed
from tests.support.waiting import until

from rankbridge_server.job.watch.ring import Ring

BIN = Path(sys.executable).parent
RUNS = [(it, variant) for variant in Variant for it in programs(variant).values()]
OURS = (Variant.GANG, Variant.ATTACHED)
DRAWN = [
    *sample([run for run in RUNS if not run[0].is_right and run[1] not in OURS], 1),
    *sample([run for run in RUNS if not run[0].is_right and run[1] in OURS], 2),
    *sample([run for run in RUNS if run[0].is_right], 1),
]


def doctor(*arguments: str, **settings: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [str(BIN / "rankbridge"), "doctor", *arguments],
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


@pytest.mark.sampled
@pytest.mark.parametrize(("program", "variant"), DRAWN, ids=[f"{it.name}-{variant}" for it, variant in DRAWN])
def test_the_fault_is_named_and_nobody_is_blamed_falsely(program: Program, variant: Variant) -> None:
    drawn = int(seed()[:6], 16) if seed() != "none" else 0
    outcome = diagnose(program, drawn, variant)
    found = score(program, Plan.drawn(program.name, drawn), Said.by_doctor(outcome.verdict), outcome.seconds)
    assert not found.false_blame, outcome.text
    assert (found.detected, found.right_kind, found.exact) == (True, True, True), outcome.text
    assert found.seconds < 30


SPAWNING = """
import os, subprocess, sys, time
import torch.distributed as dist
import torch.multiprocessing as mp

def load(data):
    print("loads", flush=True)
    data.get()

def rank(number, port, what, loads):
    os.environ.update(RANK=str(number), WORLD_SIZE="3", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group(
        "gloo", store=dist.TCPStore("127.0.0.1", port, is_master=False), rank=number, world_size=3
    )
    if loads:
        context = mp.get_context("spawn")
        data = context.Queue()
        context.Process(target=load, args=(data,)).start()
    for step in range(100):
        if number == 1 and step == 5:
            print("asleep", flush=True)
            if what == "asleep":
                time.sleep(1000)
            subprocess.run(["sleep", "1000"])
        dist.barrier()

if __name__ == "__main__":
    store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    mp.spawn(rank, (store.port, sys.argv[1], "loads" in sys.argv), nprocs=3)
"""


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("what", "beside"),
    [
        ("asleep", ""),
        ("waiting_for_child", ""),
        ("asleep", "this process is another job's rank"),
        ("asleep", "each rank has a loader"),
    ],
)
def test_ranks_whose_environment_does_not_say_so_are_asked(tmp_path: Path, what: str, beside: str) -> None:
    """A child has the variables that its rank has set in itself, and is none."""
    assert torch.distributed.is_available()
    record = Ring.create(tmp_path / "record", 0, 1) if "another job" in beside else None
    loads = "loader" in beside
    script = tmp_path / "spawning.py"
    script.write_text(SPAWNING)
    command = [sys.executable, str(script), what, *(["loads"] if loads else [])]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as job:
        try:
            assert job.stdout is not None
            said = [job.stdout.readline() for _ in range(4 if loads else 1)]
            assert sorted(said) == ["asleep\n", *(["loads\n"] * 3 if loads else [])]
            verdict: dict[str, Any] = {}

            def all_have_come() -> bool:
                verdict.update(json.loads(doctor(str(job.pid), "--patience", "0.1", "--json").stdout))
                waiting = sorted(it["rank"] for it in verdict["waits"])
                return (verdict["kind"], waiting) == ("never_called", [0, 2])

            until(all_have_come)
            # By one of its ranks, too.
            (asleep,) = verdict["culprits"]
            again = json.loads(doctor(str(asleep["pid"]), "--patience", "0.1", "--json").stdout)
            assert (again["kind"], [it["rank"] for it in again["culprits"]]) == ("never_called", [1])
        finally:
            for pid in [job.pid, *descendants(job.pid)]:
                # The ranks end with who has started them.
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
    assert (verdict["kind"], [it["rank"] for it in verdict["culprits"]]) == ("never_called", [1])
    assert (verdict["call"], verdict["world_size"]) == ("barrier world#6", 3)
    assert verdict["culprits"][0]["condition"] == what
    del record


def test_a_process_that_is_no_rank_is_refused() -> None:
    # Not this process: it has torch, and other tests' gangs are its children.
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        answer = doctor(str(process.pid))
        process.communicate()
    assert answer.returncode == 2
    assert f"process {process.pid} is no rank" in answer.stderr


def test_a_process_that_is_not_there_is_refused() -> None:
    assert "there is no process 99999999" in doctor("99999999").stderr


@pytest.mark.parametrize(
    "other", [["5"], ["--gang", "a"], ["--endpoints", "a"], ["--read", "a"]], ids=" ".join
)
def test_torchruns_job_has_no_other_name(other: list[str]) -> None:
    done = doctor("--torchrun", *other, RANKBRIDGE_ENDPOINTS="b")
    assert (done.returncode, done.stdout) == (2, "")
    assert "--torchrun finds the job by itself: it takes no other name of one" in done.stderr


def test_a_folder_without_records_is_refused(tmp_path: Path) -> None:
    answer = doctor(str(tmp_path))
    assert answer.returncode == 2
    assert "has neither records of `rankbridge watch` nor dumps" in answer.stderr


def test_a_bundle_is_judged_elsewhere_with_the_same_verdict(tmp_path: Path) -> None:
    bundle = EVIDENCE / "asleep-unprepared-7.json"
    first = doctor("--read", str(bundle), "--bundle", str(tmp_path / "again"))
    assert first.returncode == 1
    assert "NEVER_CALLED: rank 1" in first.stdout
    assert doctor("--read", str(tmp_path / "again")).stdout == first.stdout


def test_a_bundle_that_is_cut_off_is_refused(tmp_path: Path) -> None:
    (tmp_path / "cut").write_text((EVIDENCE / "asleep-unprepared-7.json").read_text()[:-100])
    answer = doctor("--read", str(tmp_path / "cut"))
    assert answer.returncode == 2
    assert "cut off" in answer.stderr


def test_answers_of_nccls_ras_are_judged_and_other_files_are_named(tmp_path: Path) -> None:
    paths = []
    for second in (0, 10):
        ranks = [
            {
                "rank": rank,
                "host": "10.0.0.1",
                "pid": 100 + rank,
                "cuda_dev": rank,
                "nvml_dev": rank,
                "status": dict.fromkeys(("finalize_called", "destroy_flag", "abort_flag"), False)
                | dict.fromkeys(("init_state", "async_error"), 0),
                "collective_counts": {"AllReduce": 8 - (rank == 1)},
            }
            for rank in range(3)
        ]
        answer = {
            "timestamp": f"2026-11-25 13:06:{second:02}",
            "communicators": [{"hash": "0xa", "size": 3, "ranks": ranks}],
        }
        paths.append(tmp_path / f"{second}.json")
        paths[-1].write_text(json.dumps(answer))
    found = doctor(*map(str, paths))
    assert found.returncode == 1
    assert found.stdout.startswith("NEVER_CALLED: rank 1 has not called all_reduce world")
    found = doctor(str(paths[0]), __file__)
    assert (found.returncode, "is no answer of NCCL's RAS" in found.stderr) == (2, True)
