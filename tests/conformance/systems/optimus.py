"""optimus-dl: `MeshCollective` and `FakeCollective`."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any

from tests.conformance import checks, forms, launches
from tests.conformance.clients.client import CallArguments
from tests.conformance.clients.python import attempt
from tests.conformance.moments import Answer, Moment
from tests.conformance.recorded import Case
from tests.conformance.stage import Stage
from tests.conformance.systems.calls import Replay, each_group, in_place, no_arguments, one_each
from tests.conformance.values import Json, Tensor, plain

from rankbridge import Group, Mesh

LAUNCHED = {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"}
"""What a launcher must set for a process to be one of several."""


def groups_of(case: Case, stage: Stage) -> Sequence[Group]:
    """The groups that a case calls: the world, the ranks of each host, or those of each tp."""
    inputs = case.inputs_of(0)
    match inputs.get("group", "world"):
        case "world":
            return [stage.gang.group("world")]
        case "local":
            mesh = stage.gang.new_mesh(forms.optimus_hosts(inputs), name=f"{stage.name}/hosts")
            axis = "local_ranks"
        case _:
            mesh = stage.gang.new_mesh(forms.optimus_axes(inputs), name=stage.name)
            axis = "tp"
    stage.made(mesh.groups())
    names = dict.fromkeys(mesh.group(axis, rank).name for rank in case.ranks)
    return [stage.gang.group(name) for name in names]


def barrier(case: Case, stage: Stage) -> Iterator[Moment]:
    """Every rank waits for its group."""
    yield from one_each(case, each_group(case, stage, groups_of(case, stage), "barrier", no_arguments))


def all_reduce(case: Case, stage: Stage) -> Iterator[Moment]:
    """A reduction in place."""
    refs = {rank: stage.put(rank, plain(case.inputs_of(rank)["tensor"])) for rank in case.ranks}

    def give(_: Group, rank: int) -> CallArguments:
        return (refs[rank],), {"op": case.inputs_of(rank)["op"].lower(), "in_place": True}

    answers = each_group(case, stage, groups_of(case, stage), "all_reduce", give)
    after = {rank: stage.client.get(ref) for rank, ref in refs.items()}
    if case.name == "all_reduce":
        answers = in_place(answers, after)
    yield from one_each(case, answers)


def all_gather(case: Case, stage: Stage, layout: str = "concatenated") -> Iterator[Moment]:
    """What every rank brings, one after the other, stacked or in a list."""

    def give(_: Group, rank: int) -> CallArguments:
        tensor = plain(case.inputs_of(rank)["input"])
        options: dict[str, Any] = {"layout": layout} if layout == "list" else {"layout": layout, "dim": 0}
        return (stage.put(rank, tensor),), options

    yield from one_each(case, each_group(case, stage, groups_of(case, stage), "all_gather", give))


def all_gather_wrongly(case: Case, stage: Stage) -> Iterator[Moment]:
    """Every rank expects something else than what the members bring: another size in all, or other members.

    The bridge makes the result itself; what a caller can claim about it are sizes.
    """

    def give(group: Group, rank: int) -> CallArguments:
        inputs = case.inputs_of(rank)
        tensor = plain(inputs["input"])
        if "n" in inputs:
            sizes = [tensor.shape[0]] * inputs["n"]
        else:
            sizes = [inputs["output_shape"][0]] + [0] * (len(group) - 1)
        return (stage.put(rank, tensor),), {"dim": 0, "sizes": sizes}

    yield from one_each(case, each_group(case, stage, groups_of(case, stage), "all_gather", give))


def all_gather_objects(case: Case, stage: Stage) -> Iterator[Moment]:
    """Every rank's value, in a list."""

    def give(_: Group, rank: int) -> CallArguments:
        return (case.inputs_of(rank)["object"],), {}

    yield from one_each(case, each_group(case, stage, groups_of(case, stage), "all_gather_object", give))


def broadcast(case: Case, stage: Stage) -> Iterator[Moment]:
    """The source's tensor. The older version counts sources in the gang, the newer in the group."""

    def give(group: Group, rank: int) -> CallArguments:
        inputs = case.inputs_of(rank)
        return (stage.put(rank, plain(inputs["tensor"])),), {"src_rank_in_group": source(group, inputs)}

    yield from one_each(case, each_group(case, stage, groups_of(case, stage), "broadcast", give))


def broadcast_objects(case: Case, stage: Stage) -> Iterator[Moment]:
    """The source's list of values."""

    def give(group: Group, rank: int) -> CallArguments:
        inputs = case.inputs_of(rank)
        return (inputs["objects"],), {"src_rank_in_group": source(group, inputs)}

    yield from one_each(case, each_group(case, stage, groups_of(case, stage), "broadcast_object_list", give))


