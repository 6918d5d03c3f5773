"""`rankbridge watch` records an unchanged script's calls, whoever makes them, and says why the job ended."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from rankbridge_server.doctor.evidence import Call
from rankbridge_server.doctor.judge import judge
from rankbridge_server.doctor.verdict import Kind
from rankbridge_server.job import watch
from rankbridge_server.job.outside import afterwards, rings

BIN = Path(sys.executable).parent
SCRIPT = Path(__file__).parent / "watched_script.py"


@dataclass(frozen=True)
class Run:
    """What a job has left."""

    status: int
    said: str
    records: list[rings.Record]
    folder: Path

    def calls(self, rank: int, kind: str) -> list[Call]:
        return [it for it in self.records[rank].calls if it.kind == kind]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("watched")
    custom = folder / "custom"
    custom.mkdir()
    (custom / "sitecustomize.py").write_text("import sys\nsys.customized = 'by the distribution'\n")
    command = [
        str(BIN / "rankbridge"),
        "watch",
        "--record",
        str(folder / "record"),
        "--",
        str(BIN / "torchrun"),
    ]
    command += ["--nproc-per-node", "2", "--master-port", "0", "--rdzv-backend", "c10d"]
    command += ["--rdzv-endpoint", "127.0.0.1:0", str(SCRIPT), str(folder)]
    environ = {**os.environ, "PYTHONPATH": str(custom), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=60, check=False)
    return Run(done.returncode, done.stderr, rings.in_directory(folder / "record"), folder)


def test_every_rank_has_a_record(run: Run) -> None:
    assert [it.rank for it in run.records] == [0, 1]
    assert {it.world_size for it in run.records} == {2}


def test_reduce_ops_dtypes_shapes_and_lines_are_recorded(run: Run) -> None:
    first = run.calls(0, "all_reduce")[0]
    assert (first.op, first.dtypes, first.shapes, first.number) == ("max", ("float32",), ((2, 3),), 1)
    assert first.site is not None
    lines = SCRIPT.read_text().splitlines()
    assert "all_reduce(tensor, dist.ReduceOp.MAX)" in lines[first.site.line - 1]
    assert first.site.file == str(SCRIPT)


def test_roots_peers_and_tags_are_recorded(run: Run) -> None:
    assert run.calls(0, "broadcast")[0].root == 1
    assert [(it.root, it.op) for it in run.calls(0, "reduce")] == [(0, "min")]
    assert [(it.peer, it.tag, it.number, it.shapes) for it in run.calls(1, "send")] == [
        (0, 7, 1, ((5,),)),
        (0, 0, 1, ((1,),)),
    ]
    assert [(it.peer, it.tag) for it in run.calls(0, "recv")] == [(1, 7), (1, 0)]


@pytest.mark.parametrize("kind", ["barrier", "all_to_all_single"])
def test_other_collectives_are_recorded(run: Run, kind: str) -> None:
    assert run.calls(0, kind)
    assert run.calls(1, kind)


def test_calls_of_objects_functions_and_ddp_are_recorded(run: Run) -> None:
    assert run.calls(0, "all_gather")
    assert ((6,),) in [it.shapes for it in run.calls(0, "all_reduce")]
    # DDP's reducer calls from C++, with all gradients in one tensor.
    assert ((72,),) in [it.shapes for it in run.calls(0, "all_reduce")]


def test_both_ranks_count_alike(run: Run) -> None:
    mine, theirs = (
        [(it.group, it.number, it.kind) for it in record.calls if not it.is_p2p] for record in run.records
    )
    assert mine == theirs


def test_the_wait_for_a_call_is_its_end_where_that_is_certain(run: Run) -> None:
    waited, asynchronous = run.calls(0, "all_reduce")[:2]
    assert waited.called_at is not None
    assert waited.returned_at is not None
    assert waited.waited_at is not None
    assert waited.called_at <= waited.returned_at <= waited.waited_at
    assert waited.done
    assert asynchronous.returned_at is not None
    assert asynchronous.waited_at is None


def test_the_records_are_a_trace(run: Run, tmp_path: Path) -> None:
    command = [str(BIN / "rankbridge"), "trace", str(run.folder / "record"), "-o", str(tmp_path / "run.json")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    events = json.loads((tmp_path / "run.json").read_text())["traceEvents"]
    (reduce,) = [it for it in events if it["name"] == "reduce" and it["pid"] == 0]
    assert reduce["ph"] == "X"
    assert reduce["args"]["contract"] == "reduce dtype=float32 shape=[2, 3] op=min root=0"
    assert "watched_script.py:" in reduce["args"]["site"]
    tracks = {it["args"]["name"] for it in events if it["name"] == "thread_name"}
    assert {"world", "pair"} <= tracks


def test_groups_have_their_ranks_and_descriptions(run: Run) -> None:
    assert [(it.ranks, it.description) for it in run.records[0].groups] == [
        ((0, 1), "default_pg"),
        ((0, 1), "pair"),
    ]


def test_the_distributions_own_start_up_runs_too(run: Run) -> None:
    assert [(run.folder / f"custom-{rank}").read_text() for rank in range(2)] == ["by the distribution"] * 2


def test_how_ranks_ended_is_recorded_and_the_status_is_the_jobs(run: Run) -> None:
    assert [(it.how, it.reason) for it in run.records][1] == (2, "ValueError: the last step")
    assert run.status == 1
    assert "NEVER_CALLED: rank 1 ended" in run.said
    assert "ValueError: the last step" in run.said


_ALONE = """
import _thread, functools, sys
from pathlib import Path
import torch, torch.distributed as dist
from rankbridge_server.job import watch
from rankbridge_server.job import watch
from rankbridge_server.job.outside import afterwards, rings

