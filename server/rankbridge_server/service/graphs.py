"""GraphService."""

from __future__ import annotations

from rankbridge.v1 import graph_service_pb2 as pb, graph_service_pb2_grpc as stub

from ..core.groups.group import WORLD
from ..core.programs.graphs import Graph
from .answering import OfRank, answers
from .operations.programs import REPLAY
from .operations.typed import method


class GraphServicer(OfRank, stub.GraphServiceServicer):
    """Graphs of one rank."""

    Replay = method(pb.ReplayResponse, REPLAY)

    @answers(pb.BeginCaptureResponse, "begin_capture")
    def BeginCapture(self, request: pb.BeginCaptureRequest) -> pb.Graph:
        """Begins a recording."""
        group = self._rank.group(request.call.group).name
        self._rank.refs.renew_session(request.call.session_id)
        return _packed(self._rank.graphs.begin(request.call.session_id, group, request.graph))

    @answers(pb.EndCaptureResponse, "end_capture")
    def EndCapture(self, request: pb.EndCaptureRequest) -> pb.Graph:
        """Ends a recording."""
        call = request.call
        return _packed(self._rank.graphs.end(call.session_id, call.group or WORLD))

    @answers(pb.ReleaseGraphResponse, "release_graph")
    def ReleaseGraph(self, request: pb.ReleaseGraphRequest) -> pb.Graph:
        """Deletes a graph."""
        return _packed(self._rank.graphs.release(request.session_id, request.graph))


def _packed(graph: Graph) -> pb.Graph:
    return pb.Graph(
        name=graph.name, group=graph.group, operations=[step.operation.name for step in graph.steps]
    )
