"""Records of ranks as a trace that Perfetto and chrome://tracing open."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from rankbridge._plan.export.clocks import clock_offsets
from rankbridge._plan.export.tracks import Track, Tracks
from rankbridge._plan.record import CONTROLLER, SCRIPT, RecordedOperation, track_of_calls
from rankbridge._plan.timeline import TimelineEntry, timeline

_CLOCKS = (
    "Each rank's times are by the clock of its host. Where a member was admitted before another one had announced the "
    "operation, clocks differ: times are then shifted by clock_offsets_s, the least with which that is not so. Times "
    "of ranks on several hosts may still differ by as long as the ranks have waited for each other."
)
_WORTH_SAYING_S = 1e-4
_Event = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Slice:
    """An operation on one rank. Times are microseconds since the trace's beginning; None: not yet, or never."""

    rank: int
    record: RecordedOperation
    track: Track
    called: int
    announced: int | None
    entered: int | None
    done: int | None

    @property
    def place(self) -> _Event:
        return {"pid": self.rank, "tid": self.track.number}

    @property
    def came(self) -> int:
        """When the others could go on, as far as it was up to this rank."""
        return self.called if self.announced is None else self.announced

    @property
    def released(self) -> int | None:
        """When it no longer waited for others. None: it has waited in vain, or still does."""
        if self.record.code:
            return None
        # An arrow ends in a slice: one that ends there has ended.
        last = None if self.done is None else max(self.called, self.done - 1)
        if self.announced is None or self.entered is None:
            return last
        return self.entered if last is None else min(self.entered, last)


def trace(
    records: Mapping[int, Sequence[RecordedOperation]], *, read_at: float | None = None
) -> dict[str, Any]:
    """Writes the records of ranks as a trace in Chrome's JSON, which https://ui.perfetto.dev opens.

    A rank is a process, a group one of its threads, and what the user's own code calls in it another, an operation a
    slice from its call to its answer, with its phases within, and its contract, its line and its outcome as arguments.
    Arrows lead from the rank that came last to those that it released. What is pending has no end.

    Args:
        records: By rank, its record, as `Gang.record` gives it.
        read_at: When they were read, in seconds since 1970: up to there, what is pending is drawn. None: when the last
            thing happened that is recorded.

    Returns:
        What `json.dump` writes. Its times count from the first call; `otherData` says when that was, and by how much
        the clocks of ranks differ (`clock_offsets`).
    """
    offsets = clock_offsets(records)
    calls = [it.called - offsets[rank] for rank, record in records.items() for it in record]
    began = min(calls, default=read_at or 0.0)
    slices = _slices(timeline(records), offsets, began)
    flat = [it for each in slices for it in each]
    events = [*_names(records, flat, offsets)]
    events += [event for it in flat for event in _drawn(it)]
    events += [event for number, each in enumerate(slices) for event in _arrows(number, each)]
    if read_at is not None:
        now = {"pid": min(records, default=0), "tid": 0, "ts": max(0, round((read_at - began) * 1e6))}
        events.append({"ph": "i", "s": "g", "cat": "rankbridge", "name": "records read", **now})
    about = {
        "source": "rankbridge",
        "began": datetime.fromtimestamp(began, UTC).isoformat(),
        "clocks": _CLOCKS,
        "clock_offsets_s": {str(rank): round(it, 6) for rank, it in offsets.items()},
    }
    return {"traceEvents": events, "displayTimeUnit": "ms", "otherData": about}


