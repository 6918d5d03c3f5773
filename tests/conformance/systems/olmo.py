"""OLMo-core: `distributed.utils`, in a distributed run and outside one, which here is a gang of one."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from tests.conformance import checks, forms, launches
from tests.conformance.clients.client import CallArguments
from tests.conformance.clients.python import attempt
from tests.conformance.compare import ABSENT
from tests.conformance.moments import Answer, Moment
from tests.conformance.recorded import Case
from tests.conformance.stage import Stage
from tests.conformance.systems.calls import Replay, each_group, no_arguments, one_each
from tests.conformance.values import Tensor, plain

import rankbridge
from rankbridge import Group
from rankbridge.compat import olmo

LAUNCHER = {"RANK": "0", "WORLD_SIZE": "8", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "8", "NUM_NODES": "1"}
"""What a launcher sets, where a case changes some of it."""


def groups_of(case: Case, stage: Stage) -> Sequence[Group]:
    """The groups that a case calls: the world, or both halves of it, or the lists that its ranks name."""
    inputs = [case.inputs_of(rank) for rank in case.ranks]
    if inputs[0].get("group", "world") == "world":
        return [stage.gang.group("world")]
    middle = case.world // 2
    halves = [range(middle), range(middle, case.world)]
    lists = dict.fromkeys(tuple(it.get("ranks", halves[rank // middle])) for rank, it in enumerate(inputs))
    names = {f"list{place}": ranks for place, ranks in enumerate(lists)}
    answer = stage.new_groups(names)
    assert "ok" in answer, answer
    return [stage.group(name) for name in names]


def place_of(group: Group, source: int) -> int:
    """The place of a rank of the gang; one that is not in the group has none, and is counted past its end."""
    return group.ranks.index(source) if source in group.ranks else len(group) + source


def about_ranks(case: Case, stage: Stage) -> Iterator[Moment]:
    """What each rank is."""
    world = stage.gang.group("world")
    ours: dict[str, Callable[[], list[Any]]] = {
        "get_rank": lambda: [member.rank for member in world.members],
        "get_world_size": lambda: [member.world_size for member in world.members],
        "get_local_rank": lambda: [member.local_rank for member in world.members],
        "get_local_world_size": lambda: [len(there) for there in world.by_host().values() for _ in there],
        "get_num_nodes": lambda: [len(world.by_host())] * case.world,
        "get_fs_local_rank": lambda: [member.rank for member in world.members],
        "is_distributed": lambda: [it.generation_state == "formed" for it in stage.gang.status()],
    }
    values = ours[case.name]()
    yield from one_each(case, {rank: {"ok": value} for rank, value in enumerate(values)})


def is_distributed(case: Case, stage: Stage) -> Iterator[Moment]:
    """Whether a process is in a run: outside one, it is a rank that nobody has formed a gang of."""
    with launches.never_formed() as alone:
        state = alone[0].status().generation_state
    yield from one_each(case, {0: {"ok": state == "formed"}})


def env_ignored(case: Case, stage: Stage) -> Iterator[Moment]:
    """What a single process is where the environment tells of a larger run, which it is not in."""
    with launches.gang_of_one(case.inputs, stage.gangs.backend) as gang:
        (member,) = gang.group("world").members
        told_so = [member.rank, member.local_rank, gang[0].fs_local_rank(), member.world_size]
    yield from one_each(case, {0: {"ok": told_so}})


def backend_supports(case: Case, stage: Stage) -> Iterator[Moment]:
    """Which devices a backend moves the data of: of this gang's the rank tells, of others by name nobody."""
    device = stage.gang[0].default_device()
    seen: Any = {"cpu": device == "cpu", "cuda": device.startswith("cuda")}
    known = case.inputs.get("backend", "gloo") == "gloo"
    which = case.name.removeprefix("backend_supports_")
    supported = seen[which] if which in seen else list(seen.values())
    yield from one_each(case, {0: {"ok": supported if known else ABSENT}})


