"""Running a graph again, in one operation; on a backend that captures collectives, in one launch."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ..coordinator import Capturing
from ..errors import invalid
from ..operations.operation import Entry, Graph, Plan, Refs, Site, Step
from ..operations.outcome import Outcome
from ..refs.refs import Cell, Refill
from ..refs.tensors import TensorSpec
from .captures import NOTHING, REFUSED, Capture
from .coalesced import CoalescedPlan

_NUMBER = struct.Struct("<Q")


@dataclass(frozen=True, slots=True)
class Replay:
    """Run a graph again, as one operation: one admission, and results in the refs that it made when it was recorded."""

    graph: str


def plan_replay(site: Site, args: Replay) -> Plan:
    """What each of its collectives agrees on."""
    graph = site.graphs.find(site.session_id, args.graph)
    if graph.group != site.group.name:
        raise invalid("the graph is of another group", expected=repr(graph.group), got=repr(site.group.name))
    if not graph.steps:
        raise invalid("the graph is empty", expected="one collective or more", got="none")
    cells = _Cells(site.refs)
    # Also those of collectives that ask for them only when they run: then all members would have to agree.
    for ref_id in (it for step in graph.steps for it in step.outputs):
        cells.filling(site.session_id, ref_id)
    plan = _planned(site, graph, cells)
    coordinator = site.membership.coordinator
    return _Captured(site, graph, plan, cells, coordinator) if isinstance(coordinator, Capturing) else plan


class _Cells:
    """The cells of a graph's refs, by id in the order in which they were first asked for. Implements `Refs`.

    `read` by its collectives, `filled` with their results; what is changed in place is among those that are read.
    """

    def __init__(self, refs: Refs) -> None:
        self._refs = refs
        self.read: dict[str, Cell] = {}
        self.filled: dict[str, Cell] = {}

    def find(self, session_id: str, ref_id: str) -> Cell:
        if ref_id not in self.read:
            self.read[ref_id] = self._refs.find(session_id, ref_id)
        return self.read[ref_id]

    def filling(self, session_id: str, ref_id: str) -> Cell:
        if ref_id not in self.filled:
            self.filled[ref_id] = self._refs.find(session_id, ref_id)
        return self.filled[ref_id]


class _Standing:
    """Cells in the place of a replay's, with tensors that stay where they are. Implements `Refs`."""

    def __init__(self, cells: _Cells, tensors: Sequence[object]) -> None:
        """`tensors`: of the cells that are read."""
        self._before: dict[str, object] = dict.fromkeys(cells.filled)
        self._before.update(zip(cells.read, tensors, strict=True))
        self._cells = {
            ref_id: Cell((cells.read.get(ref_id) or cells.filled[ref_id]).ref, tensor)
            for ref_id, tensor in self._before.items()
        }

    def find(self, session_id: str, ref_id: str) -> Cell:
        return self._cells[ref_id]

    def changed(self) -> dict[str, object]:
        """What is another tensor now."""
        now = {ref_id: cell.tensor for ref_id, cell in self._cells.items()}
        return {ref_id: tensor for ref_id, tensor in now.items() if tensor is not self._before[ref_id]}


def _planned(site: Site, graph: Graph, cells: _Cells) -> CoalescedPlan:
    return CoalescedPlan([(_refilling(site, step, cells), step.operation, step.args) for step in graph.steps])


def _refilling(site: Site, step: Step, cells: _Cells) -> Site:
    """The same site with these cells, where results go into the refs that they had."""
    outputs = iter(step.outputs)

    def reserve(spec: TensorSpec) -> Refill:
        ref_id = next(outputs, None)
        if ref_id is None:
            raise invalid("the graph has fewer results than the collective gives now")
        cell = cells.filling(site.session_id, ref_id)
        if cell.ref.spec != spec:
            raise invalid(
                "the collective gives another tensor than when it was recorded",
                expected=str(cell.ref.spec),
                got=str(spec),
            )
        return Refill(cell)

    return replace(site, refs=cells, reserve=reserve)


class _Captured:
    """A replay where the coordinator captures.

    With its arrival every member tells which capture it has of its graph. If all have the same, that is launched.
    Else the collectives are run one after another, and then captured by all: the same number on all members means that
    they were captured together. A member that could not says so the next time, and none tries again.
    """

    def __init__(
        self, site: Site, graph: Graph, plan: CoalescedPlan, cells: _Cells, coordinator: Capturing
    ) -> None:
        self.terms = plan.terms
        self._site = site
        self._graph = graph
        self._plan = plan
        self._cells = cells
        self._coordinator = coordinator
        self._captures = site.membership.captures

    def payload(self) -> bytes:
        """The capture's number, and what the collectives give."""
        return _NUMBER.pack(self._captures.number(self._graph)) + self._plan.payload()

    def run(self, entry: Entry) -> Callable[[], Outcome]:
        """Launch the capture, or run the collectives."""
        numbers = {_NUMBER.unpack_from(payload)[0] for payload in entry.payloads}
        if len(numbers) == 1 and not numbers & {NOTHING, REFUSED}:
            return self._launch(self._captures.find(self._graph), entry.timeout)
        entry = replace(entry, payloads=[payload[_NUMBER.size :] for payload in entry.payloads])
        if REFUSED in numbers:
            self._captures.keep(self._graph, None)
            return self._plan.run(entry)
        self._captures.drop(self._graph)
        agreed: list[Sequence[bytes]] = []

        def agree(contract: str, payload: bytes) -> Sequence[bytes]:
            agreed.append(entry.agree(contract, payload))
            return agreed[-1]

        commit = self._plan.run(replace(entry, agree=agree))
        self._captures.keep(self._graph, self._capture(entry, agreed))
        return commit

    def abandon(self) -> None:
        """Let go of what each collective set aside, and of the graph: it may be the last to have it."""
        self._plan.abandon()
        del self._graph

    def _launch(self, capture: Capture, timeout: float) -> Callable[[], Outcome]:
        cells = self._cells
        results = capture.captured.replay([cell.tensor for cell in cells.read.values()], timeout)

        def commit() -> Outcome:
            for ref_id, tensor in zip(capture.filled, results, strict=True):
                (cells.filled.get(ref_id) or cells.read[ref_id]).tensor = tensor
            outcome: Outcome = capture.outcome
            return outcome

        return commit

    def _capture(self, entry: Entry, agreed: Sequence[Sequence[bytes]]) -> Capture | None:
        """Capture what was run just now. `agreed`: what members told each other in between."""
        told = iter(agreed)
        filled: list[str] = []
        outcomes: list[Outcome] = []

        def enter(tensors: Sequence[object]) -> Sequence[object]:
            standing = _Standing(self._cells, tensors)
            plan = _planned(self._site, self._graph, _Cells(standing))
            try:
                commit = plan.run(replace(entry, agree=lambda contract, payload: next(told)))
                outcomes.append(commit())
            finally:
                plan.abandon()
            changed = standing.changed()
            filled.extend(changed)
            return list(changed.values())

        # The same on all members, unlike before any other operation of the group.
        number = self._site.membership.sequence
        inputs = [cell.tensor for cell in self._cells.read.values()]
        captured = self._coordinator.capture(inputs, enter, entry.timeout)
        return Capture(number, captured, tuple(filled), outcomes[0]) if captured is not None else None
