"""Runs a program with one of torch's own tools, and notes what it says."""

from __future__ import annotations

import http.client
import json
import pickle
import socket
import tempfile
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.diagnose.faults import Program
from tests.diagnose.jobs import torchrun
from tests.diagnose.plan import SIZE, Plan, marker
from tests.diagnose.rivals import inside
from tests.diagnose.rivals.forked import forked, torchfrtrace
from tests.diagnose.rivals.tools import TIMEOUT_S, Tool, words_of_job, words_of_torchfrtrace
from tests.diagnose.run import MACHINE, Job, ask, later, until_it_has_begun, wait_for
from tests.diagnose.said import Said
from tests.diagnose.variants import Variant

from rankbridge_server.doctor.verdict import Kind
from rankbridge_server.job.watch import DIRECTORY

LISTEN_S = 2 * TIMEOUT_S + 2.0
"""After the fault has begun."""
SETTLE_S = 1.5
"""After the first words: others may say more."""


@dataclass(frozen=True)
class Answer:
    """What a tool has said. `seconds`: from the fault to its first words; of torchfrtrace, those of the command."""

    said: Said
    seconds: float
    output: str


def listen(program: Program, seed: int) -> dict[Tool, Answer]:
    """Runs the program with each tool that speaks in the job's output."""
    return {
        Tool.DETAIL: _by_output(program, seed, {"TORCH_DISTRIBUTED_DEBUG": "DETAIL"}),
        Tool.MONITORED_BARRIER: _by_output(program, seed, {inside.BARRIER: "1"}),
    }


def _by_output(program: Program, seed: int, settings: Mapping[str, str]) -> Answer:
    """Until the fault has lasted for some time, or it was long enough right."""
    plan = Plan.drawn(program.name, seed)
    with tempfile.TemporaryDirectory(prefix="rankbridge-diagnose-") as name:
        folder = Path(name)
        with forked(program, seed, folder, {inside.TIMEOUT: str(TIMEOUT_S), **settings}) as job:
            wanted = range(100, 100 + SIZE) if program.is_right else [plan.victim]
            markers = [marker(folder, it) for it in wanted]
            wait_for(lambda: all(it.exists() for it in markers) or job.poll() is not None)
            return _listened(folder)


def _listened(folder: Path) -> Answer:
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


def judge(program: Program, seed: int) -> dict[Tool, Answer]:
    """Runs the program once; torch's tool judges it by its dumps, and the doctor."""
    plan = Plan.drawn(program.name, seed)
    with tempfile.TemporaryDirectory(prefix="rankbridge-diagnose-") as name, ExitStack() as stack:
        folder = Path(name)
        dumps = folder / "dumps"
        dumps.mkdir()
        with MACHINE.beginning():
            job = stack.enter_context(_watched(program, seed, folder))
            if program.ends:
                # What ends the job takes the recorder along.
                wait_for(lambda: job.poll() is not None or marker(folder, plan.victim).exists())
                _write_dumps(folder, dumps)
            until_it_has_begun(program, plan, folder, job)
        time.sleep(later(program, seed))
        with MACHINE.judging():
            if not program.ends:
                _write_dumps(folder, dumps)
            asked = ask([str(folder / "record" if _has_record(program) else job.pid)])
            doctor = Answer(Said.by_doctor(asked.verdict), asked.seconds, asked.text)
        return {Tool.TORCHFRTRACE: _judged(dumps), Tool.DOCTOR: doctor}


def _has_record(program: Program) -> bool:
    """Whether its ranks come to a first call."""
    return Kind.RENDEZVOUS not in program.kinds


def _watched(program: Program, seed: int, folder: Path) -> AbstractContextManager[Job]:
    if not _has_record(program):
        # Then a rank is known only by the variables that torchrun starts it with.
        return torchrun(program, seed, folder, Variant.WATCHED, {inside.SERVER: "1"})
    (folder / "record").mkdir()
    return forked(program, seed, folder, {inside.SERVER: "1", DIRECTORY: str(folder / "record")})


def _write_dumps(folder: Path, dumps: Path) -> None:
    for rank in range(SIZE):
        # Who has ended or is stopped gives none.
        with suppress(OSError, http.client.HTTPException):
            (dumps / f"rank_{rank}").write_bytes(pickle.dumps(_dump(folder, rank)))


def _judged(dumps: Path) -> Answer:
    found = len(list(dumps.iterdir()))
    if not found:
        return Answer(Said(Kind.HEALTHY, detected=False), 0.0, "no rank had a dump")
    incomplete = ["--allow-incomplete-ranks"] if found < SIZE else []
    began = time.monotonic()
    output = torchfrtrace([str(dumps), "-p", "rank_", *incomplete], dumps.with_name("torchfrtrace"))
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
