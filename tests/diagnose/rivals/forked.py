"""Torch's own tools, forked from a process that has torch: its import is paid for once."""

from __future__ import annotations

import atexit
import multiprocessing
import os
import runpy
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from multiprocessing.process import BaseProcess
from pathlib import Path

from tests.diagnose.faults import Program
from tests.diagnose.jobs import HERE, descendants, kill
from tests.diagnose.plan import SIZE

from rankbridge_server.job.watch import DIRECTORY

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["torch.distributed.run", "torch.distributed.flight_recorder.fr_trace"])
_ENDS_S = 60.0


class ForkedJob:
    """What a Popen is of a job that torchrun has started."""

    def __init__(self, process: BaseProcess) -> None:
        assert process.pid is not None
        self.pid = process.pid
        self._process = process

    def poll(self) -> int | None:
        """Its exit status; None: it runs."""
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int | None:
        """Waits for its end, if that comes in time."""
        self._process.join(timeout)
        return self.poll()


@contextmanager
def forked(program: Program, seed: int, folder: Path, settings: Mapping[str, str]) -> Iterator[ForkedJob]:
    """A job whose output is in the folder; on leaving, it has ended, and all that it has started."""
    arguments = (program.name, str(seed), str(folder))
    process = _CONTEXT.Process(target=_launch, args=(arguments, {"DIAGNOSE_FOLDER": str(folder), **settings}))
    process.start()
    job = ForkedJob(process)
    try:
        yield job
    finally:
        kill(job.pid, *descendants(job.pid))
        job.wait()


def torchfrtrace(arguments: Sequence[str], output: Path) -> str:
    """What the command says. `output`: the file that takes it. Raises TimeoutError."""
    command = _CONTEXT.Process(target=_torchfrtrace, args=(list(arguments), output))
    command.start()
    command.join(_ENDS_S)
    if command.is_alive():
        command.kill()
        raise TimeoutError(f"torchfrtrace has not ended within {_ENDS_S:g} s")
    return output.read_text(errors="replace")


def _write_to(output: Path) -> None:
    file = os.open(output, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.dup2(file, sys.stdout.fileno())
    os.dup2(file, sys.stderr.fileno())


def _torchfrtrace(arguments: list[str], output: Path) -> None:
    from torch.distributed.flight_recorder.fr_trace import main

    _write_to(output)
    sys.argv = ["torchfrtrace", *arguments]
    main()


def _launch(arguments: tuple[str, str, str], settings: dict[str, str]) -> None:
    """Is what torchrun is."""
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    os.setsid()
    folder = Path(arguments[-1])
    _write_to(folder / "output")
    os.chdir(folder)
    os.environ.update(settings)
    config = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=SIZE,
        rdzv_backend="c10d",
        rdzv_endpoint="127.0.0.1:0",
        max_restarts=0,
        start_method="fork",
    )
    elastic_launch(config, _rank)(*arguments)


def _rank(*arguments: str) -> None:
    """Is a process that the launcher would have started with job.py: it ends as one does."""
    import torch
    from torch._C._distributed_c10d import set_debug_level_from_env

    if DIRECTORY in os.environ:
        import rankbridge_server.watch  # noqa: F401
    torch.set_num_threads(1)
    set_debug_level_from_env()
    # A process of multiprocessing has another one.
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115
    sys.argv = [str(HERE / "job.py"), *arguments]
    status = 0
    try:
        runpy.run_path(sys.argv[0], run_name="__main__")
    except BaseException:
        sys.excepthook(*sys.exc_info())
        status = 1
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)