def outside_a_run(case: Case, stage: Stage) -> Iterator[Moment]:
    """What a single process is; where a case changes the environment, what a rank reads there."""
    changed = case.inputs.get("env", {})
    only_said = {"RANK": "0", "WORLD_SIZE": "8"}
    said = any(changed.values())
    hosts_said = said or case.name not in ("get_num_nodes", "get_local_world_size")
    if not changed or case.name == "get_num_nodes" or not hosts_said:
        yield from about_ranks(case, stage)
        return
    environment = {**(LAUNCHER if said else only_said), **changed}
    if case.name == "get_local_world_size":
        environment = {**environment, "NUM_NODES": None}
    answer = launches.launched(environment)
    if "ok" in answer:
        answer = {"ok": getattr(answer["ok"], case.name.removeprefix("get_"))}
    yield from one_each(case, {0: answer})


def validate_env_vars(case: Case, stage: Stage) -> Iterator[Moment]:
    """A launcher's environment in which something is missing."""
    answer = launches.launched({**LAUNCHER, "OLMO_SHARED_FS": "1", **case.inputs.get("env", {})})
    yield from one_each(case, {0: {"ok": None} if "ok" in answer else answer})


def environment_after(case: Case, stage: Stage) -> Iterator[Moment]:
    """What a rank knows of itself, in the words of the variables that are set in a run."""
    answers: dict[int, Answer] = {}
    world = stage.gang.group("world")
    hosts = world.by_host()
    for member in world.members:
        there = hosts[member.host or ""]
        known: dict[str, Any] = {
            "RANK": str(member.rank),
            "WORLD_SIZE": str(len(world)),
            "LOCAL_RANK": str(member.local_rank),
            "LOCAL_WORLD_SIZE": str(len(there)),
            "NUM_NODES": str(len(hosts)),
            "rank": member.rank,
            "world": len(world),
            "num_nodes": len(hosts),
        }
        recorded = case.answers[member.rank]
        answers[member.rank] = {"ok": {key: known[key] for key in known if recorded.get(key) is not None}}
    yield from one_each(case, answers)


def another_backend(case: Case, stage: Stage) -> Iterator[Moment]:
    """What moves the data cannot be changed in a gang."""
    again: Callable[..., Any] = stage.gang.form
    yield from one_each(case, {0: attempt(lambda: again(backend=case.inputs["backend"]))})


def same_backend(case: Case, stage: Stage) -> Iterator[Moment]:
    """A gang that was formed can be formed again."""
    yield from one_each(case, {0: attempt(lambda: stage.gang.form() and None)})


def barrier(case: Case, stage: Stage) -> Iterator[Moment]:
    """Every rank waits for all."""
    yield from one_each(case, each_group(case, stage, groups_of(case, stage), "barrier", no_arguments))


def group_ranks(case: Case, stage: Stage) -> Iterator[Moment]:
    """What each rank is in its group."""
    answers: dict[int, Answer] = {}
    for group in groups_of(case, stage):
        for member in group.members:
            own = checks.own_groups(stage.gang, member.rank)[group.name]
            told_so = [member.rank_in_group, len(group), list(group.ranks), own.rank_in_group]
            answers[member.rank] = {"ok": told_so}
    yield from one_each(case, answers)


def reversed_group(case: Case, stage: Stage) -> Iterator[Moment]:
    """A group whose ranks are in another order than in the gang."""
    answer = stage.new_groups({"reversed": case.inputs["ranks"]})
    assert "ok" in answer, answer
    group = stage.group("reversed")
    joined = [[int(rank) for rank in ranks] for ranks in checks.gathered(stage.gang, group)]
    answers: dict[int, Answer] = {
        member.rank: {
            "ok": [
                member.rank_in_group,
                list(group.ranks),
                joined[member.rank_in_group],
                group.first_rank,
                group.last_rank,
            ]
        }
        for member in group.members
    }
    yield from one_each(case, answers)


