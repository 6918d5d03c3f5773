"""Recording collectives, and running them again."""

from __future__ import annotations

import uuid
from typing import Any, Unpack

from rankbridge._plan.calls import Call
from rankbridge._plan.graph import Graph
from rankbridge._plan.groups import Group
from rankbridge._plan.operations.declare import (
    CallOptions,
    Scope,
    group_call,
    operation,
    options_of,
    plain_call,
)
from rankbridge._plan.values import from_value
from rankbridge._plan.wire import fields_of
from rankbridge.errors import ProtocolError
from rankbridge.v1 import graph_service_pb2 as pb, value_pb2


@operation
def begin_capture(scope: Scope, name: str | None = None, *, group: str | Group = "world") -> Call[Graph]:
    """Begins to record what the session does in a group."""
    request = pb.BeginCaptureRequest(
        call=options_of(scope, scope.session_id, "begin_capture", group=group), graph=graph_name(name)
    )
    return group_call(scope, "begin_capture", request, _reader(scope, scope.session_id))


@operation
def end_capture(scope: Scope, *, group: str | Group = "world") -> Call[Graph]:
    """Ends a recording, and keeps it."""
    request = pb.EndCaptureRequest(call=options_of(scope, scope.session_id, "end_capture", group=group))
    return group_call(scope, "end_capture", request, _reader(scope, scope.session_id))


@operation
def replay(scope: Scope, graph: str | Graph, **options: Unpack[CallOptions]) -> Call[list[Any]]:
    """Runs a graph again."""
    session_id = scope.session_id
    if isinstance(graph, Graph):
        session_id = graph.session_id
        options.setdefault("group", graph.group)
    request = pb.ReplayRequest(call=options_of(scope, session_id, "replay", **options), graph=_name_of(graph))
    return group_call(scope, "replay", request, _results)


@operation
def release_graph(scope: Scope, graph: str | Graph) -> Call[Graph]:
    """Forgets a graph."""
    session_id = graph.session_id if isinstance(graph, Graph) else scope.session_id
    request = pb.ReleaseGraphRequest(session_id=session_id, graph=_name_of(graph))
    return plain_call(scope, "release_graph", request, _reader(scope, session_id))


def graph_name(name: str | None) -> str:
    """Gives the name of a graph: the one given, else one that nothing else has."""
    return f"graph-{uuid.uuid4().hex}" if name is None else name


def _name_of(graph: str | Graph) -> str:
    return graph.name if isinstance(graph, Graph) else graph


def _reader(scope: Scope, session_id: str) -> Any:
    return lambda it: Graph(session_id=session_id, ranks=(scope.rank,), **fields_of(Graph, it))


def _results(value: value_pb2.Value) -> list[Any]:
    results = from_value(value)
    if not isinstance(results, list):
        raise ProtocolError(
            "the outcome is not one of each collective",
            expected="a list",
            got=str(value.WhichOneof("kind")),
        )
    return results
