"""How recording and replaying are asked for, and how their answers are read."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.client import declared
from tests.unit.client.declared import SCOPE, answer, asked, calls_of, of_members, refs

from rankbridge import GangError, Graph, NameExistsError, ProtocolError, UnavailableError
from rankbridge._plan import operations as ops
from rankbridge._plan.graph_procedures import beginning, ending
from rankbridge._plan.procedures import finishing
from rankbridge.errors import Outcome
from rankbridge.v1 import error_pb2, graph_service_pb2 as pb, value_pb2

GRAPH = Graph(name="g", group="tp", session_id="theirs", ranks=(3, 1), operations=("all_reduce",))


def test_a_recording_is_of_the_session_and_the_group() -> None:
    begin = ops.begin_capture(SCOPE, "g", group="tp")
    request = asked(begin, pb.BeginCaptureRequest)
    assert (request.graph, request.call.group, request.call.session_id) == ("g", "tp", "mine")
    assert begin.path == "/rankbridge.v1.GraphService/BeginCapture"
    response = pb.BeginCaptureResponse(graph=pb.Graph(name="g", group="tp"))
    assert begin.result(response.SerializeToString()) == Graph(
        name="g", group="tp", session_id="mine", ranks=(2,)
    )
    names = {asked(ops.begin_capture(SCOPE), pb.BeginCaptureRequest).graph for _ in range(3)}
    assert len(names) == 3
    end = ops.end_capture(SCOPE, group="tp")
    assert asked(end, pb.EndCaptureRequest).call.group == "tp"
    told_end = pb.EndCaptureResponse(graph=pb.Graph(name="g", group="tp", operations=["barrier", "scan"]))
    assert end.result(told_end.SerializeToString()).operations == ("barrier", "scan")


def test_a_graph_is_replayed_in_its_group_and_its_session() -> None:
    request = asked(ops.replay(SCOPE, GRAPH, timeout=2), pb.ReplayRequest)
    assert (request.graph, request.call.group, request.call.session_id) == ("g", "tp", "theirs")
    assert request.call.timeout_ms == 2000
    by_name = asked(ops.replay(SCOPE, "g"), pb.ReplayRequest)
    assert (by_name.graph, by_name.call.group, by_name.call.session_id) == ("g", "world", "mine")
    release = asked(ops.release_graph(SCOPE, GRAPH), pb.ReleaseGraphRequest)
    assert (release.graph, release.session_id) == ("g", "theirs")
    assert asked(ops.release_graph(SCOPE, "g"), pb.ReleaseGraphRequest).session_id == "mine"


def test_every_member_replays_the_same_under_one_id() -> None:
    requests = of_members("replay", "g", pb.ReplayRequest)
    assert {it.graph for it in requests} == {"g"}
    assert len({it.call.operation_id for it in requests}) == 1
    assert requests[0].call.operation_id


def test_a_replay_gives_a_list_of_what_each_collective_gives() -> None:
    (call, *_) = calls_of("replay", GRAPH)
    assert answer(call, pb.ReplayResponse, [refs()[2], None]) == [refs()[2], None]
    with pytest.raises(ProtocolError, match="not one of each collective"):
        answer(call, pb.ReplayResponse, value_pb2.Value(int=1))
    finish = finishing("replay", "g")
    first, second = refs(), refs(1)
    members: list[Any] = [[first[0], None, second[0]], [first[1], None, None]]
    assert finish(members) == [first[:2], None, [second[0], None]]
    with pytest.raises(ProtocolError, match="different numbers"):
        finish([[None], [None, None]])


def _error(code: error_pb2.ErrorCode.ValueType) -> error_pb2.Error:
    return error_pb2.Error(code=code, message="told")


def test_what_may_have_begun_is_ended_if_not_all_have_begun() -> None:
    procedure = beginning(declared.gang(), "g", "world")
    calls = next(procedure)
    assert [(call.kind, call.rank) for call in calls] == [("begin_capture", rank) for rank in range(4)]
    ends = procedure.send(
        [
            Outcome(rank=0, value=GRAPH),
            Outcome(rank=1, error=NameExistsError("there is one")),
            Outcome(rank=2, error=UnavailableError("gone", indefinite=True)),
            Outcome(rank=3, value=GRAPH),
        ]
    )
    assert [(call.kind, call.rank) for call in ends] == [("end_capture", rank) for rank in (0, 2, 3)]
    kept = [Graph(name="g", group="world", session_id="gang", ranks=(rank,)) for rank in (0, 3)]
    releases = procedure.send(
        [
            Outcome(rank=0, value=kept[0]),
            Outcome(rank=2, error=UnavailableError("gone")),
            Outcome(rank=3, value=kept[1]),
        ]
    )
    assert [(call.kind, call.rank) for call in releases] == [("release_graph", 0), ("release_graph", 3)]
    with pytest.raises(NameExistsError) as caught:
        procedure.send([Outcome(rank=0, value=kept[0]), Outcome(rank=3, value=kept[1])])
    assert isinstance(caught.value, GangError)


def test_an_interrupted_beginning_is_ended_everywhere() -> None:
    procedure = beginning(declared.gang(), "g", "world")
    next(procedure)
    ends = procedure.throw(KeyboardInterrupt())
    assert [(call.kind, call.rank) for call in ends] == [("end_capture", rank) for rank in range(4)]
    gone: list[Outcome[Any]] = [Outcome(rank=rank, error=UnavailableError("gone")) for rank in range(4)]
    with pytest.raises(KeyboardInterrupt):
        procedure.send(gone)


def test_a_graph_is_kept_on_all_members_or_on_none() -> None:
    graph = Graph(name="g", group="world", session_id="gang", ranks=(0, 1))
    kept = Graph(name="g", group="world", session_id="gang", ranks=(1,), operations=("barrier",))
    procedure = ending(declared.gang(), graph)
    next(procedure)
    releases = procedure.send([Outcome(rank=0, error=UnavailableError("gone")), Outcome(rank=1, value=kept)])
    assert [(call.kind, call.rank) for call in releases] == [("release_graph", 1)]
    with pytest.raises(UnavailableError):
        procedure.send([Outcome(rank=1, value=kept)])
    assert graph.operations == ()
