"""Answers of NCCL's RAS, as `ncclras -f json` prints them, as evidence: how many collectives each rank has launched.

The format is that of NCCL's documentation, from NCCL 2.28.7 on. It has no line of code, shape or dtype.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ...core.processes import GONE
from ...doctor.evidence import Call, Evidence, Group, Process, RankEvidence
from ...doctor.verdict import Condition
from .processes import NoJob

SOURCE = "ras"
MOST_BYTES = 256 << 20
_NO_COMMA = re.compile(r'("nvml_dev":\s*-?\d+)(\s*"status")')
"""What NCCL 2.28.9 writes of missing ranks."""
_KINDS = {
    "AllReduce": "all_reduce",
    "Broadcast": "broadcast",
    "Reduce": "reduce",
    "AllGather": "all_gather",
    "ReduceScatter": "reduce_scatter",
    "AlltoAll": "all_to_all",
    "Gather": "gather",
    "Scatter": "scatter",
}
_POINT_TO_POINT = ("Send", "Recv", "SendRecv")
_SOME = "a collective"
"""One of several kinds."""
_ERRORS = {
    1: "unhandled CUDA error",
    2: "unhandled system error",
    3: "internal error",
    4: "invalid argument",
    5: "invalid usage",
    6: "remote process exited or there was a network error",
    8: "timeout",
}
_IN_PROGRESS = 7


class BadAnswer(ValueError):
    """What is wrong with an answer."""


@dataclass(frozen=True, order=True)
class _Gpu:
    """What a rank is, in all communicators."""

    host: str
    number: int
    pid: int


@dataclass(frozen=True)
class _Member:
    """A rank of a communicator. `counts`: by kind; None: it has not answered."""

    gpu: _Gpu
    counts: Mapping[str, int] | None
    error: int = 0
    is_dead: bool = False
    is_unresponsive: bool = False

    @property
    def launched(self) -> int:
        return sum((self.counts or {}).values())


@dataclass(frozen=True)
class _Communicator:
    """`is_settled`: it is neither made nor ended at present."""

    key: str
    size: int
    members: Mapping[int, _Member]
    is_settled: bool


@dataclass(frozen=True)
class _Answer:
    at: float
    communicators: Mapping[str, _Communicator]


def collect(paths: Sequence[Path]) -> Evidence:
    """Evidence of one answer, or of the first and the last of several. Raises NoJob."""
    answers = sorted((_read(it) for it in paths), key=lambda it: it.at)
    first, last = answers[0], answers[-1]
    names = _names(last)
    if not names:
        raise NoJob(f"{paths[-1]}: it has no communicators")
    moved = {
        names[gpu]
        for key, it in last.communicators.items()
        for gpu in _moved(first.communicators.get(key), it)
    }
    looked_twice = last.at > first.at
    found = {rank: _Rank(gpu) for gpu, rank in names.items()}
    notes = [] if looked_twice else ["one answer of RAS: a second, seconds later, shows whether ranks move"]
    if not _has_all(last, names):
        notes.append("no communicator has all processes: ranks are numbered by host and GPU")
    for it in last.communicators.values():
        notes += _troubles(it, names)
        if it.is_settled:
            _add(found, it, names, moved, first.at if looked_twice else None, last.at)
    return Evidence(
        at=last.at,
        interval_s=last.at - first.at,
        world_size=len(names),
        ranks=tuple(found[rank].evidence(rank) for rank in sorted(found)),
        has_numbers=False,
        notes=tuple(dict.fromkeys(notes)),
    )


@dataclass
class _Rank:
    """What is known of a rank, as communicators are looked at."""

    gpu: _Gpu
    groups: list[Group] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    has_answered: bool = False
    is_dead: bool = False
    is_unresponsive: bool = False

    def evidence(self, rank: int) -> RankEvidence:
        is_silent = not self.has_answered and self.is_unresponsive
        is_known = self.has_answered or self.is_dead or is_silent
        return RankEvidence(
            rank=rank,
            pid=self.gpu.pid,
            host=self.gpu.host,
            process=Process(state=GONE if self.is_dead else "?"),
            groups=tuple(self.groups),
            source=SOURCE if is_known else "",
            calls=tuple(self.calls),
            says=Condition.SILENT if is_silent and not self.is_dead else "",
        )


def _add(
    found: Mapping[int, _Rank],
    it: _Communicator,
    names: Mapping[_Gpu, int],
    moved: set[int],
    since: float | None,
    at: float,
) -> None:
    """Adds what a communicator says of its members. `since`: when it was looked at before."""
    members = {names[member.gpu]: member for member in it.members.values()}
    ranks = tuple(names[it.members[number].gpu] for number in sorted(it.members))
    group = Group(name=it.key, ranks=ranks)
    answered = {rank: member for rank, member in members.items() if member.counts is not None}
    newest = max((member.launched for member in answered.values()), default=0)
    behind = {rank for rank, member in answered.items() if member.launched < newest}
    absent = {rank for rank, member in members.items() if member.is_dead or member.is_unresponsive}
    stands = since is not None and not (behind or answered.keys()) & moved
    for rank, member in members.items():
        one = found[rank]
        one.groups.append(group)
        one.has_answered |= rank in answered
        one.is_dead |= member.is_dead
        one.is_unresponsive |= member.is_unresponsive
        if not member.launched:
            continue
        waits = rank not in behind and bool(behind or absent)
        # Of those that have all launched the same, RAS does not say whether it is done.
        called_at = at if rank in moved else since if stands and waits else None
        one.calls.append(
            Call(
                group=it.key,
                number=member.launched,
                kind=_kind(member, answered.values()) if rank not in behind else "",
                called_at=called_at,
                done=True if rank in behind else None,
            )
        )


def _kind(member: _Member, others: Any) -> str:
    """What it has launched last: the kind of which others have launched less."""
    counts = member.counts or {}
    more = [
        kind
        for kind, count in counts.items()
        if any(count > (other.counts or {}).get(kind, 0) for other in others)
    ]
    kinds = more or [kind for kind, count in counts.items() if count]
    return kinds[0] if len(kinds) == 1 else _SOME


def _moved(before: _Communicator | None, now: _Communicator) -> list[_Gpu]:
    """Members that have launched something since."""
    if before is None:
        return []
    return [
        member.gpu
        for number, member in now.members.items()
        if number in before.members and member.launched > before.members[number].launched
    ]


def _troubles(it: _Communicator, names: Mapping[_Gpu, int]) -> list[str]:
    said = []
    if not it.is_settled:
        said.append(f"communicator {it.key} is being made or ended: it was not judged")
    for member in it.members.values():
        if member.error not in (0, _IN_PROGRESS):
            what = _ERRORS.get(member.error, "error")
            said.append(f"rank {names[member.gpu]} has NCCL's error {member.error} ({what}) in {it.key}")
    return said


def _names(answer: _Answer) -> dict[_Gpu, int]:
    """The number of each rank: that in the communicator that has all, else by host and GPU."""
    gpus = {member.gpu for it in answer.communicators.values() for member in it.members.values()}
    for it in answer.communicators.values():
        if gpus == {member.gpu for member in it.members.values()}:
            return {member.gpu: number for number, member in it.members.items()}
    return {gpu: number for number, gpu in enumerate(sorted(gpus))}


def _has_all(answer: _Answer, names: Mapping[_Gpu, int]) -> bool:
    return any(len(it.members) == len(names) for it in answer.communicators.values())


def _read(path: Path) -> _Answer:
    """Raises NoJob."""
    try:
        if path.stat().st_size > MOST_BYTES:
            raise BadAnswer(f"it has more than {MOST_BYTES:,} bytes")
        return _parsed(path.read_text())
    except (BadAnswer, OSError, UnicodeDecodeError) as error:
        raise NoJob(f"{path} is no answer of NCCL's RAS (`ncclras -f json`): {error}") from None


def _parsed(text: str) -> _Answer:
    """Raises BadAnswer."""
    try:
        content = json.loads(_NO_COMMA.sub(r"\1,\2", text))
        communicators = [_communicator(it) for it in content["communicators"]]
        moment = datetime.strptime(content["timestamp"], "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise BadAnswer(f"{type(error).__name__}: {error}"[:200]) from None
    return _Answer(moment.timestamp(), {it.key: it for it in communicators})


def _communicator(it: Mapping[str, Any]) -> _Communicator:
    members: dict[int, _Member] = {}
    is_settled = True
    for rank in it["ranks"]:
        status = rank["status"]
        is_settled &= status["init_state"] == 0 and not (
            status["finalize_called"] or status["destroy_flag"] or status["abort_flag"]
        )
        counts = {
            _KINDS.get(kind, str(kind)): int(count)
            for kind, count in rank["collective_counts"].items()
            if kind not in _POINT_TO_POINT
        }
        members[int(rank["rank"])] = _Member(_gpu(rank), counts, int(status["async_error"]))
    for rank in it.get("missing_ranks", ()):
        status = rank["status"]
        missing = _Member(
            _gpu(rank),
            None,
            is_dead=bool(status["considered_dead"]),
            is_unresponsive=bool(status["unresponsive"]),
        )
        # It answers, and is no member, yet or any more.
        is_settled &= missing.is_dead or missing.is_unresponsive
        members[int(rank["rank"])] = missing
    key = f"{it['hash']} {it.get('secondary_hash', '')}".strip()
    is_settled &= len(members) == int(it["size"])
    return _Communicator(key, int(it["size"]), members, is_settled)


def _gpu(rank: Mapping[str, Any]) -> _Gpu:
    return _Gpu(str(rank["host"]), int(rank["nvml_dev"]), int(rank["pid"]))
