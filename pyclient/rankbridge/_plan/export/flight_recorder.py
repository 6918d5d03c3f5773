"""Records of ranks as dumps of torch's flight recorder, for the tools that read those."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rankbridge._plan.export.clocks import clock_offsets
from rankbridge._plan.export.meetings import Coming, Meeting, meetings
from rankbridge._plan.groups import Group
from rankbridge._plan.record import CONTROLLER, RecordedOperation

VERSION = "2.10"
"""The dump's format."""
KINDS = {
    "all_gather": "all_gather",
    "all_gather_object": "all_gather_v",
    "all_reduce": "all_reduce",
    "all_reduce_value": "all_reduce",
    "all_to_all": "all_to_all",
    "barrier": "barrier",
    "broadcast": "broadcast",
    "broadcast_object": "broadcast",
    "broadcast_tensor_dict": "broadcast",
    "gather": "gather",
    "gather_object": "gather",
    "reduce": "reduce",
    "reduce_scatter": "reduce_scatter",
    "scatter": "scatter",
    "scatter_object": "scatter",
}
"""The collectives that are written, and what torch's tool calls them. It refuses names that it does not know."""
_UNEVEN = {"all_gather": "all_gather_v", "reduce_scatter": "reduce_scatter_v"}
_DTYPES = {
    "bfloat16": "BFloat16",
    "bool": "Bool",
    "complex128": "ComplexDouble",
    "complex64": "ComplexFloat",
    "float16": "Half",
    "float32": "Float",
    "float64": "Double",
    "int16": "Short",
    "int32": "Int",
    "int64": "Long",
    "int8": "Char",
    "uint8": "Byte",
}
_SHAPE = re.compile(r"\b(?:shape|part)=\[([^\]]*)\]")
_DTYPE = re.compile(r"\bdtype=(\w+)")
_SITE = re.compile(r"(.*):(\d+)")
_Dump = dict[str, Any]


def flight_recorder(
    records: Mapping[int, Sequence[RecordedOperation]],
    groups: Iterable[Group],
    *,
    before: Mapping[int, Sequence[RecordedOperation]] | None = None,
) -> dict[int, _Dump]:
    """Writes records as dumps of torch's flight recorder, of the groups' generation.

    The collectives in `KINDS` are written, as they were announced: no sends and receives, of which torch's tool takes
    a healthy one for an error, and nothing that torch does not have. Neither reduce ops nor roots have a place in a
    dump.

    Args:
        records: By rank, its record, as `Gang.record` gives it.
        groups: The groups of the gang (`Gang.groups`).
        before: Their records some time before, as a second: what members wait for is left out if none of them had
            called it then. None: it is written.

    Returns:
        By rank, what `pickle.dump` writes into the rank's file. In it, collectives of a group have the same number on
        all ranks. A collective that has ended on some members only is "started" on all of them: torch's tool takes
        members that are not equally far for an error.
    """
    offsets = clock_offsets(records)
    entries: dict[int, list[tuple[float, _Dump]]] = {rank: [] for rank in records}
    known = list(groups)
    for place, group in enumerate(known):
        members = {rank: _of(group, records[rank]) for rank in group.ranks if rank in records}
        earlier = None if before is None else {rank: before.get(rank, ()) for rank in members}
        for number, met in enumerate(meetings(members, offsets, earlier), 1):
            for rank, it in met.items():
                entries[rank].append((it.came, _entry(it, met, number, place, group)))
    return {rank: _dump(rank, those, known) for rank, those in entries.items()}


def _of(group: Group, record: Sequence[RecordedOperation]) -> list[RecordedOperation]:
    return [
        it
        for it in record
        if it.group == group.name
        and it.generation == group.generation
        and it.operation in KINDS
        and not it.function
        and it.caller == CONTROLLER
    ]


def _dump(rank: int, entries: list[tuple[float, _Dump]], groups: Sequence[Group]) -> _Dump:
    mine = {str(place): group for place, group in enumerate(groups) if rank in group.ranks}
    ordered = [{"record_id": number, **it} for number, (_, it) in enumerate(sorted(entries, key=_moment))]
    return {
        "version": VERSION,
        "comm_lib_version": "",
        "pg_config": {
            group.name: {"name": group.name, "desc": _description(group), "ranks": str(list(group.ranks))}
            for group in mine.values()
        },
        "pg_status": {place: _status(ordered, int(place)) for place in mine},
        "entries": ordered,
    }


def _moment(entry: tuple[float, _Dump]) -> float:
    return entry[0]


def _description(group: Group) -> str:
    return "default_pg" if group.name == "world" else group.name


def _status(entries: Iterable[_Dump], place: int) -> dict[str, int]:
    reached = {"enqueued": -1, "started": -1, "completed": -1}
    for it in entries:
        if it["pg_id"] == place:
            number = it["collective_seq_id"]
            reached["enqueued"] = number
            if it["time_discovered_started_ns"] is not None:
                reached["started"] = number
            if it["retired"]:
                reached["completed"] = number
    return {f"last_{name}_collective": number for name, number in reached.items()}


def _entry(it: Coming, met: Meeting, number: int, place: int, group: Group) -> _Dump:
    record = it.record
    kind, inputs, outputs = _kind_and_sizes(record, len(group.ranks))
    dtype = _DTYPE.search(record.contract)
    dtypes = [_DTYPES.get(dtype[1], dtype[1])] if dtype is not None else []
    library = "nccl" if group.backend == "nccl" else "gloo"
    return {
        "pg_id": place,
        "process_group": (group.name, _description(group)),
        "collective_seq_id": number,
        "p2p_seq_id": 0,
        "op_id": number,
        "profiling_name": f"{library}:{kind}",
        "input_sizes": inputs,
        "input_dtypes": dtypes,
        "output_sizes": outputs,
        "output_dtypes": dtypes,
        "state": _state(met),
        "retired": record.done is not None and not record.code,
        "is_p2p": False,
        "time_created_ns": round(record.called * 1e9),
        "time_discovered_started_ns": _nanoseconds(record, record.entered),
        "time_discovered_completed_ns": None if record.code else _nanoseconds(record, record.done),
        "timeout_ms": 0,
        "frames": _frames(record),
    }


def _nanoseconds(record: RecordedOperation, after: float | None) -> int | None:
    return None if after is None else round((record.called + after) * 1e9)


def _state(met: Meeting) -> str:
    if not any(it.is_admitted for it in met.values()):
        return "scheduled"
    is_done = all(it.record.done is not None and not it.record.code for it in met.values())
    return "completed" if is_done else "started"


def _kind_and_sizes(record: RecordedOperation, size: int) -> tuple[str, list[list[int]], list[list[int]]]:
    kind = KINDS[record.operation]
    found = _SHAPE.search(record.contract)
    if found is None:
        return _UNEVEN.get(kind, kind), [[]], [[]]
    shape = [int(it) for it in found[1].split(",") if it.strip().isdecimal()]
    if "sizes=" in record.contract:
        return _UNEVEN.get(kind, kind), [shape], [shape]
    # Torch's tool compares how many elements go in and come out.
    if kind == "all_gather":
        return kind, [shape], [[size, *shape]]
    if kind == "reduce_scatter":
        return kind, [shape], [[math.prod(shape) // size]]
    return kind, [shape], [shape]


def _frames(record: RecordedOperation) -> list[dict[str, Any]]:
    found = _SITE.fullmatch(record.site)
    if found is None:
        return []
    return [{"name": record.operation, "filename": found[1], "line": int(found[2])}]
