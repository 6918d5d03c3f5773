"""A graph: collectives that ranks have run and recorded. Nothing here asks a rank."""

from __future__ import annotations

from dataclasses import dataclass

from rankbridge._plan.wire import fields_of
from rankbridge.v1 import graph_service_pb2


@dataclass(slots=True, kw_only=True)
class Graph:
    """Collectives of one group that its members have run and recorded, to be run again in one call.

    Attributes:
        name: Its name, unique in its session.
        group: Name of the group.
        session_id: Session that has it, and whose refs it reads and fills.
        ranks: Ranks of the gang that have recorded it, in group order.
        operations: Names of the collectives, in order: "all_reduce". Empty as long as they are being recorded.
    """

    name: str
    group: str
    session_id: str
    ranks: tuple[int, ...]
    operations: tuple[str, ...] = ()


def graph_from_wire(graph: graph_service_pb2.Graph, session_id: str, rank: int) -> Graph:
    """Reads what one rank tells of a graph of a session."""
    return Graph(session_id=session_id, ranks=(rank,), **fields_of(Graph, graph))
