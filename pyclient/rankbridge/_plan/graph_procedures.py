"""The procedures of recording collectives on all members of a group."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from rankbridge._plan import operations as ops
from rankbridge._plan.calls import Call
from rankbridge._plan.gang_core import GangCore, all_values
from rankbridge._plan.graph import Graph
from rankbridge._plan.groups import Group
from rankbridge._plan.operations import group_name
from rankbridge._plan.procedures import Procedure, members_of
from rankbridge.errors import Outcome, RankBridgeError, UnknownGraphError, gang_error


def beginning(gang: GangCore[Any], name: str | None, group: str | Group) -> Procedure[Graph]:
    """Begins to record on every member, or on none."""
    members = yield from members_of(gang, group)
    graph = Graph(
        name=ops.graph_name(name),
        group=group_name(group) or "world",
        session_id=gang.session_id,
        ranks=tuple(members),
    )
    begun = members
    try:
        outcomes: list[Outcome[Graph]] = yield list(
            gang._on(members, ops.begin_capture, graph.name, group=group)
        )
        begun = tuple(it.rank for it in outcomes if it.error is None or it.error.indefinite)
        all_values(outcomes)
    except GeneratorExit:
        raise
    except BaseException:
        yield from dropping(gang, replace(graph, ranks=begun))
        raise
    return graph


def ending(gang: GangCore[Any], graph: Graph) -> Procedure[Graph]:
    """Ends a recording on every member, and keeps it on all of them or on none. Completes the graph."""
    outcomes: list[Outcome[Graph]] = yield list(_ends(gang, graph))
    kept = [it.value for it in outcomes if it.value is not None]
    if len(kept) < len(outcomes):
        yield [ops.release_graph(gang._scope(it.ranks[0]), it) for it in kept]
        raise gang_error(outcomes)
    graph.name, graph.operations = kept[0].name, kept[0].operations
    return graph


def dropping(gang: GangCore[Any], graph: Graph) -> Procedure[None]:
    """Ends a recording, and keeps it nowhere; ignores what fails."""
    outcomes: list[Outcome[Graph]] = yield list(_ends(gang, graph))
    ended = [it.value for it in outcomes if it.value is not None]
    if ended:
        yield [ops.release_graph(gang._scope(it.ranks[0]), it) for it in ended]


def releasing(gang: GangCore[Any], graph: str | Graph) -> Procedure[Graph]:
    """Forgets a graph wherever it is."""
    ranks = graph.ranks if isinstance(graph, Graph) else tuple(gang._all())
    outcomes: list[Outcome[Graph]] = yield list(gang._on(ranks, ops.release_graph, graph))
    had = [it.value for it in outcomes if it.value is not None]
    errors: list[RankBridgeError] = [it.error for it in outcomes if it.error is not None]
    # A name says nothing of who has recorded it.
    expected = (UnknownGraphError,) if had else ()
    if not all(isinstance(error, expected) for error in errors):
        raise gang_error(outcomes)
    return replace(had[0], ranks=tuple(rank for it in had for rank in it.ranks))


def _ends(gang: GangCore[Any], graph: Graph) -> list[Call[Graph]]:
    return [ops.end_capture(gang._scope(rank, graph.session_id), group=graph.group) for rank in graph.ranks]
