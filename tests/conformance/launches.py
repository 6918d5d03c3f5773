"""Starting ranks as a launcher does, where a case is about what they are started with."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from unittest import mock

from tests.conformance.moments import Answer
from tests.support import prepared
from tests.support.gangs import RANKBRIDGE, START_TIMEOUT_S, up

import rankbridge
from rankbridge import Gang
from rankbridge_server.cli.environment import Launched, LaunchError


@cache
def started_on(backend: str) -> str:
    """Why a gang of one cannot be started on a backend. Empty: it can.

    The machine of the records had no CUDA device, and no MPI that could move their tensors: here neither is found.
    """
    with tempfile.TemporaryDirectory() as directory:
        Path(directory, "mpi4py.py").write_text("raise ImportError('not there when it was recorded')\n")
        paths = os.pathsep.join(filter(None, (directory, os.environ.get("PYTHONPATH"))))
        without = {"PYTHONPATH": paths, "CUDA_VISIBLE_DEVICES": ""}
        try:
            with mock.patch.dict(os.environ, without), up(Path(directory), 1, backend):
                return ""
        except AssertionError as error:
            return str(error)


@contextmanager
def gang_of_one(environment: Mapping[str, str], backend: str) -> Iterator[Gang]:
    """Starts a gang of one where a launcher's variables are set, which it was not started by."""
    with (
        tempfile.TemporaryDirectory() as directory,
        mock.patch.dict(os.environ, environment),
        up(Path(directory), 1, backend) as running,
        rankbridge.connect(running.endpoints_file, timeout=START_TIMEOUT_S) as gang,
    ):
        yield gang


@contextmanager
def never_formed() -> Iterator[Gang]:
    """Starts a rank that nobody forms a gang of."""
    command = ("rank", "--rank", "0", "--size", "1", "--listen", "127.0.0.1:0")
    with prepared.rankbridge(command) as process:
        assert process.stdout is not None
        try:
            (target,) = re.findall(r"^rank 0 .* (\S+)$", process.stdout.readline())
            (file,) = re.findall(r"^tokens +(\S+)$", process.stdout.readline())
            token = json.loads(Path(file).read_text())["own"]
            with rankbridge.connect([target], token=token, timeout=START_TIMEOUT_S) as gang:
                yield gang
        finally:
            process.terminate()


@cache
def default_backend() -> str:
    """What `rankbridge up` says that it starts ranks on, if nothing else is asked for."""
    done = subprocess.run(
        [RANKBRIDGE, "up", "--help"], capture_output=True, text=True, timeout=START_TIMEOUT_S, check=True
    )
    text = " ".join(done.stdout.split())
    (found,) = re.findall(r"--backend \[[^]]*\] what moves the data.*?\[default: (\w+)\]", text)
    assert isinstance(found, str)
    return found


def start_on(backend: str) -> Answer:
    """What a gang of one on a backend answers: that it is there, or that it was refused."""
    refusal = started_on(backend)
    return {"error": {"code": "REFUSED", "message": refusal}} if refusal else {"ok": None}


def launched(environment: Mapping[str, str | None]) -> Answer:
    """What a rank reads from a launcher's environment, or that it refuses it. Variables that are None are not set."""
    there = {name: value for name, value in environment.items() if value is not None}
    try:
        return {"ok": Launched.read(there, None, None)}
    except LaunchError as error:
        return {"error": {"code": "LaunchError", "message": str(error)}}
