"""What ranks have recorded in a folder: of a gang with `--observe`, or of a job under `rankbridge watch`."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from .gangs import NoGang

if TYPE_CHECKING:
    from rankbridge import RecordedOperation


@dataclass(frozen=True)
class FolderRecords:
    """By rank, what it has recorded. `read_at`: up to when, in seconds since 1970; None: as far as they tell."""

    by_rank: dict[int, list[RecordedOperation]]
    read_at: float | None


def folder_records(folder: Path, *, limit: int = 0, group: str = "", caller: str = "") -> FolderRecords:
    """Reads the records of ranks that run or are dead; asks none.

    `limit`, `group`, `caller`: as of `rankbridge.Rank.record`. Raises NoGang: there are none, or one cannot be read.
    """
    from ..core.record.files import records_in

    try:
        return (
            _of_gang(folder, limit, group, caller)
            if records_in(folder)
            else _of_job(folder, limit, group, caller)
        )
    except OSError as error:
        raise NoGang(f"{folder} cannot be read: {error.strerror}") from None


def _of_gang(folder: Path, limit: int, group: str, caller: str) -> FolderRecords:
    from rankbridge._plan.record import record_from_wire

    from ..core.caller import Caller
    from .observed_folder import ranks_of

    ranks = ranks_of(folder)
    chosen = Caller[caller.upper()] if caller else None
    by_rank = {it.rank: record_from_wire(it.get_record(limit, group, chosen)) for it in ranks}
    runs = any(not it.is_dead for it in ranks)
    return FolderRecords(by_rank, time.time() if runs else max(it.record.alive for it in ranks))


def _of_job(folder: Path, limit: int, group: str, caller: str) -> FolderRecords:
    from ..job.outside.afterwards import running
    from ..job.outside.processes import NoJob
    from ..job.outside.rings import BadRing
    from .watched import records

    try:
        found, runs = records(folder), bool(running(folder))
    except (BadRing, NoJob) as error:
        raise NoGang(str(error)) from None
    if not found:
        raise NoGang(f"{folder} has no records, of `--observe` or of `rankbridge watch`")
    by_rank = {
        rank: [it for it in those if group in ("", it.group) and caller in ("", it.caller)][-limit:]
        for rank, those in found.items()
    }
    return FolderRecords(by_rank, time.time() if runs else None)
