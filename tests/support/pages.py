"""Live pages: where they are served."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from tests.support.gangs import RANKBRIDGE, RunningGang

END_S = 60.0


def url(gang: RunningGang) -> str:
    return str(json.loads(gang.endpoints_file.read_text())["page"])


@contextmanager
def served(*arguments: str) -> Iterator[str]:
    """`rankbridge page` by itself; gives the URL."""
    command = [RANKBRIDGE, "page", "--listen", "127.0.0.1:0", "--exit-on-stdin-close", *arguments]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin
        assert process.stdout
        line = process.stdout.readline()
        assert line.startswith("page  http://127.0.0.1:"), line
        yield line.removeprefix("page  ").strip()
        process.stdin.close()
        assert process.wait(END_S) == 0