def get_mesh_coordinates(case: Case, stage: Stage) -> Iterator[Moment]:
    """A mesh is made, data goes round in its groups, and each rank is where it was recorded."""
    axes = dict(zip(case.inputs["names"], case.inputs["shape"], strict=True))
    mesh = stage.gang.new_mesh(axes, name=stage.name)
    stage.made(mesh.groups())
    checks.assert_groups_work(stage.gang, mesh.groups())
    yield from planned_coordinates(case)
    for rank, recorded in enumerate(case.answers):
        own = checks.own_groups(stage.gang, rank)
        known = {axis: own[mesh.group(axis, rank).name] for axis in axes}
        yield Moment(
            step="groups",
            rank=rank,
            recorded=[{"ok": {axis: [sub["ranks"], sub["mine"]] for axis, sub in recorded["sub"].items()}}],
            answer={"ok": {axis: [list(it.ranks), [it.rank_in_group]] for axis, it in known.items()}},
            method="groups",
        )


def get_mesh_coordinates_custom(case: Case, stage: Stage) -> Iterator[Moment]:
    """A mesh of some ranks in an order of its own: data goes round in its groups, and every rank is where it was."""
    axes, ranks = _custom_mesh(case)
    mesh = stage.gang.new_mesh(axes, ranks=ranks, name=stage.name)
    stage.made(mesh.groups())
    checks.assert_groups_work(stage.gang, mesh.groups())
    yield from planned_custom_coordinates(case)


def planned_custom_coordinates(case: Case) -> Iterator[Moment]:
    """The same, as far as a description of the mesh tells. No rank is asked."""
    axes, ranks = _custom_mesh(case)
    mesh = rankbridge.Mesh.plan(axes, ranks)
    told_so = [_coordinates(mesh, rank) for rank in case.ranks]
    yield from one_each(case, {rank: {"ok": told_so} for rank in case.ranks})


def _custom_mesh(case: Case) -> tuple[dict[str, int], list[int]]:
    rows: list[list[int]] = case.inputs["mesh"]
    return {"row": len(rows), "column": len(rows[0])}, [rank for row in rows for rank in row]


def _coordinates(mesh: rankbridge.Mesh, rank: int) -> Any:
    """The coordinates of a rank, or the code with which the mesh refuses one that is outside."""
    answer = attempt(lambda: list(mesh.coordinates(rank).values()))
    return answer["ok"] if "ok" in answer else answer["error"]["code"]


def planned_coordinates(case: Case) -> Iterator[Moment]:
    """Each rank is where it was recorded, as far as a description of the mesh tells. No rank is asked."""
    axes = dict(zip(case.inputs["names"], case.inputs["shape"], strict=True))
    mesh = rankbridge.Mesh.plan(axes, case.world)
    answers: dict[int, Answer] = {}
    for rank in case.ranks:
        seen = forms.olmo_coordinates(mesh, rank)
        answers[rank] = {"ok": {**seen, "outside": _coordinates(mesh, case.world)}}
    yield from one_each(case, answers)


def synchronize_value(case: Case, stage: Stage) -> Iterator[Moment]:
    """The source's value, on every rank."""

    def give(group: Group, rank: int) -> CallArguments:
        inputs = case.inputs_of(rank)
        value = plain(inputs.get("value", inputs.get("flag")))
        value = value.for_bridge() if isinstance(value, Tensor) else value
        source = inputs.get("src", 0)
        options = {
            "src_rank_in_group": place_of(group, source) if isinstance(source, int) else place_of(group, 0)
        }
        return (True if value is None else value,), options

    method = "synchronize_flag" if case.name.startswith("synchronize_flag") else "synchronize_value"
    answers = each_group(case, stage, groups_of(case, stage), method, give)
    if case.name == "synchronize_flag" and case.suite == "olmo":
        answers = {rank: {"ok": answer} for rank, answer in answers.items()}
    yield from one_each(case, answers)


