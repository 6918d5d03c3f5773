"""Records of `rankbridge watch` in the words of a gang's record."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from rankbridge import RecordedOperation

from ..core.rank_intervals import rank_intervals
from ..core.torch_group_names import shown_name
from ..doctor.evidence import Call
from ..job.outside import rings


def records(folder: Path) -> dict[int, list[RecordedOperation]]:
    """By rank, what it has recorded in the folder of `rankbridge watch`. Raises BadRing."""
    return {it.rank: operations for it, _, operations in read(rings.in_directory(folder))}


def read(
    found: Sequence[rings.Record],
) -> list[tuple[rings.Record, dict[str, str], list[RecordedOperation]]]:
    """Each record, what people call its groups, by torch's names, and its calls."""
    every, meetings = GroupNames(found), Meetings(found)
    named = [(it, every.of(it)) for it in found]
    return [(it, names, [_recorded(call, it, names, meetings) for call in it.calls]) for it, names in named]


class GroupNames:
    """What people call the groups of some ranks. Of two with one name, each is told by its ranks, too: `tp:0[2-3]`."""

    def __init__(self, found: Sequence[rings.Record]) -> None:
        self._shown: dict[tuple[str, tuple[int, ...]], str] = {}
        ranks_of = defaultdict(set)
        for record in found:
            for it in record.groups:
                label = shown_name(it.description, it.ranks, record.world_size)
                self._shown[it.name, it.ranks] = label
                ranks_of[label].add(it.ranks)
        for (name, ranks), label in self._shown.items():
            if len(ranks_of[label]) > 1:
                self._shown[name, ranks] = f"{label}[{rank_intervals(ranks).split(' ', 1)[1]}]"

    def of(self, record: rings.Record) -> dict[str, str]:
        """The names of one rank's groups, by torch's."""
        return {it.name: self._shown[it.name, it.ranks] for it in record.groups}


class Meetings:
    """Which members have called what a device does, once all have: until then it is under way, wherever they are."""

    def __init__(self, found: Sequence[rings.Record]) -> None:
        self._ranks = {it.rank for it in found}
        self._newest: dict[tuple[object, int], int] = {}
        self._last_came: dict[tuple[object, int], float] = {}
        if not any(call.on_device for record in found for call in record.calls):
            return
        for record in found:
            for call in record.calls:
                channel = _channel(call, record.rank)
                self._newest[channel, record.rank] = max(
                    call.number, self._newest.get((channel, record.rank), 0)
                )
                came = max(call.called_at or 0.0, self._last_came.get((channel, call.number), 0.0))
                self._last_came[channel, call.number] = came

    def last_came(self, call: Call, record: rings.Record) -> float | None:
        """When the last member called it; None if one has not. Members without a record are not waited for."""
        channel = _channel(call, record.rank)
        if call.is_p2p:
            members = {record.rank, record.rank if call.peer is None else call.peer}
        else:
            members = {rank for it in record.groups if it.name == call.group for rank in it.ranks}
        if any(self._newest.get((channel, it), 0) < call.number for it in members & self._ranks):
            return None
        return self._last_came[channel, call.number]


def _channel(call: Call, rank: int) -> object:
    """What counts a call: its group, or the two ends of a send or a receive, and the tag."""
    if not call.is_p2p:
        return call.group
    ends = (rank, call.peer) if call.is_send else (call.peer, rank)
    return (call.group, *ends, call.tag)


def _recorded(
    call: Call, record: rings.Record, names: Mapping[str, str], meetings: Meetings
) -> RecordedOperation:
    """A call that a rank has recorded. `names`: of its groups."""
    called = call.called_at or 0.0
    ended = None if _is_pending(call, record) else call.waited_at or call.returned_at
    if call.on_device and ended is not None:
        last = meetings.last_came(call, record)
        ended = None if last is None else max(last, ended)
    return RecordedOperation(
        operation=call.kind,
        group=names[call.group],
        operation_id=_id(call, record.rank),
        session_id="",
        generation=0,
        contract=_contract(call),
        site="" if call.site is None else str(call.site),
        function="",
        called=called,
        announced=None,
        entered=0.0,
        done=None if ended is None else ended - called,
        phase="data",
        code="",
        message="",
        indefinite=False,
        caller="script",
        number=0 if call.is_p2p else call.number,
    )


def _is_pending(call: Call, record: rings.Record) -> bool:
    """Whether the rank is in the call, or waits for it: of a call that it does not wait for, nobody notes the end."""
    if call.returned_at is None:
        return True
    newest = record.calls[-1]
    return call is newest and call.waited_at is None and record.waiting_since is not None


def _id(call: Call, rank: int) -> str:
    """What is the same on all ranks that have called it."""
    if not call.is_p2p:
        return f"{call.group} {call.number}"
    return ""


def _contract(call: Call) -> str:
    parts = [call.kind]
    parts += [f"dtype={it}" for it in call.dtypes]
    parts += [f"shape={list(it)}" for it in call.shapes]
    parts += [
        f"{name}={value}"
        for name, value in (("op", call.op), ("root", call.root), ("peer", call.peer), ("tag", call.tag))
        if value is not None
    ]
    return " ".join(parts)
