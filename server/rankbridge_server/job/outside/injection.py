"""torch's flight recorder, read from inside a rank that nobody prepared: a thread of it runs a few lines for us.

The lines run in a thread that is blocked outside of Python, with Python's lock, so that they find nothing half done.
Where a thread sleeps with the lock, they run in that one. While a thread runs with it, they are left to the main thread
for its next safe point. The process that traces it (`tracer`) is never ended while it has a call under way: that would
take the rank along.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from ...doctor.evidence import Thread
from .processes import owner

_TRACER = f"{__package__}.tracer"
_SOURCE = ("rankbridge_server.core", "torch_state.py")
_TIMEOUT_S = 3.0
"""With the rest, a verdict is there within five."""
_MOST_BYTES = 64 << 20
_POINT_S = 0.5
"""How long the main thread may take to its next safe point."""
_IDLE = (
    *("futex_do_wait", "futex_wait_queue", "futex_wait_queue_me"),
    *("hrtimer_nanosleep", "do_epoll_wait", "ep_poll"),
)
"""Where blocked threads are in the kernel. Those that are least likely to wake first."""


_PROCESSORS = ("x86_64", "AMD64")


@dataclass(frozen=True)
class _Place:
    """`threads`: the first one that is still blocked is taken. `soon`: at the next safe point of the main thread."""

    threads: tuple[int, ...]
    soon: bool = False


@dataclass(frozen=True)
class Answer:
    """What a rank says of itself. `trouble` says why it is nothing."""

    content: dict[str, Any] | None = None
    trouble: str = ""


def read(pid: int, threads: Sequence[Thread]) -> Answer:
    """Asks it. `threads`: those that run Python, if they are known."""
    if platform.machine() not in _PROCESSORS:
        return Answer(
            trouble=f"collectives of a job that nobody prepared are not read on {platform.machine()}"
        )
    if not threads:
        return Answer(
            trouble=f"process {pid} was not asked for its collectives: without its stacks that is not safe"
        )
    place = _place(pid, threads)
    if place is None:
        return Answer(
            trouble=f"process {pid} has no thread in which a question would be safe: it was not asked"
        )
    root = Path(f"/proc/{pid}/root")
    # A link of the rank's own making would be followed from this process's root.
    if (root / "tmp").is_symlink():
        return Answer(trouble=f"process {pid} was not asked: its /tmp is a link")
    try:
        folder = Path(tempfile.mkdtemp(prefix="rankbridge-doctor-", dir=root / "tmp"))
    except OSError as error:
        return Answer(trouble=f"process {pid} was not asked: {error}")
    try:
        return _asked(pid, place, folder, "/" + str(folder.relative_to(root)))
    except OSError as error:
        return Answer(trouble=f"process {pid} was not asked: {error}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _asked(pid: int, place: _Place, folder: Path, inside: str) -> Answer:
    source = resources.files(_SOURCE[0]).joinpath(_SOURCE[1]).read_text()
    (folder / "ask.py").write_text(f"{source}\nwrite_torch_state({inside + '/answer'!r})\n")
    for path in (folder, folder / "ask.py"):
        os.chown(path, *owner(pid))
    # It runs among the names of the rank's script: it must leave none there, and no open file.
    line = (
        f'(lambda f: exec(compile(f.read(),"rankbridge","exec"),{{}}) or f.close())(open("{inside}/ask.py"))'
    )
    # A job that goes on has no use for a file that nobody waits for any more.
    text = f"try: {line}\nexcept BaseException: pass\n"
    blocked = ",".join(map(str, place.threads))
    process = subprocess.Popen(
        [sys.executable, "-m", _TRACER, str(pid), blocked, "soon" if place.soon else "now", text],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        said = process.communicate(timeout=_TIMEOUT_S)[0].decode("utf-8", "replace").strip()
    except subprocess.TimeoutExpired:
        return Answer(trouble=f"process {pid} did not answer within {_TIMEOUT_S:g} s")
    if said:
        return Answer(trouble=f"process {pid} was not asked for its collectives: {said}")
    answer = folder / "answer"
    deadline = time.monotonic() + (_POINT_S if place.soon else 0)
    while not answer.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    try:
        content = json.loads(_content(answer))
    except FileNotFoundError:
        return Answer(trouble=f"process {pid} did not answer")
    except (ValueError, RecursionError) as error:
        return Answer(trouble=f"what process {pid} says of itself was not understood: {error}")
    if not isinstance(content, dict):
        return Answer(trouble=f"what process {pid} says of itself was not understood")
    return Answer(content)


def _content(path: Path) -> bytes:
    """A file that another user may have put there: no link, nothing that keeps its reader waiting, and not too long."""
    file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(file, "rb") as opened:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise ValueError("it is no file")
        content = opened.read(_MOST_BYTES + 1)
    if len(content) > _MOST_BYTES:
        raise ValueError(f"it has more than {_MOST_BYTES:,} bytes")
    return content


def _place(pid: int, threads: Sequence[Thread]) -> _Place | None:
    """Where lines can run. None: nowhere."""
    python = {it.os_id for it in threads}
    holder = next((it for it in threads if it.owns_gil), None)
    if holder is not None and holder.os_id is not None and holder.state in ("S", "D"):
        return _Place((holder.os_id,))
    blocked: dict[int, int] = {}
    for task in Path(f"/proc/{pid}/task").glob("[0-9]*"):
        number = int(task.name)
        try:
            state = (task / "stat").read_text().rpartition(")")[2].split()[0]
            wchan = (task / "wchan").read_text().strip()
        except OSError:
            continue
        if number not in python and number != pid and state == "S" and wchan in _IDLE:
            blocked[number] = _IDLE.index(wchan)
    if blocked:
        runs = holder is not None and holder.os_id == pid
        return _Place(tuple(sorted(blocked, key=lambda it: (blocked[it], it))), runs)
    main = next((it for it in threads if it.os_id == pid), None)
    return _Place((pid,)) if main is not None and main.state == "S" and holder is None else None