def source(group: Group, inputs: Any) -> int:
    """The place of a recorded source; one that is not in the group has none, and is counted past its end."""
    given: int = inputs["source_rank"]
    if inputs["version"] == "head":
        return given
    return group.ranks.index(given) if given in group.ranks else len(group) + given


def mesh_table(case: Case, stage: Stage) -> Iterator[Moment]:
    """Both meshes are made, data goes round in their groups, and each rank is where it was recorded."""
    inputs = case.inputs
    mesh = stage.gang.new_mesh(forms.optimus_axes(inputs), name=stage.name, flattened=forms.DP)
    stage.made(mesh.groups())
    physical = stage.gang.new_mesh(forms.optimus_hosts(inputs), name=f"{stage.name}/hosts")
    stage.made(physical.groups())
    checks.assert_groups_work(stage.gang, [*mesh.groups(), *physical.groups()])
    for rank, recorded in enumerate(case.answers):
        own = checks.own_groups(stage.gang, rank)
        groups = {
            axis: list(own[part.group(axis, rank).name].ranks)
            for part in (mesh, physical)
            for axis in part.axes
        }
        yield Moment(
            step="groups",
            rank=rank,
            recorded=[{"ok": recorded["groups"]}],
            answer={"ok": groups},
            method="groups",
        )
    devices = [rank.default_device() for rank in stage.gang]
    yield from planned_table(case, devices)


def planned_table(case: Case, devices: Sequence[str] = ()) -> Iterator[Moment]:
    """Each rank is where it was recorded, as far as a description of the mesh tells. No rank is asked.

    Of devices only those are compared that are given, one of each rank.
    """
    inputs, world = case.inputs, case.world
    places = forms.places(world, inputs["local_world_size"])
    mesh = Mesh.plan(forms.optimus_axes(inputs), world, flattened=forms.DP, local=True, places=places)
    physical = Mesh.plan(forms.optimus_hosts(inputs), world)
    for rank, recorded in enumerate(case.answers):
        ours = forms.optimus_rank(mesh, physical, rank)
        known = plain(recorded)
        for ours_part, part in [(ours, known), *((ours[name], known[name]) for name in forms.OPTIMUS_PARTS)]:
            if devices:
                ours_part["default_device"] = devices[rank]
            else:
                part.pop("default_device", None)
        yield Moment(
            step="0",
            rank=rank,
            recorded=[{"ok": known}],
            answer={"ok": ours},
            method=case.name,
            inputs=inputs,
        )


def mesh_ctor_error(case: Case, stage: Stage) -> Iterator[Moment]:
    """Sizes that do not fit: nothing is made."""

    def make() -> None:
        physical = stage.gang.new_mesh(forms.optimus_hosts(case.inputs), name=f"{stage.name}/hosts")
        stage.made(physical.groups())
        tp_within_hosts(case.inputs)
        stage.gang.new_mesh(forms.optimus_axes(case.inputs), name=stage.name)

    before = stage.gang.groups()
    answer = attempt(make)
    stage.close()
    assert stage.gang.groups() == before
    yield from one_each(case, dict.fromkeys(case.ranks, answer))


def tp_within_hosts(inputs: Json) -> None:
    """Divides the ranks of a host into tensor-parallel groups, as optimus-dl's mesh must be able to."""
    Mesh.plan({"dp": -1, "tp": inputs["tp_size"]}, inputs["local_world_size"])


def planned(inputs: Json, world: int) -> Mesh:
    """Plans the meshes of optimus-dl, and gives the parallel one."""
    Mesh.plan(forms.optimus_hosts(inputs), world)
    tp_within_hosts(inputs)
    return Mesh.plan(forms.optimus_axes(inputs), world)


def planned_ctor_error(case: Case) -> Iterator[Moment]:
    """Sizes that do not fit are refused before any rank is asked."""

    def make() -> None:
        planned(case.inputs, case.world)

    yield from one_each(case, dict.fromkeys(case.ranks, attempt(make)))


def ctor_rank_ge_world(case: Case, stage: Stage) -> Iterator[Moment]:
    """A process whose launcher gives it a rank that is not in its world."""
    environment = {"RANK": str(case.inputs["rank"]), "WORLD_SIZE": str(case.inputs["world_size"])}
    yield from one_each(case, dict.fromkeys(case.ranks, launches.launched(environment)))


def default_device(case: Case, stage: Stage) -> Iterator[Moment]:
    """Where each rank makes tensors."""
    yield from one_each(case, {rank: {"ok": stage.gang[rank].default_device()} for rank in case.ranks})


