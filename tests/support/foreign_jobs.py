"""Jobs that something else than rankbridge starts, driven by pipes."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.support.gangs import START_TIMEOUT_S
from tests.support.waiting import PAUSE_S, until

BIN = Path(sys.executable).parent
SCRIPT = str(Path(__file__).with_name("foreign_job.py"))
END_S = 60


class Job:
    """A job that runs. `lines`: all that it has said."""

    def __init__(
        self, process: subprocess.Popen[bytes], directory: Path, progress: int, control: int
    ) -> None:
        self.process = process
        self.endpoints_file = directory / "endpoints.json"
        self.lines: list[str] = []
        self._control = control
        self.reader = threading.Thread(target=self._read, args=(progress,), daemon=True)
        self.reader.start()

    def say(self, command: str) -> None:
        """Tell the job to do something after its next step."""
        os.write(self._control, f"{command}\n".encode())

    def do(self, command: str, ranks: int) -> None:
        """The same, and wait until these ranks have done it."""
        done = self.count("did", command) + ranks
        self.say(command)
        until(lambda: self.count("did", command) == done)

    def attached(self) -> None:
        """Wait until controllers can connect, as long as it takes to start the job."""
        self._until_started(self.endpoints_file.exists, "nobody can connect")

    def began(self, ranks: int) -> None:
        """Wait until so many ranks have begun, of all attempts; as long as it takes to start them."""
        self._until_started(lambda: self.count("began") >= ranks, "the ranks have not begun")

    def _until_started(self, condition: Callable[[], bool], otherwise: str) -> None:
        deadline = time.monotonic() + START_TIMEOUT_S
        while not condition():
            assert self.process.poll() is None, f"the job has ended with {self.process.returncode}"
            assert time.monotonic() < deadline, otherwise
            time.sleep(PAUSE_S)

    def count(self, *words: str) -> int:
        """How many lines begin with these words."""
        return sum(line.split()[: len(words)] == list(words) for line in self.lines.copy())

    def goes_on(self) -> None:
        """Wait for five more steps."""
        after = self.count("step") + 5
        until(lambda: self.count("step") >= after)

    def digests(self) -> dict[int, str]:
        """The digest of the weights after each step."""
        words = [line.split() for line in self.lines.copy()]
        return {int(it[1]): it[2] for it in words if it[0] == "step"}

    def pids(self) -> dict[int, int]:
        """Of the ranks that have begun last."""
        words = [line.split() for line in self.lines.copy()]
        return {int(it[1]): int(it[2]) for it in words if it[0] == "began"}

    def end(self) -> int:
        """Let it end; its launcher's exit status."""
        self.say("end")
        return self.process.wait(END_S)

    def _read(self, progress: int) -> None:
        with os.fdopen(progress) as file:
            for line in file:
                self.lines.append(line.rstrip("\n"))


@contextmanager
def job(
    directory: Path,
    command: Sequence[str],
    options: Sequence[str],
    environment: Mapping[str, str] = os.environ,
) -> Iterator[Job]:
    """Start a job: `command` with the pipes and `options`; on leaving, it has ended. What it prints is in `output`."""
    pipes = [directory / "progress", directory / "control"]
    for path in pipes:
        os.mkfifo(path)
    # An end of each that the job has, too, so that neither side waits for the other, or sees an end before it is over.
    progress = os.open(pipes[0], os.O_RDONLY | os.O_NONBLOCK)
    os.set_blocking(progress, True)
    writing, control = os.open(pipes[0], os.O_WRONLY), os.open(pipes[1], os.O_RDWR)
    environ = {
        **environment,
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": str(Path(__file__).parents[2]),
        "RANKBRIDGE_ENDPOINTS_FILE": str(directory / "endpoints.json"),
    }
    with (directory / "output").open("wb") as output:
        process = subprocess.Popen(
            [*command, *map(str, pipes), *options], cwd=directory, env=environ, stdout=output, stderr=output
        )
    started = Job(process, directory, progress, control)
    try:
        yield started
    finally:
        process.terminate()
        process.wait(END_S)
        os.close(control)
        os.close(writing)
        started.reader.join()


def torchrun(size: int, *options: str, attached: bool = False) -> list[str]:
    """The command line of torchrun up to the script's arguments. `attached`: by rankbridge, without a line."""
    by = ["-m", "rankbridge_server.attach"] if attached else []
    return [
        *(str(BIN / "torchrun"), "--nproc-per-node", str(size)),
        *("--rdzv-backend", "c10d", "--rdzv-endpoint", "127.0.0.1:0", "--monitor-interval", "0.1"),
        *(*options, *by, SCRIPT),
    ]
