"""torchgfn: collectives, averages and reports."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tests.conformance.clients.client import CallArguments
from tests.conformance.clients.python import attempt
from tests.conformance.moments import Answer, Moment
from tests.conformance.recorded import Case
from tests.conformance.stage import Stage
from tests.conformance.systems.calls import (
    Replay,
    each_group,
    in_place,
    no_arguments,
    one_each,
    recorded_of,
    was_called,
)
from tests.conformance.values import Tensor, plain

import rankbridge
from rankbridge import Group


def groups_of(case: Case, stage: Stage) -> Sequence[Group]:
    """The groups that a case calls: the world, or the lists of ranks that its ranks name."""
    lists: dict[tuple[int, ...], None] = {}
    for rank in case.ranks:
        inputs = case.inputs_of(rank)
        given = inputs.get("ranks", inputs.get("group"))
        if was_called(case, rank):
            lists[tuple(given) if isinstance(given, list) else tuple(case.ranks)] = None
    if list(lists) == [tuple(case.ranks)]:
        return [stage.gang.group("world")]
    names = {f"list{place}": ranks for place, ranks in enumerate(lists)}
    answer = stage.new_groups(names)
    assert "ok" in answer, answer
    return [stage.group(name) for name in names]


def get_rank(case: Case, stage: Stage) -> Iterator[Moment]:
    """Each rank's place in its group, or its size."""
    answers: dict[int, Answer] = {}
    for group in groups_of(case, stage):
        for member in group.members:
            value = member.rank_in_group if case.name == "get_rank" else member.world_size
            answers[member.rank] = {"ok": value}
    yield from one_each(case, answers)


def barrier(case: Case, stage: Stage) -> Iterator[Moment]:
    """Every rank waits for its group."""
    yield from one_each(case, each_group(case, stage, groups_of(case, stage), "barrier", no_arguments))


def all_reduce(case: Case, stage: Stage) -> Iterator[Moment]:
    """A reduction in place; of ops that the records do not give a tensor for, of three numbers."""
    usual = Tensor.of("float32", [1.0, 2.0, 5.0])
    refs = {rank: stage.put(rank, plain(case.inputs_of(rank).get("tensor")) or usual) for rank in case.ranks}

    def give(_: Group, rank: int) -> CallArguments:
        return (refs[rank],), {"op": case.inputs_of(rank)["op"].lower(), "in_place": True}

    answers = each_group(case, stage, groups_of(case, stage), "all_reduce", give)
    after = {rank: stage.client.get(ref) for rank, ref in refs.items()}
    yield from one_each(case, in_place(answers, after))


def all_gather(case: Case, stage: Stage) -> Iterator[Moment]:
    """What every rank brings, in a list."""

    def give(_: Group, rank: int) -> CallArguments:
        return (stage.put(rank, plain(case.inputs_of(rank)["tensor"])),), {"layout": "list"}

    yield from one_each(case, each_group(case, stage, groups_of(case, stage), "all_gather", give))


def broadcast(case: Case, stage: Stage) -> Iterator[Moment]:
    """The source's tensor; on torch sources are counted in the gang, on MPI in the group."""

    def give(group: Group, rank: int) -> CallArguments:
        inputs = case.inputs_of(rank)
        in_group = inputs["src_is"] == "group rank"
        source = inputs["src"] if in_group else group.ranks.index(inputs["src"])
        return (stage.put(rank, plain(inputs["tensor"])),), {"src_rank_in_group": source}

    yield from one_each(case, each_group(case, stage, groups_of(case, stage), "broadcast", give))


def gather_distributed_data(case: Case, stage: Stage) -> Iterator[Moment]:
    """Every rank's rows, at the first."""

    def give(_: Group, rank: int) -> CallArguments:
        options = {"dst_rank_in_group": 0, "dim": 0, "ragged": True}
        return (stage.put(rank, plain(case.inputs_of(rank)["local"])),), options

    yield from one_each(case, each_group(case, stage, groups_of(case, stage), "gather", give))


def parameters(rank: int) -> dict[str, Tensor]:
    """The model of a rank, as the records' notes tell."""
    return {
        "w": Tensor.of(
            "float32", [[1.0 * (rank + 1), 2.0 * (rank + 1)], [3.0 * (rank + 1), 4.0 * (rank + 1)]]
        ),
        "b": Tensor.of("float32", [float(rank)]),
    }


def gradients(rank: int) -> dict[str, Tensor]:
    """The gradients of a rank, as the records' notes tell."""
    return {
        "w": Tensor.of("float32", [[rank + 1.0] * 2] * 2),
        "b": Tensor.of("float32", [10.0 * rank]),
    }


def average(case: Case, stage: Stage) -> Iterator[Moment]:
    """Models or gradients, averaged in place."""
    of_gradients = case.name.startswith("average_gradients")
    maps: dict[int, Mapping[str, Any]] = {}
    for rank in case.ranks:
        tensors = gradients(rank) if of_gradients else parameters(rank)
        maps[rank] = {name: stage.put(rank, tensor) for name, tensor in tensors.items()}
    given = {rank: dict.fromkeys(own) for rank, own in maps.items()} if "missing" in case.name else maps

    def give(_: Group, rank: int) -> CallArguments:
        return (given[rank],), {}

    method = "average_gradients" if of_gradients else "average_models"
    answers = each_group(case, stage, groups_of(case, stage), method, give)
    for rank, own in maps.items():
        if rank not in answers or "error" in answers[rank]:
            continue
        after = {name: stage.client.get(ref) for name, ref in own.items()}
        if of_gradients:
            answers[rank] = {"ok": {"returned": None, "grads": after, "params": parameters(rank)}}
        else:
            answers[rank] = {"ok": after}
    yield from one_each(case, answers)


def report(case: Case, stage: Stage) -> Iterator[Moment]:
    """A report on timings, as every rank has them after an exchange of all, line by line."""
    timings = case.inputs["all_timing_dict"]
    write = getattr(rankbridge, case.name)
    answer = attempt(lambda: write(timings).lines)
    if "ok" in answer:
        log = [["WARNING" if "skipping" in line else "INFO", line] for line in answer["ok"]]
        answer = {"ok": {"returned": None, "log": log}}
    for rank in case.ranks:
        recorded = recorded_of(case, rank)
        failed = recorded.get("ok", {}).get("error")
        if failed is not None:
            # The function had written a part of its report before it failed.
            recorded = {"error": {"type": failed[0], "message": failed[1]}}
        yield Moment(
            step="0", rank=rank, recorded=[recorded], answer=answer, method=case.name, inputs=case.inputs
        )


REPLAYS: dict[str, dict[str, Replay]] = {
    "gfn_ops": {
        "get_rank": get_rank,
        "get_world_size": get_rank,
        "barrier": barrier,
        "all_reduce": all_reduce,
        "all_reduce_bad_op": all_reduce,
        "all_gather": all_gather,
        "broadcast": broadcast,
        "broadcast_last": broadcast,
        "gather_distributed_data*": gather_distributed_data,
        "average_*": average,
        "report_*": report,
    },
}
