"""Gangs for chaos, with a controller of each client connected to them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.chaos.controllers.elixir import ElixirController
from tests.chaos.controllers.process import ElixirProcess
from tests.chaos.controllers.python import PythonController
from tests.chaos.findings import Findings
from tests.chaos.newcomers import welcome
from tests.chaos.pending import MAX_PENDING
from tests.chaos.scene import PAIR, Scene
from tests.support.gangs import up

import rankbridge

MAX_SESSION_REFS = 64
# All of its memory is in use soon.
MAX_RECORD = 64


@contextmanager
def scene(
    directory: Path,
    size: int,
    findings: Findings,
    elixir: ElixirProcess | None = None,
    backend: str = "gloo",
) -> Iterator[Scene]:
    """Starts a gang with small limits, and connects controllers to it.

    Args:
        directory: For its endpoints, and for tensors on their way.
        size: Its ranks.
        findings: Gets what is found.
        elixir: Drives it as well. None: the Python client alone does.
        backend: What moves its data.
    """
    limits = ["--max-pending", str(MAX_PENDING), "--max-session-refs", str(MAX_SESSION_REFS)]
    limits += ["--max-record", str(MAX_RECORD)]
    with ExitStack() as stack:
        running = stack.enter_context(up(directory, size, backend, limits))
        gang = stack.enter_context(rankbridge.connect(running.targets))
        it = Scene(gang, running, findings, {"python": PythonController(gang)}, pids=list(running.pids))
        gang.new_group(PAIR, it.groups[PAIR])
        if elixir is not None:
            controller = ElixirController(elixir, directory, running.targets)
            stack.callback(controller.close)
            it.controllers["elixir"] = controller
        welcome(it, range(size))
        yield it