watch.start(sys.argv[1])
dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
call = functools.partial(dist.group.WORLD.allreduce, [torch.ones(1)], dist.AllreduceOptions())
_thread.start_new_thread(call, ())
while not any(it.calls for it in rings.in_directory(Path(sys.argv[1]))):
    pass
# Python ends with the process a thread that is in C++, which C++ takes for a crash.
while _thread._count():
    pass
"""


def test_a_call_of_a_thread_that_runs_no_python_is_recorded_without_a_line(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _ALONE, str(tmp_path)], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    (record,) = rings.in_directory(tmp_path)
    assert [(it.kind, it.site) for it in record.calls] == [("all_reduce", None)]


_IMPORTED = """
import torch, torch.distributed as dist
import rankbridge_server.watch

dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
dist.all_reduce(torch.ones(3))
"""


def run_alone(script: str, folder: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    """A job of one rank."""
    return subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "RANKBRIDGE_WATCH_DIRECTORY": str(folder), **environ},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def check_recorded(done: subprocess.CompletedProcess[str], folder: Path) -> None:
    assert (done.returncode, done.stderr) == (0, "")
    (record,) = rings.in_directory(folder)
    assert [(it.kind, it.shapes) for it in record.calls] == [("all_reduce", ((3,),))]


def test_a_script_that_imports_it_is_recorded(tmp_path: Path) -> None:
    check_recorded(run_alone(_IMPORTED, tmp_path), tmp_path)


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("last", "how", "reason"),
    [
        ("", 1, ""),
        ("import sys; sys.exit(0)", 1, ""),
        ("import sys; sys.exit(3)", 2, "SystemExit: 3"),
        ("import sys; sys.exit('no data')", 2, "SystemExit: no data"),
        ("import os; os._exit(0)", 1, ""),
        ("import os; os._exit(4)", 2, "SystemExit: 4"),
        ("raise ValueError('a bad batch')", 2, "ValueError: a bad batch"),
        (
            "import sys\ntry: 1 / 0\nexcept ArithmeticError: sys.exit(1)",
            2,
            "ZeroDivisionError: division by zero",
        ),
        ("import sys\ntry: sys.exit(1)\nexcept SystemExit: pass\nsys.exit()", 1, ""),
        (
            "import sys, threading\nit = threading.Thread(target=sys.exit, args=(1,))\nit.start()\nit.join()",
            1,
            "",
        ),
    ],
)
def test_the_end_of_a_rank_is_its_status(last: str, how: int, reason: str, tmp_path: Path) -> None:
    run_alone(_IMPORTED + last, tmp_path)
    (record,) = rings.in_directory(tmp_path)
    assert (record.how, record.reason) == (how, reason)


STARTUP = {"PYTHONPATH": str(Path(watch.__file__).parent / "startup"), "RANK": "0"}


@pytest.mark.sampled
@pytest.mark.parametrize("guard", [{}, {"RANKBRIDGE_GUARD": "60"}], ids=["recorded", "guarded"])
@pytest.mark.parametrize("first", ["", "import rankbridge_server.watch"], ids=["torch first", "it first"])
def test_a_watched_script_may_import_it_too(first: str, guard: dict[str, str], tmp_path: Path) -> None:
    check_recorded(run_alone(first + _IMPORTED, tmp_path, **STARTUP, **guard), tmp_path)


_NOT_INSTALLED = "import sys\nsys.modules['rankbridge_server'] = None\n" + _IMPORTED.replace(
    "import rankbridge_server.watch", ""
)


def test_a_script_without_rankbridge_in_its_environment_is_recorded_and_not_guarded(tmp_path: Path) -> None:
    check_recorded(run_alone(_NOT_INSTALLED, tmp_path, **STARTUP), tmp_path)
    done = run_alone(_NOT_INSTALLED, tmp_path, **STARTUP, RANKBRIDGE_GUARD="60")
    assert done.returncode == 1
    assert done.stderr.startswith("rankbridge watch --guard: rank 0 cannot be guarded: ModuleNotFoundError")


_STARTED = """
import os, sys
import torch, torch.distributed as dist, torch.multiprocessing as mp

