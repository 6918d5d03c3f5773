"""A gang on Gloo for the length of a `with` statement."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from bench.subject import NotThere

COMMAND = Path(sys.executable).with_name("rankbridge")
ARGUMENTS = (
    # Room for the largest tensor, and one that was not given back yet.
    *("--max-shared-bytes", str(3 << 30)),
    # On a machine that is busy with other things, a rank that is late is not lost.
    *("--heartbeat-interval", "1", "--heartbeat-misses", "10"),
    *("--load", str(Path(__file__).with_name("app.py"))),
)
"""Of `rankbridge up`, also from Elixir."""


@contextmanager
def gang(size: int, arguments: Sequence[str] = ARGUMENTS) -> Iterator[Path]:
    """Starts ranks; gives their endpoints file. `arguments`: of `rankbridge up`."""
    with tempfile.TemporaryDirectory(prefix="rankbridge-bench-") as directory:
        endpoints = Path(directory) / "endpoints.json"
        command = [str(COMMAND), "up", "--size", str(size), "--report", "json", "--exit-on-stdin-close"]
        command += ["--endpoints-file", str(endpoints), *arguments]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        ) as process:
            if process.stdin is None or process.stdout is None:
                raise RuntimeError("no pipes")
            for line in process.stdout:
                told = json.loads(line)
                if told["event"] == "ready":
                    break
                if told["event"] == "failed":
                    raise NotThere(told["reason"])
            else:
                raise NotThere("the gang did not start")
            try:
                yield endpoints
            finally:
                process.stdin.close()
