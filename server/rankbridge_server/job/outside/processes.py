"""Ranks among the processes of this host, and what the kernel says of them."""

from __future__ import annotations

import os
import socket
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from . import rings
from .connections import has_connection

_BY_TORCHRUN = "TORCHELASTIC_RUN_ID"
_JOB = ("MASTER_ADDR", "MASTER_PORT", _BY_TORCHRUN)
_SHOWN = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", *_JOB, "TORCHELASTIC_RESTART_COUNT")
WATCH_DIRECTORY = "RANKBRIDGE_WATCH_DIRECTORY"


class NoJob(Exception):
    """There is no job to look at, or more than one; says what to do."""


@dataclass(frozen=True)
class Found:
    """A process that is a rank."""

    pid: int
    rank: int | None
    """None: its environment does not say; torch is asked inside."""
    world_size: int
    environment: dict[str, str]
    watch_directory: str = ""

    @property
    def job(self) -> tuple[str, ...]:
        """What the ranks of a job have in common."""
        return tuple(self.environment.get(it, "") for it in _JOB)


def find(pids: Sequence[int] = (), *, by_torchrun: bool = False) -> list[Found]:
    """The ranks of the job that these processes are of; without any, of the only job of this host.

    With `by_torchrun`, jobs that something else has started do not count.
    If the environment of a process names no rank, as under torch.multiprocessing, every process below it that has
    loaded torch counts as one, and of a single process also those beside it, if it was started by one that has, and is
    no rank itself.
    Raises NoJob.
    """
    parents = {it: _parent(it) for it in _pids()}
    named = [it for it in _candidates() if not by_torchrun or _BY_TORCHRUN in it.environment]
    starters = _Starters(named, parents)
    candidates = [it for it in named if not starters.have_a_rank(it)]
    ranks = list(_outermost(candidates, parents))
    if pids:
        wanted: set[tuple[str, ...]] = set()
        without = []
        for pid in pids:
            if not Path(f"/proc/{pid}").exists():
                raise NoJob(f"there is no process {pid}")
            jobs = {it.job for it in candidates if pid in (it.pid, *_ancestors(it.pid, parents))}
            if not jobs:
                without.append(pid)
            wanted |= jobs
        if without:
            return _without_environment(without, parents)
        ranks = [it for it in ranks if it.job in wanted]
    jobs = {it.job for it in ranks}
    if not jobs:
        names = ("RANK", "WORLD_SIZE", *((_BY_TORCHRUN,) if by_torchrun else ()))
        raise NoJob(
            f"no rank was found on this host: no process has {', '.join(names)} and MASTER_PORT in its environment (of "
            "other users' processes, root alone sees that)"
        )
    if len(jobs) > 1:
        firsts = sorted(min(it.pid for it in ranks if it.job == job) for job in jobs)
        raise NoJob(
            f"{len(jobs)} jobs run on this host: name one by a process of it: {', '.join(map(str, firsts))}"
        )
    return sorted(ranks, key=lambda it: it.rank or 0)


def _without_environment(pids: Sequence[int], parents: Mapping[int, int]) -> list[Found]:
    tops = set(pids)
    starter = parents.get(pids[0], 0)
    # What is recorded is a rank, of another job: a launcher is not.
    if len(pids) == 1 and _has_torch(pids[0]) and _has_torch(starter) and _recorded(starter) is None:
        tops = {starter}
    found = [it for it in parents if tops & {it, *_ancestors(it, parents)} and _has_torch(it)]
    if not found:
        raise NoJob(
            f"process {pids[0]} is no rank, and has started none that this user may see: none has "
            "RANK and WORLD_SIZE in its environment, or torch in its memory"
        )
    # Those that have started others come first.
    found.sort(key=lambda it: len(list(_ancestors(it, parents))))
    return [Found(it, None, 0, {}, _environment(it).get(WATCH_DIRECTORY, "")) for it in found]


