"""Stacks of a process, by py-spy, which reads its memory and stops nothing."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...doctor.evidence import Frame, Thread

_TIMEOUT_S = 5.0
_TRIES = 3
_WANTED = {"src", "dst", "tag", "group_src", "group_dst"}
INSTALL = "py-spy is not installed, so that stacks are not known: pip install 'rankbridge[doctor]'"
GRANT = (
    "this user may not look into process {pid}, so that its stacks are not known: run as root, or as its user with "
    "CAP_SYS_PTRACE or /proc/sys/kernel/yama/ptrace_scope 0 (in a container: --cap-add SYS_PTRACE)"
)


@dataclass(frozen=True)
class Stacks:
    """Threads of a process, the main thread first; `trouble` says why there are none."""

    threads: tuple[Thread, ...] = ()
    arguments: Mapping[str, int] | None = None
    """Of the call into torch.distributed that is innermost: peer, root, tag."""
    trouble: str = ""


def program() -> str | None:
    """Where py-spy is."""
    beside = Path(sys.executable).parent / "py-spy"
    return str(beside) if beside.exists() else shutil.which("py-spy")


def threads(pid: int, states: Mapping[int, str]) -> tuple[Thread, ...]:
    """Its threads; none if they cannot be read."""
    return read(pid, states).threads


def read(pid: int, states: Mapping[int, str]) -> Stacks:
    """Its stacks. `states`: of its threads, by number."""
    command = program()
    if command is None:
        return Stacks(trouble=INSTALL)
    trouble = ""
    for attempt in range(_TRIES):
        # Reading values of a process that runs can fail where its frames can be read.
        values = ["--locals"] if attempt < _TRIES - 1 else []
        try:
            answer = subprocess.run(
                [command, "dump", "--nonblocking", "--json", *values, "--pid", str(pid)],
                capture_output=True,
                timeout=_TIMEOUT_S,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return Stacks(trouble=f"py-spy did not read process {pid}: {error}")
        said = answer.stderr.decode("utf-8", "replace")
        if answer.returncode == 0:
            try:
                return _parsed(json.loads(answer.stdout), pid, states)
            except (ValueError, KeyError, TypeError) as error:
                trouble = f"py-spy's answer of process {pid} was not understood: {error!r}"
        elif "ermission" in said or "not permitted" in said:
            return Stacks(trouble=GRANT.format(pid=pid))
        else:
            trouble = f"py-spy did not read process {pid}: {said.strip().splitlines()[-1:] or 'no reason'}"
    return Stacks(trouble=trouble)


def _parsed(data: list[dict[str, Any]], pid: int, states: Mapping[int, str]) -> Stacks:
    threads = []
    arguments: dict[str, int] | None = None
    for it in sorted(data, key=lambda it: it["os_thread_id"] != pid):
        frames = it["frames"]
        number = it["os_thread_id"]
        threads.append(
            Thread(
                name=str(it["thread_name"] or number),
                os_id=number,
                state=states.get(number, "?") if number is not None else "?",
                owns_gil=bool(it["owns_gil"]),
                frames=tuple(Frame(name=at["name"], file=at["filename"], line=at["line"]) for at in frames),
            )
        )
        arguments = arguments or _arguments(frames)
    return Stacks(tuple(threads), arguments)


def _arguments(frames: list[dict[str, Any]]) -> dict[str, int] | None:
    """Numbers among the arguments of torch.distributed's own function; nothing of the job's values."""
    for frame in frames:
        if "/torch/distributed/distributed_c10d.py" in frame["filename"] and frame.get("locals"):
            values = {it["name"]: it["repr"] for it in frame["locals"] if it["name"] in _WANTED}
            return {name: int(value) for name, value in values.items() if str(value).lstrip("-").isdecimal()}
    return None
