"""Groups that are made and ended together, through both fronts, on sidecars that can be told to fail."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import grpc
import pytest
from tests.unit.client.sidecars import WAIT, Sidecar, SidecarGang

import rankbridge
from rankbridge import GroupExistsError, InvalidArgumentError, Layout, Mesh, RankOutOfRangeError
from rankbridge._plan.gang_core import GangCore
from rankbridge._plan.group_procedures import making
from rankbridge.errors import Outcome
from rankbridge.v1 import group_service_pb2 as group_pb, rank_service_pb2 as rank_pb

Answer = Callable[[Any, grpc.ServicerContext], Any]
HOSTS = ("a", "a", "b", "b")


def describing(me: Sidecar) -> Answer:
    """Tells the groups of a sidecar, and where it runs: two ranks on a host."""

    def describe(request: Any, context: grpc.ServicerContext) -> Any:
        groups = [
            group_pb.Group(
                name=name,
                ranks=ranks,
                backend="fake",
                generation=3,
                rank_in_group=ranks.index(me.rank) if me.rank in ranks else None,
            )
            for name, ranks in me.groups.items()
        ]
        return rank_pb.DescribeRankResponse(
            rank=me.rank, world_size=4, host=HOSTS[me.rank], local_rank=me.rank % 2, groups=groups
        )

    return describe


def ending(me: Sidecar) -> Answer:
    """Ends a group that the sidecar knows."""

    def destroy(request: Any, context: grpc.ServicerContext) -> Any:
        ranks = me.groups.pop(request.call.group, None)
        if ranks is None:
            error = me.error("UNKNOWN_GROUP", "no such group", group=request.call.group)
            return group_pb.DestroyGroupResponse(error=error)
        return group_pb.DestroyGroupResponse(group=group_pb.Group(name=request.call.group, ranks=ranks))

    return destroy


def failing(me: Sidecar, name: str, code: str, **more: Any) -> Answer:
    """Makes every group but one."""

    def new(request: Any, context: grpc.ServicerContext) -> Any:
        if request.name == name:
            return group_pb.NewGroupResponse(error=me.error(code, "told to fail", **more))
        me.groups[request.name] = tuple(request.ranks)
        return group_pb.NewGroupResponse(group=group_pb.Group(name=request.name, ranks=request.ranks))

    return new


@pytest.fixture
def sidecars(sidecars: SidecarGang) -> SidecarGang:
    """The sidecars, telling their groups and hosts."""
    for me in sidecars.sidecars:
        me.answers["DescribeRank"] = describing(me)
        me.answers["DestroyGroup"] = ending(me)
    return sidecars


def fail(sidecars: SidecarGang, name: str, code: str, **more: Any) -> None:
    """Lets every sidecar fail to make one group."""
    for me in sidecars.sidecars:
        me.answers["NewGroup"] = failing(me, name, code, **more)


def made(sidecars: SidecarGang) -> list[list[str]]:
    """Names of the groups that each sidecar was asked to make."""
    return [[request.name for request in me.requests.get("NewGroup", [])] for me in sidecars.sidecars]


def left(sidecars: SidecarGang) -> set[str]:
    """Names of the groups that some sidecar knows."""
    return {name for me in sidecars.sidecars for name in me.groups} - {"world"}


def test_groups_are_made_on_every_rank_one_after_the_other(gang: Any, sidecars: SidecarGang) -> None:
    groups = gang.new_groups([("x", [2, 0]), rankbridge.Group(name="y", ranks=(1, 3))], timeout=7)
    assert [(group.name, group.ranks) for group in groups] == [("x", (2, 0)), ("y", (1, 3))]
    assert made(sidecars) == [["x", "y"]] * 4
    for place in range(2):
        calls = [me.requests["NewGroup"][place].call for me in sidecars.sidecars]
        assert len({call.operation_id for call in calls}) == 1
        assert {(call.group, call.timeout_ms) for call in calls} == {("world", 7000)}
    assert gang.new_groups([]) == []


def test_if_one_cannot_be_made_those_before_it_are_ended(gang: Any, sidecars: SidecarGang) -> None:
    fail(sidecars, "z", "FORMING_FAILED")
    with pytest.raises(rankbridge.FormingFailedError) as caught:
        gang.new_groups([("x", [0, 1]), ("y", [2, 3]), ("z", [1, 2]), ("never", [0])])
    assert made(sidecars) == [["x", "y", "z"]] * 4
    ended = [[request.call.group for request in me.requests["DestroyGroup"]] for me in sidecars.sidecars]
    assert ended == [["x"], ["x"], ["y"], ["y"]]
    assert not hasattr(caught.value, "__notes__")
    assert left(sidecars) == {"x", "y"}
    assert all("x" not in sidecars[rank].groups for rank in (0, 1))


def test_one_that_may_have_been_made_is_ended_too(gang: Any, sidecars: SidecarGang) -> None:
    fail(sidecars, "y", "DEADLINE_EXCEEDED", indefinite=True)
    sidecars[1].answers["NewGroup"] = failing(sidecars[1], "", "INTERNAL")
    with pytest.raises(rankbridge.DeadlineExceededError) as caught:
        gang.new_groups([("x", [0]), ("y", [0, 1])])
    assert [request.call.group for request in sidecars[0].requests["DestroyGroup"]] == ["y", "x"]
    assert [request.call.group for request in sidecars[1].requests["DestroyGroup"]] == ["y"]
    assert "y" not in sidecars[1].groups
    # That rank 0 does not know the group is what was wanted.
    assert not hasattr(caught.value, "__notes__")


def test_what_cannot_be_ended_again_is_named(gang: Any, sidecars: SidecarGang) -> None:
    fail(sidecars, "z", "PEER_LOST", indefinite=True)
    error = sidecars[0].error("STALE_GENERATION", "the generation is over")
    for me in sidecars.sidecars:
        me.answers["DestroyGroup"] = lambda request, context: group_pb.DestroyGroupResponse(error=error)
    with pytest.raises(rankbridge.PeerLostError) as caught:
        gang.new_groups([("x", [0]), ("y", [1]), ("z", [2, 3])])
    (note,) = caught.value.__notes__
    assert "'z', 'y', 'x'" in note
    # After the first that says so, the others are not even tried.
    assert sum(len(me.requests.get("DestroyGroup", [])) for me in sidecars.sidecars) == 2


def test_names_of_groups_that_exist_are_refused_before_anything_is_made(
    gang: Any, sidecars: SidecarGang
) -> None:
    sidecars[1].groups["x"] = (0, 1)
    with pytest.raises(GroupExistsError, match="1 of 2 groups exist already; none was made") as caught:
        gang.new_groups([("w", [0, 1]), ("x", [0, 1])])
    assert caught.value.got == "'x'"
    assert not caught.value.indefinite
    sidecars[0].groups |= {"mesh/dp/0": (0,), "layout/train": (0,)}
    with pytest.raises(GroupExistsError):
        gang.new_mesh({"dp": 4})
    with pytest.raises(GroupExistsError):
        gang.new_layout(Layout.in_blocks(4))
    assert made(sidecars) == [[]] * 4


def test_names_of_groups_that_their_members_have_ended_are_free(gang: Any, sidecars: SidecarGang) -> None:
    sidecars[3].groups |= {"x": (0, 1), "mesh/dp/0": (0,)}
    assert [group.ranks for group in gang.new_groups([("x", [2, 1])])] == [(2, 1)]
    assert gang.new_mesh({"dp": 4}).group("dp", 0).ranks == (0, 1, 2, 3)


@pytest.mark.parametrize(
    ("groups", "kind"),
    [
        ([("x", [0]), ("x", [1])], InvalidArgumentError),
        ([("", [0])], InvalidArgumentError),
        ([("x" * 129, [0])], InvalidArgumentError),
        ([("x", [])], InvalidArgumentError),
        ([("x", [1, 1])], InvalidArgumentError),
        ([("w", [0]), ("x", [4])], RankOutOfRangeError),
        ([("x", [-1])], RankOutOfRangeError),
    ],
)
def test_malformed_groups_are_refused_before_any_rank_is_asked(
    gang: Any, sidecars: SidecarGang, groups: list[tuple[str, list[int]]], kind: type[Exception]
) -> None:
    with pytest.raises(kind):
        gang.new_groups(groups)
    assert all("DescribeRank" not in me.requests for me in sidecars.sidecars)


def test_those_of_the_groups_that_exist_are_ended(gang: Any, sidecars: SidecarGang) -> None:
    gang.new_groups([("x", [0, 1]), ("y", [2])])
    ended = gang.destroy_groups(["x", "never", rankbridge.Group(name="y", ranks=(0, 1, 2)), "x"])
    assert [(group.name, group.ranks) for group in ended] == [("x", (0, 1)), ("y", (2,))]
    assert gang.destroy_groups(["x", "y"]) == []
    with pytest.raises(InvalidArgumentError, match="ends with its generation"):
        gang.destroy_groups(["x", "world"])


def test_one_that_cannot_be_ended_does_not_keep_the_others(gang: Any, sidecars: SidecarGang) -> None:
    gang.new_groups([("x", [0, 1]), ("y", [2]), ("z", [0])])
    error = sidecars[1].error("PEER_MISSING", "told to fail")
    sidecars[1].answers["DestroyGroup"] = lambda request, context: group_pb.DestroyGroupResponse(error=error)
    with pytest.raises(rankbridge.PeerMissingError) as caught:
        gang.destroy_groups(["x", "y", "z"])
    assert caught.value.__notes__ == ["Groups that were not ended: 'x'."]
    assert "y" not in sidecars[2].groups
    assert "z" not in sidecars[0].groups


def test_a_group_is_described_with_the_places_of_its_members(gang: Any, sidecars: SidecarGang) -> None:
    gang.new_groups([("x", [3, 0])])
    group = gang.group("x")
    assert (group.name, group.ranks, group.backend, group.generation) == ("x", (3, 0), "fake", 3)
    assert [(member.host, member.local_rank) for member in group.members] == [("b", 1), ("a", 0)]
    assert gang.group("").by_host() == {"a": (0, 1), "b": (2, 3)}
    assert gang.hosts() == HOSTS


def test_a_rank_that_does_not_answer_leaves_its_own_place_open(gang: Any, sidecars: SidecarGang) -> None:
    gang.new_groups([("x", [3, 0])])
    sidecars.servers[3].stop(None).wait()
    assert [member.host for member in gang.group("x").members] == [None, "a"]
    with pytest.raises(rankbridge.UnavailableError):
        gang.hosts()
    for server in sidecars.servers:
        server.stop(None).wait()
    with pytest.raises(rankbridge.UnavailableError):
        gang.group("x")


def test_a_group_that_only_others_than_its_members_tell_of_is_unknown(
    gang: Any, sidecars: SidecarGang
) -> None:
    sidecars[3].groups["ended"] = (0, 1)
    with pytest.raises(rankbridge.UnknownGroupError) as caught:
        gang.group("ended")
    assert (caught.value.expected, caught.value.got) == ("one of world", "'ended'")


def test_a_mesh_is_made_and_found_again(gang: Any, sidecars: SidecarGang) -> None:
    axes = {"dp": 2, "tp": 2}
    mesh = gang.new_mesh(axes, name="m", flattened={"all": ["dp", "tp"]}, local=True)
    assert (mesh.shape, mesh.ranks, mesh.local) == (axes, (0, 1, 2, 3), True)
    assert [group.name for group in mesh.groups()] == made(sidecars)[0]
    assert mesh.lines("local") == [(0, 1), (2, 3)]
    assert mesh.member("local", 3).host == "b"
    found = gang.mesh(axes, name="m", flattened={"all": ["dp", "tp"]}, local=True)
    assert (found.generation, found.backend) == (3, "fake")
    assert found.groups() == [
        rankbridge.Group(name=group.name, ranks=group.ranks, backend="fake", generation=3)
        for group in mesh.groups()
    ]
    part = gang.new_mesh({"dp": 2}, ranks=[3, 1], name="part")
    assert [(group.name, group.ranks) for group in part.groups()] == [("part/dp/0", (3, 1))]


def test_a_mesh_that_is_not_there_as_it_should_be_is_refused(gang: Any, sidecars: SidecarGang) -> None:
    gang.new_mesh({"dp": 2, "tp": 2})
    with pytest.raises(InvalidArgumentError, match="dp 3 x tp 2; expected 6 ranks, got 4"):
        gang.mesh({"dp": 3, "tp": 2})
    with pytest.raises(InvalidArgumentError, match="3 of its 4 groups have other members") as caught:
        gang.mesh({"dp": 2, "tp": 2}, ranks=[0, 1, 3, 2])
    assert (caught.value.expected, caught.value.got) == ("mesh/dp/0 of ranks [0, 3]", "ranks [0, 2]")
    with pytest.raises(rankbridge.UnknownGroupError, match="4 of its 8 groups are not there"):
        gang.mesh({"dp": 2, "tp": 2}, flattened={"x": ["tp"], "y": ["dp"]})
    with pytest.raises(RankOutOfRangeError, match="outside the gang"):
        gang.new_mesh({"dp": 2}, ranks=[3, 4], name="part")


def test_the_groups_of_a_layout_are_made(gang: Any, sidecars: SidecarGang) -> None:
    layout = gang.new_layout(Layout.by_host(gang.hosts(), buffers=2, agent_groups=2))
    assert layout.teams == ((0,), (2,))
    assert made(sidecars)[0] == ["layout/train", "layout/buffer", "layout/agent/0", "layout/agent/1"]
    assert gang.destroy_groups(layout.groups())[1].ranks == (1, 3)
    with pytest.raises(InvalidArgumentError, match="for a gang of another size; expected 4 ranks, got 5"):
        gang.new_layout(Layout.in_blocks(5))


def test_what_interrupts_the_making_ends_what_was_made() -> None:
    gang: GangCore[Any] = GangCore(["unix:a", "unix:b"], session_id="", timeout=5)
    procedure = making(gang, [("x", [0]), ("y", [0, 1]), ("z", [1])], timeout=None, generation=0)
    next(procedure)
    calls = procedure.send([Outcome(rank=rank, value=status(rank)) for rank in range(2)])
    assert [call.rank for call in calls] == [0, 1]
    made = rankbridge.Group(name="x", ranks=(0,))
    procedure.send([Outcome(rank=rank, value=made) for rank in range(2)])
    ends = procedure.throw(KeyboardInterrupt())
    assert [(call.kind, call.group, call.rank) for call in ends] == [
        ("destroy_group", "y", 0),
        ("destroy_group", "y", 1),
    ]
    unknown = rankbridge.UnknownGroupError("no such group")
    ends = procedure.send([Outcome(rank=rank, error=unknown) for rank in range(2)])
    assert [(call.kind, call.group, call.rank) for call in ends] == [("destroy_group", "x", 0)]
    with pytest.raises(KeyboardInterrupt):
        procedure.send([Outcome(rank=0, value=made)])


def test_a_task_that_is_cancelled_ends_what_it_made(sidecars: SidecarGang) -> None:
    """Also when the cancellation comes while a group is being made."""
    waiting, going_on = threading.Semaphore(0), threading.Event()

    def stuck_at_y(make: Answer) -> Answer:
        def new(request: Any, context: grpc.ServicerContext) -> Any:
            if request.name == "y":
                waiting.release()
                going_on.wait(WAIT)
            return make(request, context)

        return new

    for me in sidecars.sidecars:
        me.answers["NewGroup"] = stuck_at_y(failing(me, "", "INTERNAL"))

    async def run() -> None:
        gang = await rankbridge.aconnect(sidecars.endpoints(), timeout=20)
        try:
            making_them = asyncio.create_task(gang.new_groups([("x", [0, 1]), ("y", [2, 3])]))
            for _ in sidecars.sidecars:
                assert await asyncio.to_thread(waiting.acquire, timeout=WAIT)
            making_them.cancel()
            with pytest.raises(asyncio.CancelledError):
                await making_them
        finally:
            going_on.set()
            await gang.close()

    asyncio.run(run())
    assert all("x" not in sidecars[rank].groups for rank in (0, 1))


def status(rank: int) -> rankbridge.RankStatus:
    """A rank that knows no groups."""
    return rankbridge.RankStatus(
        rank=rank,
        world_size=2,
        local_rank=rank,
        pid=1,
        host="a",
        backend="fake",
        generation=1,
        generation_state="formed",
        generation_error=None,
        groups=(),
        sessions=(),
        pending_operations=0,
        endpoints=(),
        version="0",
    )


def test_a_planned_mesh_can_be_formed_with_a_generation(gang: Any, sidecars: SidecarGang) -> None:
    mesh = Mesh.plan({"dp": 2, "tp": 2}, 4)
    gang.form(groups=mesh.groups())
    (request,) = sidecars[0].requests["Form"]
    assert [(group.name, tuple(group.ranks)) for group in request.groups] == [
        (group.name, group.ranks) for group in mesh.groups()
    ]