def _candidates() -> Iterable[Found]:
    for pid in _pids():
        if pid == os.getpid():
            continue
        values = _environment(pid)
        rank, size = values.get("RANK", ""), values.get("WORLD_SIZE", "")
        if rank.isdecimal() and size.isdecimal() and "MASTER_PORT" in values:
            shown = {it: values[it] for it in _SHOWN if it in values}
            yield Found(pid, int(rank), int(size), shown, values.get(WATCH_DIRECTORY, ""))


def _environment(pid: int) -> dict[str, str]:
    """Empty if this user may not see it."""
    try:
        raw = Path(f"/proc/{pid}/environ").read_bytes().decode("utf-8", "replace")
    except OSError:
        return {}
    pairs = (it.partition("=") for it in raw.split("\0"))
    return {name: value for name, _, value in pairs}


class _Starters:
    """What is known of processes that have started others, each of which may have started many."""

    def __init__(self, named: Iterable[Found], parents: Mapping[int, int]) -> None:
        self._named = {it.pid for it in named}
        self._parents = parents
        self._has_torch = cache(_has_torch)
        self._recorded = cache(_recorded)

    def have_a_rank(self, it: Found) -> bool:
        """Whether one of them is the rank, and has given this one what it has written into its own environment.

        Such a rank's environment does not name it in /proc, as a launcher's does not.
        """
        for pid in _ancestors(it.pid, self._parents):
            if pid in self._named:
                return False
            if self._recorded(pid) == (it.rank, it.world_size):
                return True
            is_started = self._has_torch(pid) and self._has_torch(self._parents.get(pid, 0))
            if is_started and _BY_TORCHRUN not in it.environment and _is_rank_rather_than(pid, it):
                return True
        return False


def _is_rank_rather_than(pid: int, it: Found) -> bool:
    """Whether a process with torch is the rank that one which it has started claims to be.

    That one has no torch, or no connection to the job's store, as a loader of data has none.
    """
    port = it.environment["MASTER_PORT"]
    if not _has_torch(it.pid):
        return True
    return port.isdecimal() and has_connection(pid, int(port)) and not has_connection(it.pid, int(port))


def _recorded(pid: int) -> tuple[int, int] | None:
    """As which rank of how many a process records its calls; None: it does not."""
    record = rings.that_of_process(pid, most=1)
    return None if record is None else (record.rank, record.world_size)


def _outermost(candidates: Sequence[Found], parents: Mapping[int, int]) -> Iterable[Found]:
    """Of each rank the process that started the others, which load data; past a shell, which has no torch."""
    by_rank: dict[tuple[tuple[str, ...], int | None], list[Found]] = defaultdict(list)
    for it in candidates:
        by_rank[it.job, it.rank].append(it)
    for them in by_rank.values():
        with_torch = [it for it in them if len(them) == 1 or _has_torch(it.pid)] or them
        pids = {it.pid for it in with_torch}
        tops = [it for it in with_torch if not pids & set(_ancestors(it.pid, parents))]
        yield min(tops or with_torch, key=lambda it: it.pid)


def _has_torch(pid: int) -> bool:
    try:
        return b"libtorch" in Path(f"/proc/{pid}/maps").read_bytes()
    except OSError:
        return False


def _pids() -> list[int]:
    return [int(it) for it in os.listdir("/proc") if it.isdecimal()]


def _parent(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except (OSError, IndexError):
        return 0


def _ancestors(pid: int, parents: Mapping[int, int]) -> Iterable[int]:
    seen = set()
    while (pid := parents.get(pid, 0)) and pid not in seen:
        seen.add(pid)
        yield pid


def host() -> str:
    """Name of this host."""
    return socket.gethostname()


def owner(pid: int) -> tuple[int, int]:
    """User and group of a process. Raises OSError if there is none."""
    status = os.stat(f"/proc/{pid}")
    return status.st_uid, status.st_gid
