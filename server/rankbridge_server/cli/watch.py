"""`rankbridge watch`: runs a job whose ranks record their collectives."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from .options import FILE, Command, Option, Options

_FORWARDED = (signal.SIGTERM, signal.SIGHUP)


def _run(options: Options) -> int:
    from ..job.outside.afterwards import note_end
    from ..job.watch import DIRECTORY, GUARD

    directory = options.record or Path(tempfile.mkdtemp(prefix="rankbridge-watch-"))
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    directory = directory.resolve()
    environ = {**os.environ, DIRECTORY: str(directory), "PYTHONPATH": _path()}
    if options.guard:
        environ[GUARD] = str(options.guard_timeout)
    try:
        process = subprocess.Popen(options.command, env=environ)
    except OSError as error:
        print(f"rankbridge watch: {options.command[0]}: {error.strerror}", file=sys.stderr)
        return 127 if isinstance(error, FileNotFoundError) else 126
    signals: list[str] = []
    with _passed_on(process, signals):
        status = process.wait()
    note_end(directory, signals[0] if signals else "")
    if status and not signals:
        _explain(directory)
    return status if status >= 0 else 128 - status


def _path() -> str:
    """PYTHONPATH with the folder whose sitecustomize begins to record."""
    from ..job import watch

    before = os.environ.get("PYTHONPATH")
    return os.pathsep.join([str(Path(watch.__file__).parent / "startup"), *([before] if before else [])])


@contextmanager
def _passed_on(process: subprocess.Popen[bytes], signals: list[str]) -> Iterator[None]:
    """Signals to this process are the job's, and are noted. Ctrl-C reaches both: this process ends after the job."""

    def handler(number: int, frame: object) -> None:
        signals.append(signal.Signals(number).name)
        if number != signal.SIGINT:
            process.send_signal(number)

    before = {it: signal.signal(it, handler) for it in (*_FORWARDED, signal.SIGINT)}
    try:
        yield
    finally:
        for number, was in before.items():
            signal.signal(number, was)


def _explain(directory: Path) -> None:
    """Says, after a job has failed, what its ranks' records say."""
    from ..doctor.judge import judge
    from ..doctor.page import page
    from ..doctor.verdict import Kind
    from ..job.outside.afterwards import collect
    from ..job.outside.processes import NoJob

    try:
        verdict = judge(collect(directory))
    except (NoJob, OSError):
        return
    if verdict.kind not in (Kind.HEALTHY, Kind.UNKNOWN):
        print(page(verdict), file=sys.stderr)
    print(f"rankbridge watch: `rankbridge doctor {directory}` judges the record", file=sys.stderr)


COMMAND = Command(
    "watch",
    _run,
    [
        click.Argument(["command"], nargs=-1, required=True, metavar="-- COMMAND...", type=click.UNPROCESSED),
        Option(
            "--record",
            type=FILE,
            metavar="FOLDER",
            help="where ranks write their records, of 2.3 MB each (default: a new one)",
        ),
        Option(
            "--guard",
            is_flag=True,
            help="enter each collective only when all members of its group have called the same, and Gloo's sends and "
            "receives when both ends agree; they raise in the script, on each of them, otherwise",
        ),
        Option(
            "--guard-timeout",
            type=click.FloatRange(min=0.1),
            default=600.0,
            metavar="SECONDS",
            help="with --guard, how long ranks wait for each other",
        ),
    ],
    help="Run a torch.distributed job, as `rankbridge watch -- torchrun --nproc-per-node 4 train.py`. Each rank "
    "records its last 10,000 collectives, sends and receives into a file that outlives it; the script needs no line. "
    "`rankbridge doctor` reads the records, also of ranks that are stuck or dead. After a job that has failed, the "
    "verdict is printed. The exit status is the job's.",
)
