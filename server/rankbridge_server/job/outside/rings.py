"""Reads the records that watched ranks write (`job.watch.ring`), while they run, stopped, or after their death."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...doctor.evidence import Call, Frame, Group
from ..watch.ring import (
    CAPACITY,
    DIMENSIONS,
    DTYPES,
    ENDED,
    HAS_FAILED,
    HEADER,
    HEADER_BYTES,
    HOW,
    IS_WHOLE,
    KINDS,
    MAGIC,
    ON_DEVICE,
    OPS,
    REASON_BYTES,
    RECORD,
    RECORD_BYTES,
    SUFFIX,
    TEXT_BYTES,
    WAITING,
)

_MOST_BYTES = HEADER_BYTES + TEXT_BYTES + CAPACITY * RECORD_BYTES
_DOUBLE = struct.Struct("<d")
_LONG = struct.Struct("<q")


class BadRing(ValueError):
    """What is wrong with a record."""


@dataclass(frozen=True)
class Record:
    """What a rank has written."""

    rank: int
    world_size: int
    pid: int
    groups: tuple[Group, ...]
    calls: tuple[Call, ...]
    waiting_since: float | None
    """In seconds since 1970; None if it is in no wait of Python's."""
    ended_at: float | None
    how: int
    """0: it did not say; 1: normally; 2: by an exception."""
    reason: str
    newest: float
    """When it last wrote of a call."""


def of_process(pid: int) -> Path | None:
    """The record that a process has mapped, as this process can open it."""
    try:
        maps = Path(f"/proc/{pid}/maps").read_text()
    except OSError:
        return None
    for line in maps.splitlines():
        path = line.split(maxsplit=5)[-1]
        if path.endswith(SUFFIX):
            inside = Path(f"/proc/{pid}/root") / path.lstrip("/")
            return inside if inside.exists() else None
    return None


def that_of_process(pid: int, most: int = CAPACITY) -> Record | None:
    """What a process records; None: nothing, or nothing that can be read."""
    path = of_process(pid)
    try:
        return None if path is None else read(path, most)
    except (OSError, BadRing):
        return None


def in_directory(directory: Path, most: int = CAPACITY) -> list[Record]:
    """The record of each rank that has one there: of several, that which was written last. Raises BadRing."""
    newest: dict[int, Record] = {}
    for path in sorted(directory.glob(f"*{SUFFIX}")):
        record = read(path, most)
        if record.rank not in newest or newest[record.rank].newest < record.newest:
            newest[record.rank] = record
    return [newest[it] for it in sorted(newest)]


def read(path: Path, most: int = CAPACITY) -> Record:
    """Reads a record, of its newest calls at most so many. Raises BadRing, OSError."""
    if not path.is_file() or path.stat().st_size > _MOST_BYTES:
        raise BadRing(f"{path} is no record of `rankbridge watch`")
    data = path.read_bytes()
    if len(data) < HEADER_BYTES + TEXT_BYTES or data[: len(MAGIC)] != MAGIC:
        raise BadRing(f"{path} is no record of `rankbridge watch`, or is cut off")
    _, capacity, text_bytes, pid, rank, size, _, used = HEADER.unpack_from(data, 0)
    if capacity != CAPACITY or text_bytes != TEXT_BYTES or used > TEXT_BYTES:
        raise BadRing(f"{path} was written by another version of rankbridge")
    try:
        texts = [json.loads(it) for it in data[HEADER_BYTES : HEADER_BYTES + used].splitlines()]
        # Groups that were destroyed may have had the same name: the last one counts.
        last = {it["group"]: at for at, it in enumerate(texts, 1) if "group" in it}
        groups = {at: _group(texts[at - 1]) for at in last.values()}
        sites = {at: _site(it) for at, it in enumerate(texts, 1) if "site" in it}
        calls, newest = _calls(data, groups, sites, most)
    except (ValueError, KeyError, TypeError, IndexError, struct.error) as error:
        raise BadRing(f"{path} is damaged: {error!r}") from None
    waiting, ended = _DOUBLE.unpack_from(data, WAITING)[0], _DOUBLE.unpack_from(data, ENDED)[0]
    reason = data[HOW + 1 : HOW + 1 + REASON_BYTES].rstrip(b"\0").decode("utf-8", "replace")
    return Record(
        rank=rank,
        world_size=size,
        pid=pid,
        groups=tuple(groups.values()),
        calls=calls,
        waiting_since=waiting or None,
        ended_at=ended or None,
        how=data[HOW],
        reason=reason,
        newest=newest,
    )


def _group(it: Mapping[str, Any]) -> Group:
    ranks = tuple(int(rank) for rank in it["ranks"])
    return Group(name=str(it["group"]), ranks=ranks, description=str(it["description"]))


def _site(it: Mapping[str, Any]) -> Frame:
    return Frame(name=str(it["site"]), file=str(it["file"]), line=int(it["line"]))


def _calls(
    data: bytes, groups: Mapping[int, Group], sites: Mapping[int, Frame], most: int
) -> tuple[tuple[Call, ...], float]:
    start = HEADER_BYTES + TEXT_BYTES
    places = []
    for at in range(start, len(data) - RECORD_BYTES + 1, RECORD_BYTES):
        count = _LONG.unpack_from(data, at)[0]
        if count:
            places.append((count, at))
    calls = []
    newest = 0.0
    for _, at in sorted(places)[-most:]:
        fields = RECORD.unpack_from(data, at)
        group = groups.get(fields[8])
        if group is not None:
            calls.append(_call(fields, group, sites))
            newest = max(newest, fields[1], fields[2])
    return tuple(calls), newest


def _call(fields: tuple[Any, ...], group: Group, sites: Mapping[int, Frame]) -> Call:
    (
        _,
        called,
        returned,
        number,
        kind,
        dtype,
        dimensions,
        flags,
        _,
        tensors,
        site,
        op,
        _,
        root,
        peer,
        tag,
        elements,
    ) = fields[:17]
    shape = tuple(fields[17 : 17 + min(dimensions, DIMENSIONS)])
    name = KINDS[kind]
    # Of several tensors the record has the first one's shape, and how many elements all have.
    shapes = (shape,) if tensors == 1 and dimensions <= DIMENSIONS else ((elements,),)
    return Call(
        group=group.name,
        number=number,
        kind=name,
        dtypes=(DTYPES[dtype],) if dtype else (),
        shapes=shapes if tensors else (),
        op=OPS[op] if op >= 0 else None,
        root=root if root >= 0 else None,
        peer=peer if peer >= 0 else None,
        tag=tag if tag >= 0 else None,
        site=sites.get(site),
        called_at=called,
        returned_at=returned or None,
        waited_at=fields[23] or None,
        done=_is_done(flags, returned, fields[23]),
        # A coordinator's call is over for the host when it has returned, whatever its device does.
        on_device=bool(flags & ON_DEVICE) and not flags & IS_WHOLE,
    )


def _is_done(flags: int, returned: float, waited: float) -> bool | None:
    """Whether a call is done; None: that is not known."""
    if flags & IS_WHOLE and not returned:
        return False
    over = returned if flags & IS_WHOLE else waited
    return True if over and not flags & (HAS_FAILED | ON_DEVICE) else None