def fake_view(case: Case, stage: Stage) -> Iterator[Moment]:
    """A gang of one."""
    member = stage.gang.group("world").at(0)
    part = {
        "rank": member.rank,
        "world_size": member.world_size,
        "local_is_self": stage.gang.group("world").by_host() == {member.host: (0,)},
        "tp_world_is_self": Mesh.plan({"tp": 1}, 1).line("tp", 0) == member.group.ranks,
        "local_rank": member.local_rank,
        "is_master": member.is_master,
        "is_local_master": member.is_local_master,
        "default_device": stage.gang[0].default_device(),
        "barrier": stage.together("barrier", {0: ((), {})}, stage.gang.group("world"))[0]["ok"],
    }
    mesh = Mesh.plan({"dp": 1, "tp": 1}, 1)
    for axis in mesh.axes:
        part[f"{axis}_rank"] = mesh.member(axis, 0).rank_in_group
        part[f"{axis}_world_size"] = mesh.member(axis, 0).world_size
    yield from one_each(case, {0: {"ok": part}})


def fake_ctor(case: Case, stage: Stage) -> Iterator[Moment]:
    """A rank of a gang: some of what the records ask for is not in a gang of one."""
    rank, size = case.inputs["rank"], case.inputs["world_size"]

    def ask() -> bool:
        group = stage.gang.new_group(f"{stage.name}/ctor", range(size))
        stage.made([group])
        return group.at(rank).is_master

    yield from one_each(case, {0: attempt(ask)})


def fake_call(case: Case, stage: Stage) -> Iterator[Moment]:
    """A collective of a gang of one."""
    inputs = case.inputs
    world = stage.gang.group("world")

    def put(name: str) -> Any:
        given = plain(inputs[name])
        return stage.put(0, given if isinstance(given, Tensor) else Tensor.of("float32", given))

    def call(method: str, *args: Any, **options: Any) -> Answer:
        return stage.together(method, {0: (args, options)}, world)[0]

    match case.name:
        case "all_reduce":
            ref = put("tensor")
            answer = call("all_reduce", ref, op=inputs["op"].lower(), in_place=True)
            answer = in_place({0: answer}, {0: stage.client.get(ref)})[0]
        case "all_gather" | "all_gather_noncontig":
            *outer, last = inputs["output_shape"]
            layout = "stacked" if outer else "concatenated"
            members = outer[0] if outer else 1
            expected = members == 1 and last == len(inputs["input"])
            given = {} if expected else {"sizes": [last] * members}
            answer = call("all_gather", put("input"), dim=0, layout=layout, **given)
        case "all_gather_to_list":
            members = inputs["n"]
            given = {} if members == 1 else {"sizes": [len(inputs["input"])] * members}
            answer = call("all_gather", put("input"), layout="list", **given)
        case "all_gather_objects":
            answer = call("all_gather_object", inputs["object"])
        case "broadcast_objects":
            answer = call(
                "broadcast_object_list", inputs.get("objects", ["a"]), src_rank_in_group=inputs["source_rank"]
            )
        case "broadcast":
            ref = stage.put(0, Tensor.of("float32", [1.0]))
            answer = call("broadcast", ref, src_rank_in_group=inputs["source_rank"])
        case "barrier":
            answer = call("barrier")
        case _:
            raise NotImplementedError(str(case))
    yield from one_each(case, {0: answer})


def build_best_collective(case: Case, stage: Stage) -> Iterator[Moment]:
    """A process that a launcher has started in a larger world, as its environment tells; else a gang of one."""
    environment = case.inputs["env"]
    if set(environment) >= LAUNCHED and environment["WORLD_SIZE"] not in ("0", "1"):
        answer = launches.launched(environment)
        if "ok" in answer:
            local_size, world = answer["ok"].local_world_size, answer["ok"].world_size
            sizes = {"tp_size": 1, "sharding_world_size": None, **case.inputs["config"]}
            answer = attempt(lambda: planned({**sizes, "local_world_size": local_size}, world))
    else:
        with launches.gang_of_one(environment, stage.gangs.backend) as gang:
            status = gang[0].status()
            seen = {"rank": status.rank, "world_size": status.world_size, "device": gang[0].default_device()}
            answer = {"ok": seen}
    yield from one_each(case, {0: answer})


REPLAYS: dict[str, dict[str, Replay]] = {
    "optimus_ops": {
        "barrier": barrier,
        "all_reduce": all_reduce,
        "all_reduce_dtype": all_reduce,
        "all_gather_concat": all_gather,
        "all_gather_stack": functools.partial(all_gather, layout="stacked"),
        "all_gather_to_list": functools.partial(all_gather, layout="list"),
        "all_gather_bad_shape": all_gather_wrongly,
        "all_gather_to_list_wrong_len": all_gather_wrongly,
        "all_gather_objects": all_gather_objects,
        "broadcast": broadcast,
        "broadcast_objects": broadcast_objects,
    },
    "optimus_mesh": {
        "mesh_table": mesh_table,
        "mesh_ctor_error": mesh_ctor_error,
        "ctor_rank_ge_world": ctor_rank_ge_world,
        "default_device": default_device,
    },
    "optimus_fake": {
        "view": fake_view,
        "ctor": fake_ctor,
        "build_best_collective": build_best_collective,
        "*": fake_call,
    },
}
