"""Evidence of a job that runs on this host: two looks at every rank, at all ranks at once."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from ...core.processes import GONE, Look, look
from ...doctor import flight_recorder
from ...doctor.arguments import with_arguments
from ...doctor.evidence import Call, Evidence, Group, Process, RankEvidence
from ...doctor.focus import focus
from ...doctor.looks import between
from . import injection, rings, stacks
from .afterwards import ended
from .injection import Answer
from .processes import Found, NoJob, host
from .rings import Record
from .stacks import Stacks

INTERVAL_S = 0.4
_AT_ONCE = 16
_MOST_CALLS = 80_000
"""Of all records together: reading more would keep the verdict waiting."""


@dataclass(frozen=True)
class _Seen:
    found: Found
    look: Look
    stacks: Stacks


_Looks = tuple[_Seen, _Seen, Answer, Record | None]


def collect(found: Sequence[Found], interval_s: float = INTERVAL_S, inject: bool = True) -> Evidence:
    """Evidence of these ranks. `inject`: whether to ask torch inside a rank. Raises NoJob if none is one."""
    with ThreadPoolExecutor(min(_AT_ONCE, len(found))) as pool:
        began = time.monotonic()
        began_at = time.time()
        first = list(pool.map(_see, found))
        time.sleep(max(0.0, interval_s - (time.monotonic() - began)))
        second = list(pool.map(_see, found))
        interval = max(interval_s, time.monotonic() - began)
        at = time.time()
        records = list(pool.map(lambda it: rings.that_of_process(it.pid, _MOST_CALLS // len(found)), found))
        # A rank that records is not asked.
        asked = list(zip(second, records, strict=True))
        answers = list(pool.map(lambda it: _ask(it[0], inject and it[1] is None), asked))
    looks = _by_rank(list(zip(first, second, answers, records, strict=True)))
    if not looks:
        raise NoJob(
            f"process {found[0].pid} and what it has started have no process group that this user may ask for"
        )
    ranks = [_rank(*it, began_at, at) for it in looks]
    found = [it[1].found for it in looks]
    ranks += _lost(found)
    notes = dict.fromkeys(note for it in ranks for note in it.notes)
    return focus(
        Evidence(
            at=at,
            interval_s=round(interval, 3),
            world_size=max(it.world_size for it in found),
            ranks=tuple(sorted((replace(it, notes=()) for it in ranks), key=lambda it: it.rank)),
            notes=tuple(notes),
        )
    )


def _by_rank(looks: list[_Looks]) -> list[_Looks]:
    """The same, with the rank that torch says where no environment did; of each rank the outermost process."""
    by_rank: dict[int, _Looks] = {}
    for first, second, answer, record in looks:
        content = answer.content or {}
        rank = second.found.rank
        size = second.found.world_size
        if rank is None and record is not None:
            rank, size = record.rank, record.world_size
        elif rank is None and isinstance(content.get("rank"), int):
            rank, size = content["rank"], int(content["world_size"])
        if rank is not None and rank not in by_rank:
            named = replace(second, found=replace(second.found, rank=rank, world_size=size))
            by_rank[rank] = (first, named, answer, record)
    return list(by_rank.values())


def _see(found: Found) -> _Seen:
    seen = look(found.pid)
    return _Seen(
        found, seen, stacks.read(found.pid, seen.threads or {}) if seen.state not in (GONE, "Z") else Stacks()
    )


def _ask(seen: _Seen, inject: bool) -> Answer:
    if not inject or seen.look.state in (GONE, "Z", "X", "T", "t"):
        return Answer()
    return injection.read(seen.found.pid, seen.stacks.threads)


def _rank(
    first: _Seen, second: _Seen, answer: Answer, record: Record | None, began_at: float, at: float
) -> RankEvidence:
    notes = [it for it in (second.stacks.trouble, answer.trouble) if it]
    groups: tuple[Group, ...] = ()
    calls: tuple[Call, ...] = ()
    source = ""
    begun: bool | None = None
    content = answer.content
    if content is not None:
        try:
            groups, calls = flight_recorder.known(content)
            has_all = "trace" in content or ("device_trace" in content and "trouble" not in content)
            source = "flight recorder" if has_all else ""
            begun = content.get("rank") is not None
        except flight_recorder.BadTrace as error:
            notes.append(f"rank {second.found.rank}: {error}")
        if "trouble" in content:
            notes.append(f"rank {second.found.rank}: {content['trouble']}")
    waiting = None
    if record is not None:
        groups, calls, source, begun = record.groups, record.calls, "ring", True
        waiting = None if record.waiting_since is None else max(0.0, at - record.waiting_since)
    mine = [it.stacks.threads[0].frames if it.stacks.threads else None for it in (first, second)]
    made = RankEvidence(
        rank=second.found.rank if second.found.rank is not None else -1,
        pid=second.found.pid,
        host=host(),
        process=between(first.look, second.look),
        groups=groups,
        threads=second.stacks.threads,
        still=None if mine[1] is None else mine[0] == mine[1],
        calling=str((content or {}).get("calling", "")),
        begun=begun,
        source=source,
        calls=calls,
        waiting_s=waiting,
        environment=second.found.environment,
        notes=tuple(notes),
    )
    if record is not None:
        return made
    arguments = second.stacks.arguments or {}
    peer, tag = arguments.get("src", arguments.get("dst")), arguments.get("tag")
    return replace(made, calls=with_arguments(made, peer, tag, began_at, at))


def _lost(found: Sequence[Found]) -> list[RankEvidence]:
    """Ranks that were started on this host and have no process any more; with what they have left, if they recorded."""
    size = max(it.world_size for it in found)
    present = {it.rank for it in found if it.rank is not None}
    left: dict[int, RankEvidence] = {}
    for directory in {it.watch_directory for it in found if it.watch_directory}:
        with suppress(OSError, rings.BadRing):
            left |= {
                it.rank: ended(it) for it in rings.in_directory(Path(directory)) if it.rank not in present
            }
    if all(it.environment.get("LOCAL_WORLD_SIZE") == str(size) for it in found):
        for rank in {*range(size)} - present - left.keys():
            left[rank] = RankEvidence(rank=rank, host=host(), process=Process(state=GONE))
    return list(left.values())
