"""A graph: collectives that ranks have run and recorded. Nothing here asks a rank."""

from __future__ import annotations

from dataclasses import dataclass


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
