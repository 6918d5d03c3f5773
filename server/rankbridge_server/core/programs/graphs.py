"""Graphs: collectives that a session has run and recorded, to replay them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .. import guests
from ..errors import BridgeError, ErrorCode, exhausted, invalid
from ..operations.operation import Operation
from ..operations.outcome import Outcome
from ..refs.refs import MAX_ID_BYTES, Ref
from .program import ProgramOperation

MAX_STEPS = 100_000
"""Of one graph."""


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Graph:
    """Collectives that a session has run in a group on this rank, in order. Equal only to itself.

    Each collective is bound to the refs of its results, and its number is its name.
    """

    name: str
    group: str
    steps: tuple[ProgramOperation, ...]


class GraphStore:
    """The graphs and recordings of one rank, by session. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._graphs: dict[tuple[str, str], Graph] = {}
        # By session and group: the graph's name and its steps.
        self._recordings: dict[tuple[str, str], tuple[str, list[ProgramOperation]]] = {}

    def begin(self, session_id: str, group: str, name: str) -> Graph:
        """Records the session's collectives in the group from now on. Raises NAME_EXISTS or INVALID_ARGUMENT."""
        if not 0 < len(name.encode()) <= MAX_ID_BYTES:
            raise invalid("the graph's name is not 1 to 128 bytes", expected="1 to 128 bytes", got=repr(name))
        with self._lock:
            under_way = self._recordings.get((session_id, group))
            if under_way is not None:
                what = "the session records in this group already"
                raise invalid(what, expected="no recording", got=repr(under_way[0]))
            names = {other for (session, _), (other, _) in self._recordings.items() if session == session_id}
            if (session_id, name) in self._graphs or name in names:
                raise BridgeError.of(ErrorCode.NAME_EXISTS, f"the session has a graph {name!r}")
            if guest := guests.home_of(session_id):
                held = sum(it.startswith(guest) for it, _ in (*self._graphs, *self._recordings))
                guests.check_share(guest, "graphs", held, 1, guests.MAX_GRAPHS)
            self._recordings[(session_id, group)] = (name, [])
        return Graph(name, group, ())

    def end(self, session_id: str, group: str) -> Graph:
        """Ends the recording and keeps it. Raises UNKNOWN_GRAPH, or RESOURCE_EXHAUSTED when it is too long."""
        with self._lock:
            recording = self._recordings.pop((session_id, group), None)
            if recording is None:
                what = f"the session records nothing in group {group!r}"
                raise BridgeError.of(ErrorCode.UNKNOWN_GRAPH, what)
            name, steps = recording
            if len(steps) > MAX_STEPS:
                message = f"graph {name!r} is too long, and was not kept"
                raise exhausted(message, most=f"{MAX_STEPS} collectives", got="more")
            graph = Graph(name, group, tuple(steps))
            self._graphs[(session_id, name)] = graph
        return graph

    def recording(self, session_id: str, group: str) -> bool:
        """Whether the session is recording in the group."""
        return bool(self._recordings) and (session_id, group) in self._recordings

    def record(
        self, session_id: str, group: str, operation: Operation[Any], args: Any, outcome: Outcome
    ) -> None:
        """Adds a collective that has succeeded to the session's recording in the group, if there is one."""
        with self._lock:
            recording = self._recordings.get((session_id, group))
            # One collective above the limit marks the recording as too long.
            if recording is None or len(recording[1]) > MAX_STEPS:
                return
            bound = None if getattr(args, "in_place", False) else tuple(_ref_ids(outcome))
            recording[1].append(ProgramOperation(operation, args, str(len(recording[1])), bound))

    def find(self, session_id: str, name: str) -> Graph:
        """A graph of the session. Raises UNKNOWN_GRAPH."""
        graph = self._graphs.get((session_id, name))
        if graph is None:
            raise BridgeError.of(ErrorCode.UNKNOWN_GRAPH, f"no graph {name!r} in the session on this rank")
        return graph

    def release(self, session_id: str, name: str) -> Graph:
        """Deletes a graph. Raises UNKNOWN_GRAPH."""
        with self._lock:
            graph = self.find(session_id, name)
            del self._graphs[(session_id, name)]
        return graph

    def forget(self, session_id: str) -> None:
        """Deletes the graphs and recordings of a session."""
        with self._lock:
            for kept in (self._graphs, self._recordings):
                for key in [key for key in kept if key[0] == session_id]:
                    del kept[key]


def _ref_ids(outcome: Outcome) -> Iterator[str]:
    if isinstance(outcome, Ref):
        yield outcome.id
    elif isinstance(outcome, list):
        for it in outcome:
            yield from _ref_ids(it)
