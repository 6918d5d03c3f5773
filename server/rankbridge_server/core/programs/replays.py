"""Replaying a graph: one operation, and one launch on a backend that captures collectives."""

from __future__ import annotations

import struct
from collections.abc import Callable

from ..coordinator import Capturing
from ..errors import invalid
from ..operations.operation import Entry, Plan, Site, operation
from ..operations.outcome import Outcome
from .captures import NOTHING, REFUSED
from .graphs import Graph
from .plan import ProgramPlan
from .program import Replay
from .terms import REPLAY

_NUMBER = struct.Struct("<Q")


@operation()
def replay(site: Site, args: Replay) -> Plan:
    """Members agree on the graph's collectives and their order."""
    graph = site.graphs.find(site.session_id, args.graph)
    if graph.group != site.group.name:
        raise invalid("the graph is of another group", expected=repr(graph.group), got=repr(site.group.name))
    if not graph.steps:
        raise invalid("the graph is empty", expected="one collective or more", got="none")
    plan = ProgramPlan(site, REPLAY, graph.steps)
    coordinator = site.membership.coordinator
    return CapturedPlan(site, graph, plan, coordinator) if isinstance(coordinator, Capturing) else plan


class CapturedPlan:
    """A replay on a coordinator that captures.

    Every member sends the number of its graph's capture with its arrival. If all numbers are equal, the members launch
    the capture. Otherwise they run the collectives one after another, and capture them together: equal numbers mean
    that they were captured together. A member that could not capture says so the next time, and no member tries again.
    """

    def __init__(self, site: Site, graph: Graph, plan: ProgramPlan, coordinator: Capturing) -> None:
        self.terms = plan.terms
        self._membership = site.membership
        self._graph = graph
        self._plan = plan
        self._coordinator = coordinator

    def payload(self) -> bytes:
        """The capture's number, and the payload of the collectives."""
        number, _ = self._membership.captures.get(self._graph, (NOTHING, None))
        return _NUMBER.pack(number) + self._plan.payload()

    def run(self, entry: Entry) -> Callable[[], Outcome]:
        """Launches the capture, or runs the collectives."""
        captures, cells = self._membership.captures, self._plan.cells
        numbers = {_NUMBER.unpack_from(payload)[0] for payload in entry.payloads}
        entry = entry._replace(payloads=[payload[_NUMBER.size :] for payload in entry.payloads])
        number, captured = captures.get(self._graph, (NOTHING, None))
        if captured is not None and numbers == {number}:
            self._plan.settle(entry)
            return self._plan.commit(captured.replay(cells.inputs(), entry.timeout))
        # Frees the memory of the last capture before there is another.
        captured = None
        captures[self._graph] = (REFUSED if REFUSED in numbers else NOTHING, None)
        commit = self._plan.run(entry)
        if REFUSED not in numbers:
            captured = self._coordinator.capture(cells.inputs(), self._plan.enter, entry.timeout)
            # The sequence is equal on all members, and another before every operation of the group.
            number = REFUSED if captured is None else self._membership.sequence
            captures[self._graph] = (number, captured)
        return commit

    def abandon(self) -> None:
        """Frees the slots of all collectives, and drops the graph: this may be its last reference."""
        self._plan.abandon()
        del self._graph