def tensor_in_place(case: Case, stage: Stage) -> Iterator[Moment]:
    """The source's tensor or the sum of all, which takes the place of each rank's own."""
    groups = groups_of(case, stage)
    answers: dict[int, Answer] = {}
    for group in groups:
        refs = {rank: stage.put(rank, plain(case.inputs_of(rank)["value"])) for rank in group.ranks}
        options: dict[str, Any] = {"in_place": True}
        method = "all_reduce"
        if case.name.startswith("synchronize"):
            method = "broadcast"
            options["src_rank_in_group"] = place_of(group, case.inputs_of(group.ranks[0])["src"])
        given: dict[int, CallArguments] = {rank: ((ref,), options) for rank, ref in refs.items()}
        for rank, answer in stage.together(method, given, group, fetch=False).items():
            if "error" in answer:
                answers[rank] = answer
                continue
            result = answer["ok"]
            seen = {
                "returned": stage.client.get(result),
                "same_object": result.id == refs[rank].id,
                "arg_after": stage.client.get(refs[rank]),
            }
            answers[rank] = {"ok": seen}
    yield from one_each(case, answers)


def alone_reduced(case: Case, stage: Stage) -> Iterator[Moment]:
    """A reduction in a gang of one: of a number, or of a tensor, which is its own sum."""
    value = plain(case.inputs["value"])
    if not isinstance(value, Tensor):
        yield from all_reduce_value(case, stage)
        return
    world = stage.gang.group("world")
    given: dict[int, CallArguments] = {0: ((stage.put(0, value),), {})}
    yield from one_each(case, stage.together("all_reduce", given, world))


def all_reduce_value(case: Case, stage: Stage) -> Iterator[Moment]:
    """A reduction of numbers."""

    def give(_: Group, rank: int) -> CallArguments:
        inputs = case.inputs_of(rank)
        return (inputs["value"],), {"op": inputs.get("op", "SUM").lower()}

    yield from one_each(case, each_group(case, stage, groups_of(case, stage), "all_reduce_value", give))


def broadcast_object(case: Case, stage: Stage) -> Iterator[Moment]:
    """The source's value."""

    def give(group: Group, rank: int) -> CallArguments:
        inputs = case.inputs_of(rank)
        value = inputs.get("obj", ["r", rank])
        return (value,), {"src_rank_in_group": place_of(group, inputs.get("src", 0))}

    yield from one_each(case, each_group(case, stage, groups_of(case, stage), "broadcast_object", give))


def all_gather(case: Case, stage: Stage) -> Iterator[Moment]:
    """What every rank brings, of whatever shape, in a list."""

    def give(_: Group, rank: int) -> CallArguments:
        tensor = plain(case.inputs_of(rank)["tensor"])
        brought = tensor if isinstance(tensor, Tensor) else Tensor.of("float32", tensor)
        return (stage.put(rank, brought),), {"layout": "list", "ragged": True}

    yield from one_each(case, each_group(case, stage, groups_of(case, stage), "all_gather", give))


def all_gather_object(case: Case, stage: Stage) -> Iterator[Moment]:
    """What every rank brings, in a list."""

    def give(_: Group, rank: int) -> CallArguments:
        return (case.inputs_of(rank)["obj"],), {}

    yield from one_each(case, each_group(case, stage, groups_of(case, stage), "all_gather_object", give))