def _slices(
    entries: Sequence[TimelineEntry], offsets: Mapping[int, float], began: float
) -> list[list[_Slice]]:
    """The slices of each entry, those that begin first first."""
    tracks = Tracks()
    # Of a job that was watched there are no others.
    has_operations = any(entry.caller == CONTROLLER for entry in entries)
    made: dict[int, list[_Slice]] = {}
    calls = [
        (it.called - offsets[rank], number, rank, it)
        for number, entry in enumerate(entries)
        for rank, it in entry.at.items()
    ]
    for moment, number, rank, it in sorted(calls, key=lambda call: call[:3]):
        called = round((moment - began) * 1e6)
        announced, entered, done = (
            _after(called, it.announced),
            _after(called, it.entered),
            _after(called, it.done),
        )
        name = track_of_calls(it.group) if has_operations and it.caller == SCRIPT else it.group
        track = tracks.place(rank, name, called, math.inf if done is None else done)
        made.setdefault(number, []).append(_Slice(rank, it, track, called, announced, entered, done))
    return list(made.values())


def _after(called: int, seconds: float | None) -> int | None:
    return None if seconds is None else called + round(seconds * 1e6)


def _names(
    records: Mapping[int, object], slices: Sequence[_Slice], offsets: Mapping[int, float]
) -> Iterator[_Event]:
    for rank in sorted(records):
        yield _meta("process_name", rank, name=f"rank {rank}")
        yield _meta("process_sort_index", rank, sort_index=rank)
        if abs(offsets[rank]) >= _WORTH_SAYING_S:
            yield _meta("process_labels", rank, labels=f"clock {offsets[rank] * 1e3:+.3f} ms, put right")
    for rank, track in sorted({(it.rank, it.track) for it in slices}):
        name = track.name + (f" ({track.place + 1})" if track.place else "")
        yield _meta("thread_name", rank, track.number, name=name)
        yield _meta("thread_sort_index", rank, track.number, sort_index=track.number)


def _meta(kind: str, rank: int, thread: int = 0, **args: object) -> _Event:
    return {"ph": "M", "name": kind, "pid": rank, "tid": thread, "args": args}


def _drawn(it: _Slice) -> Iterator[_Event]:
    """The slice of an operation, then those of its phases, which lie within."""
    cat = "function" if it.record.function else "collective"
    name = it.record.function or it.record.operation
    yield {"cat": cat, "name": name, **it.place, "args": _args(it.record), **_span(it.called, it.done)}
    for phase, begin, end in _phases(it):
        if begin != end:
            yield {"cat": "phase", "name": phase, **it.place, **_span(begin, end)}


def _span(begin: int, end: int | None) -> _Event:
    # A beginning without an end is drawn up to the end of the trace.
    return {"ph": "B", "ts": begin} if end is None else {"ph": "X", "ts": begin, "dur": end - begin}


def _phases(it: _Slice) -> Iterator[tuple[str, int, int | None]]:
    inside = "in the function" if it.record.function else "in the backend"
    steps = [("queued", it.called), ("waiting for the others", it.announced), (inside, it.entered)]
    begun = [(name, begin) for name, begin in steps if begin is not None]
    ends: list[int | None] = [begin for _, begin in begun[1:]]
    for (name, begin), end in zip(begun, [*ends, it.done], strict=True):
        yield name, begin, end


def _args(it: RecordedOperation) -> dict[str, object]:
    said: dict[str, object] = {
        "group": it.group,
        "caller": it.caller,
        "number": it.number or "",
        "outcome": it.code or (f"pending: {it.phase}" if it.done is None else "done"),
        "contract": it.contract,
        "site": it.site,
        "message": it.message,
        "operation_id": it.operation_id,
        "session_id": it.session_id,
        "generation": it.generation,
    }
    if it.code:
        said["indefinite"] = it.indefinite
    return {name: value for name, value in said.items() if value != ""}


def _arrows(number: int, slices: Sequence[_Slice]) -> Iterator[_Event]:
    """From the last comer to each that has waited for it."""
    if len(slices) < 2 or any(it.record.function for it in slices):
        return
    last = max(slices, key=lambda it: it.came)
    released = [it for it in slices if it is not last and (it.released or -1) >= last.came]
    for it in released:
        flow = {"cat": "released", "name": "released by", "id": number * 2**16 + it.rank}
        yield {"ph": "s", **flow, **last.place, "ts": last.came}
        yield {"ph": "f", "bp": "e", **flow, **it.place, "ts": it.released}
