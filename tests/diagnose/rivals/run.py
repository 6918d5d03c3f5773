"""Runs a program with one of torch's own tools, and notes what it says."""

from __future__ import annotations

import http.client
import json
import pickle
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.diagnose.faults import Program
from tests.diagnose.jobs import torchrun
from tests.diagnose.plan import SIZE, Plan, marker
from tests.diagnose.rivals import inside
from tests.diagnose.rivals.tools import TIMEOUT_S, Tool, words_of_job, words_of_torchfrtrace
from tests.diagnose.run import ask, later, until_it_has_begun, wait_for
from tests.diagnose.said import Said
from tests.diagnose.variants import Variant

from rankbridge_server.doctor.verdict import Kind

LISTEN_S = 2 * TIMEOUT_S + 2.0
"""After the fault has begun."""
SETTLE_S = 1.5
"""After the first words: others may say more."""
_FRTRACE = "from torch.distributed.flight_recorder.fr_trace import main; main()"


@dataclass(frozen=True)
class Answer:
    """What a tool has said. `seconds`: from the fault to its first words; of torchfrtrace, those of the command."""

    said: Said
    seconds: float
    output: str


def ask_each(program: Program, seed: int) -> dict[Tool, Answer]:
    """Runs the program with each tool."""
    plan = Plan.drawn(program.name, seed)
    return {
        Tool.DETAIL: _by_output(program, plan, seed, {"TORCH_DISTRIBUTED_DEBUG": "DETAIL"}),
        Tool.MONITORED_BARRIER: _by_output(program, plan, seed, {inside.BARRIER: "1"}),
        **_by_dumps(program, plan, seed),
    }


def _by_output(program: Program, plan: Plan, seed: int, settings: Mapping[str, str]) -> Answer:
    """Until the fault has lasted for some time, or it was long enough right."""
    with tempfile.TemporaryDirectory(prefix="rankbridge-diagnose-") as name:
        folder = Path(name)
        given = {inside.TIMEOUT: str(TIMEOUT_S), **settings}
        with torchrun(program, seed, folder, Variant.UNPREPARED, given) as job:
            return _listened(program, plan, folder, job)


def _listened(program: Program, plan: Plan, folder: Path, job: subprocess.Popen[bytes]) -> Answer:
    wanted = range(100, 100 + SIZE) if program.is_right else [plan.victim]
    markers = [marker(folder, it) for it in wanted]
    deadline = time.monotonic() + 90.0
    while not all(it.exists() for it in markers) and job.poll() is None:
        if time.monotonic() > deadline:
            raise TimeoutError(f"{program.name} has not begun")
        time.sleep(0.02)
    began = time.monotonic()
    heard: float | None = None
    while time.monotonic() < min(began + LISTEN_S, (heard or began + LISTEN_S) + SETTLE_S):
        if heard is None and words_of_job(_output(folder), SIZE).detected:
            heard = time.monotonic()
        time.sleep(0.05)
    output = _output(folder)
    said = words_of_job(output, SIZE)
    return Answer(said, (heard or time.monotonic()) - began, output)


def _output(folder: Path) -> str:
    return (folder / "output").read_text(errors="replace")


def _by_dumps(program: Program, plan: Plan, seed: int) -> dict[Tool, Answer]:
    """The same run, judged by torch's tool and by the doctor."""
    with tempfile.TemporaryDirectory(prefix="rankbridge-diagnose-") as name:
        folder = Path(name)
        dumps = folder / "dumps"
        dumps.mkdir()
        with torchrun(program, seed, folder, Variant.WATCHED, {inside.SERVER: "1"}) as job:
            if program.ends:
                # What ends the job takes the recorder along.
                wait_for(lambda: job.poll() is not None or marker(folder, plan.victim).exists())
                _write_dumps(folder, dumps)
            until_it_has_begun(program, plan, folder, job)
            time.sleep(later(program, seed))
            if not program.ends:
                _write_dumps(folder, dumps)
            asked = ask(program, Variant.WATCHED, folder, job)
        doctor = Answer(Said.by_doctor(asked.verdict), asked.seconds, asked.text)
        return {Tool.TORCHFRTRACE: _judged(dumps), Tool.DOCTOR: doctor}


def _write_dumps(folder: Path, dumps: Path) -> None:
    for rank in range(SIZE):
        # Who has ended or is stopped gives none.
        with suppress(OSError, http.client.HTTPException):
            (dumps / f"rank_{rank}").write_bytes(pickle.dumps(_dump(folder, rank)))


def _judged(dumps: Path) -> Answer:
    found = len(list(dumps.iterdir()))
    if not found:
        return Answer(Said(Kind.HEALTHY, detected=False), 0.0, "no rank had a dump")
    command = [sys.executable, "-c", _FRTRACE, str(dumps), "-p", "rank_"]
    command += ["--allow-incomplete-ranks"] if found < SIZE else []
    began = time.monotonic()
    answer = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    output = answer.stdout + answer.stderr
    return Answer(words_of_torchfrtrace(output, SIZE), time.monotonic() - began, output)


class _Connection(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=3.0)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


def _dump(folder: Path, rank: int) -> dict[str, Any]:
    """The flight recorder of a rank, as the tool needs it: on Gloo it has neither groups nor states."""
    connection = _Connection(inside.socket(folder, rank))
    try:
        connection.request("POST", "/handler/fr_trace_json")
        trace = json.loads(connection.getresponse().read())
    finally:
        connection.close()
    groups = json.loads(inside.groups(folder, rank).read_text())
    known = [it for it in trace["entries"] if it["process_group"][0] in groups]
    for it in known:
        it["process_group"] = tuple(it["process_group"])
        it["state"] = "completed" if it["retired"] else "scheduled"
        it.setdefault("frames", [])
    config = {
        name: {"name": name, "desc": it["desc"], "ranks": str(it["ranks"])} for name, it in groups.items()
    }
    return {**trace, "entries": known, "pg_config": config, "rank": rank}