def main(rank, folder, how):
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=3)
    for step in range(9):
        if step == 5 and rank == 1 and how == "raise":
            raise ValueError("a bad batch")
        if step == 5 and rank == 1 and how == "exit":
            sys.exit(3)
        dist.all_reduce(torch.ones(3))
    dist.destroy_process_group()

if __name__ == "__main__":
    _, folder, how, method = sys.argv
    if method == "Process":
        ranks = [mp.get_context("spawn").Process(target=main, args=(it, folder, how)) for it in range(3)]
        for it in ranks:
            it.start()
        for it in ranks:
            it.join()
    else:
        mp.start_processes(main, (folder, how), nprocs=3, start_method=method)
"""


@pytest.mark.sampled
@pytest.mark.parametrize("how", ["return", "raise", "exit"])
@pytest.mark.parametrize("method", ["spawn", "fork", "Process"])
def test_ranks_that_multiprocessing_starts_are_recorded_with_their_ends(
    method: str, how: str, tmp_path: Path
) -> None:
    script = tmp_path / "script.py"
    script.write_text(_STARTED)
    command = [str(BIN / "rankbridge"), "watch", "--record", str(tmp_path / "record"), "--"]
    command += [sys.executable, str(script), str(tmp_path), how, method]
    environ = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=100, check=False)
    verdict = judge(afterwards.collect(tmp_path / "record"))
    if how == "return":
        assert (done.returncode, verdict.kind) == (0, Kind.HEALTHY), done.stderr
    else:
        why = {"raise": "ValueError: a bad batch", "exit": "SystemExit: 3"}[how]
        assert [(it.rank, it.why) for it in verdict.culprits] == [(1, f"dead: {why}")], done.stderr
    assert verdict.world_size == 3