def do_n_at_a_time(case: Case, stage: Stage) -> Iterator[Moment]:
    """The ranks take turns; those of a round at the same time."""
    calls: dict[int, int] = dict.fromkeys(case.ranks, 0)
    order: list[int] = []
    at_once = 0
    nodes = case.inputs.get("num_nodes_env")
    # Where the environment tells of more hosts than there are, as many ranks have their turn at once.
    n = int(nodes) if case.inputs["n"] is None and nodes is not None else case.inputs["n"]
    for turns in olmo.do_n_at_a_time(stage.gang, n, group="world"):
        together = threading.Barrier(len(turns))

        def take(turn: Any, together: threading.Barrier = together) -> None:
            with turn as rank:
                together.wait(60)
                calls[rank.rank] += 1
                order.append(rank.rank)

        threads = [threading.Thread(target=take, args=(turn,)) for turn in turns]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        at_once = max(at_once, len(turns))
    in_order = order if case.answers[0]["order"] is not None else None
    answers: dict[int, Answer] = {
        rank: {
            "ok": {"result": rank * 10, "calls": calls[rank], "max_concurrent": at_once, "order": in_order}
        }
        for rank in case.ranks
    }
    yield from one_each(case, answers)


def one_turn(case: Case, stage: Stage) -> Iterator[Moment]:
    """A gang of one has one turn, in which its function gives what it gives."""
    results = []
    for turns in olmo.do_n_at_a_time(stage.gang):
        for turn in turns:
            with turn:
                results.append(42)
    (result,) = results
    yield from one_each(case, {0: {"ok": result}})


def schedule(case: Case, stage: Stage) -> Iterator[Moment]:
    """The rounds in which ranks take turns, or what each does in them: its function (f), and a barrier (b)."""
    world, n = case.inputs["world_size"], case.inputs["n"]
    rounds = rankbridge.rounds_of(world, n)
    if case.name == "do_n_events":
        told_so: Any = ["".join("fb" if rank in turns else "b" for turns in rounds) for rank in range(world)]
    else:
        number = {rank: place for place, turns in enumerate(rounds) for rank in turns}
        told_so = {"rounds": len(rounds), "round_of_rank": [number[rank] for rank in range(world)]}
    yield from one_each(case, {0: {"ok": told_so}})


def get_reduce_divide_factor(case: Case, stage: Stage) -> Iterator[Moment]:
    """Arithmetic."""
    factor = rankbridge.get_reduce_divide_factor(case.inputs["world_size"])
    yield from one_each(case, {0: {"ok": factor}})


def get_global_rank(case: Case, stage: Stage) -> Iterator[Moment]:
    """The rank in the gang of a member."""
    world = stage.gang.group("world")
    yield from one_each(case, {0: attempt(lambda: world.at(case.inputs["group_rank"]).rank)})


COMMON: Mapping[str, Replay] = {
    "barrier": barrier,
    "synchronize_value": synchronize_value,
    "synchronize_flag*": synchronize_value,
    "synchronize_value_tensor": tensor_in_place,
    "all_reduce_value_tensor": tensor_in_place,
    "all_reduce_value": all_reduce_value,
    "broadcast_object*": broadcast_object,
    "upstream_test_broadcast_object": broadcast_object,
    "all_gather": all_gather,
    "all_gather_object": all_gather_object,
}

REPLAYS: dict[str, dict[str, Replay]] = {
    "olmo": {
        **COMMON,
        "env_after_init": environment_after,
        "group_ranks": group_ranks,
        "reversed_group": reversed_group,
        "get_mesh_coordinates": get_mesh_coordinates,
        "get_mesh_coordinates_custom": get_mesh_coordinates_custom,
        "do_n_at_a_time": do_n_at_a_time,
        "*": about_ranks,
    },
    "olmo_nondist": {
        **COMMON,
        "is_distributed": is_distributed,
        "env_ignored": env_ignored,
        "backend_supports*": backend_supports,
        "all_reduce_value": alone_reduced,
        "init_distributed_single": environment_after,
        "init_again_other_backend": another_backend,
        "init_again_same": same_backend,
        "validate_env_vars": validate_env_vars,
        "do_n_at_a_time": one_turn,
        "do_n_*": schedule,
        "get_reduce_divide_factor": get_reduce_divide_factor,
        "get_global_rank": get_global_rank,
        "*": outside_a_run,
    },
}
