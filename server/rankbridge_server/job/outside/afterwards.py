"""Evidence of a job that has ended, from the records that its ranks have left."""

from __future__ import annotations

import json
import time
from pathlib import Path

from ...core.processes import GONE, look
from ...doctor.evidence import Evidence, Process, RankEvidence
from ...doctor.focus import focus
from ..watch.ring import SUFFIX
from . import rings
from .processes import NoJob, host

_ENDED = "ended"


def collect(directory: Path) -> Evidence:
    """Evidence of the records of a folder. Raises NoJob if there is none."""
    try:
        found = rings.in_directory(directory)
    except rings.BadRing as error:
        raise NoJob(str(error)) from None
    if not found:
        raise NoJob(
            f"{directory} has no records of ranks: none has called a collective under `rankbridge watch`"
        )
    at, by = _end(directory)
    newest = max([at, *((it.ended_at or 0.0) if it.how else it.newest for it in found)])
    return focus(
        Evidence(
            at=newest,
            interval_s=0.0,
            ended_by=by,
            world_size=max(it.world_size for it in found),
            ranks=tuple(ended(it) for it in found),
        )
    )


def note_end(directory: Path, ended_by: str) -> None:
    """Notes that the job ends now, and by which signal from outside, if by one.

    How long its ranks have waited would not be known otherwise.
    """
    (directory / _ENDED).write_text(json.dumps({"at": time.time(), "by": ended_by}))


def _end(directory: Path) -> tuple[float, str]:
    try:
        noted = json.loads((directory / _ENDED).read_text())
        return float(noted["at"]), str(noted["by"])
    except (OSError, ValueError, KeyError, TypeError):
        return 0.0, ""


def ended(record: rings.Record) -> RankEvidence:
    """A rank that has left nothing but its record."""
    status = {1: 0, 2: 1}.get(record.how)
    return RankEvidence(
        rank=record.rank,
        pid=record.pid,
        host=host(),
        process=Process(state=GONE, exit_status=status, reason=record.reason),
        groups=record.groups,
        source="ring",
        calls=record.calls,
        waiting_s=None if record.waiting_since is None else max(0.0, record.newest - record.waiting_since),
    )


def has_records(directory: Path) -> bool:
    """Whether ranks have written records there."""
    return any(directory.glob(f"*{SUFFIX}"))


def running(directory: Path) -> list[int]:
    """Processes that still write their records of this folder. Raises NoJob."""
    try:
        found = rings.in_directory(directory, most=1)
    except rings.BadRing as error:
        raise NoJob(str(error)) from None
    return [it.pid for it in found if look(it.pid).state not in (GONE, "Z")]
