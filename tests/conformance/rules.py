"""What entries of the tables refer to by name: conditions, and functions that compute what is right.

Nothing here asks the bridge: a value is computed from what the ranks were given.
"""

from __future__ import annotations

import functools
import json
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from tests.conformance import reference
from tests.conformance.compare import Difference
from tests.conformance.moments import Moment
from tests.conformance.recorded import Case
from tests.conformance.systems import gfn, gfn_layouts, gfn_p2p, hazards
from tests.conformance.values import Tensor, plain
from tests.conformance.vllm_grammar import Arguments

Condition: TypeAlias = Callable[[Case, Moment], bool]
Value: TypeAlias = Callable[[Case, Moment, Difference], Any]


# --- conditions ------------------------------------------------------------------------------------------------


def world_of_one(case: Case, moment: Moment) -> bool:
    """The gang, or the group, has one rank."""
    return case.world == 1


def unsorted_ranks(case: Case, moment: Moment) -> bool:
    """Some list of ranks is not ascending."""
    lists = [ranks for built in case.data["groups"] for ranks in built["group_ranks"]]
    return any(ranks != sorted(ranks) for ranks in lists)


def strided(case: Case, moment: Moment) -> bool:
    """Some tensor of the case is not contiguous."""
    return '"transpose": true' in json.dumps(case.data["steps"])


def trains_not(case: Case, moment: Moment) -> bool:
    """The rank does not train."""
    return moment.rank not in _trainers(case, moment.rank)


def coordinates(case: Case, moment: Moment) -> bool:
    """The rank coordinates."""
    return bool(case.answers[moment.rank]["is_coordinator_rank"])


def beyond_members(case: Case, moment: Moment) -> bool:
    """A dimension is the third or a later one."""
    tensor = moment.inputs.get("input_")
    dim = moment.inputs.get("dim", -1)
    return isinstance(tensor, Tensor) and int(dim) % max(1, len(tensor.shape)) >= 2


def unequal_tensors(case: Case, moment: Moment) -> bool:
    """The members bring tensors of different dtypes or shapes."""
    tensors = [it.get("input_") for it in moment.arguments]
    return len({(it.dtype, it.shape) for it in tensors if isinstance(it, Tensor)}) > 1


def negative_source(case: Case, moment: Moment) -> bool:
    """A source or destination is counted from the end."""
    return any(isinstance(it := moment.inputs.get(name), int) and it < 0 for name in ("src", "dst"))


def float_given(case: Case, moment: Moment) -> bool:
    """The value is a float."""
    return isinstance(moment.inputs.get("value"), float)


def fewer_timings(case: Case, moment: Moment) -> bool:
    """There are fewer timings than the report was told to be of."""
    return len(case.inputs["all_timing_dict"]) < int(case.inputs["world_size"])


def one_timing(case: Case, moment: Moment) -> bool:
    """A step has a number and not a list of them."""
    return any(isinstance(it, float) for own in case.inputs["all_timing_dict"] for it in own.values())


CONDITIONS: dict[str, Condition] = {
    "a world of one": world_of_one,
    "ranks that are not ascending": unsorted_ranks,
    "a strided tensor": strided,
    "a rank that does not train": trains_not,
    "a coordinator": coordinates,
    "the third dimension or a later one": beyond_members,
    "unequal tensors": unequal_tensors,
    "a negative rank": negative_source,
    "a float": float_given,
    "fewer timings than ranks": fewer_timings,
    "a number for a step": one_timing,
}


# --- values ----------------------------------------------------------------------------------------------------


def _trainers(case: Case, rank: int) -> Sequence[int]:
    recorded = case.answers[rank]
    trainers: Sequence[int] = recorded.get("training_ranks", range(recorded["num_training_ranks"]))
    return trainers


def by_reference(case: Case, moment: Moment, difference: Difference) -> Any:
    """What the collective gives, computed with numpy from what all members brought."""
    return _inside(reference.value(moment.method, moment.arguments, moment.place), difference.path)


def _inside(value: Any, path: str) -> Any:
    """What is at the path of a difference in a value."""
    for key in path.split(".")[1:]:
        value = value[int(key)] if isinstance(value, list | tuple) else value[key]
    return value


def sent(case: Case, moment: Moment, difference: Difference) -> Any:
    """What was sent, as it was."""
    return gfn_p2p.sent_in(case)


def stacked(case: Case, moment: Moment, difference: Difference) -> Any:
    """Every member's tensor, stacked, the members being those of whose tensors the others are next to it."""
    given = [plain(case.inputs_of(rank)["input"]) for rank in _members(case, moment.rank)]
    return Tensor(given[0].dtype, np.stack([tensor.array for tensor in given]))


def _members(case: Case, rank: int) -> Sequence[int]:
    inputs = case.inputs_of(rank)
    size = {"world": case.world, "local": inputs["local_world_size"], "tp_world": inputs["tp_size"]}[
        inputs["group"]
    ]
    first = rank // size * size
    return range(first, first + size)


def of_one(case: Case, moment: Moment, difference: Difference) -> Any:
    """What a gang of one gives: its own tensor, in the form that was asked for."""
    given = Tensor.of("float32", case.inputs["input"])
    outer = len(case.inputs["output_shape"]) > 1
    return Tensor("float32", given.array[None]) if outer else given


def in_double(case: Case, moment: Moment, difference: Difference) -> Any:
    """The reduction of floats, or the source's, in binary64."""
    members = _olmo_members(case, moment.rank)
    values = [case.inputs_of(rank)["value"] for rank in members]
    if moment.method.startswith("synchronize"):
        return values[members.index(moment.inputs["src"])]
    ops: Mapping[str, Callable[[Sequence[float]], float]] = {
        "SUM": lambda all_of: functools.reduce(operator.add, all_of),
        "MAX": max,
        "MIN": min,
        "PRODUCT": math.prod,
        "AVG": lambda all_of: functools.reduce(operator.add, all_of) / len(all_of),
    }
    return ops[moment.inputs["op"]](values)


def _olmo_members(case: Case, rank: int) -> Sequence[int]:
    size = case.world if case.inputs_of(rank)["group"] == "world" else case.world // 2
    first = rank // size * size
    return range(first, first + size)


def own_size_average(case: Case, moment: Moment, difference: Difference) -> Any:
    """The average of the models of the group, divided by its own size."""
    models = [gfn.parameters(rank) for rank in case.inputs["group"]]
    name = difference.path.rpartition(".")[2]
    mean = np.mean([model[name].array for model in models], axis=0, dtype=np.float32)
    return Tensor("float32", np.asarray(mean))


def reduced(case: Case, moment: Moment, difference: Difference) -> Any:
    """The reduction of all members' tensors, as of a call that returns nothing."""
    members = case.inputs_of(moment.rank)["ranks"]
    given = [case.inputs_of(rank).get("tensor") for rank in members]
    tensors = [plain(it) if it else Tensor.of("float32", [1.0, 2.0, 5.0]) for it in given]
    return {"returned": None, "tensor": reference.reduced(tensors, moment.inputs["op"].lower())}


def reversed_order(case: Case, moment: Moment, difference: Difference) -> Any:
    """A rank's place in the order that was given, or that order."""
    ranks: list[int] = case.inputs["ranks"]
    _, _, *which = difference.path.split(".")
    return ranks[int(which[0])] if which else ranks.index(moment.rank)


def rows(case: Case, moment: Moment, difference: Difference) -> Any:
    """All members' rows at the first, nothing elsewhere."""
    return hazards.gathered_rows(case) if moment.rank == 0 else None


def uneven(case: Case, moment: Moment, difference: Difference) -> Any:
    """All members' tensors."""
    return list(hazards.UNEVEN)


def sent_in_ring(case: Case, moment: Moment, difference: Difference) -> Any:
    """Of a receive what the other of two has sent, of anything else nothing."""
    return hazards.sent_by(1 - moment.rank) if moment.method == "recv" else None


def of_source(case: Case, moment: Moment, difference: Difference) -> Any:
    """The source's value."""
    return hazards.source_of(case)


def average_of_callers(case: Case, moment: Moment, difference: Difference) -> Any:
    """The average of the gradients of those ranks that call."""
    given = [gfn.gradients(rank) for rank, steps in enumerate(case.data["per_rank"]) if steps]
    return {name: reference.reduced([own[name] for own in given], "avg") for name in given[0]}


def set_as_list(case: Case, moment: Moment, difference: Difference) -> Any:
    """A set's elements in order."""
    return sorted(difference.recorded)


def report_of_those(case: Case, moment: Moment, difference: Difference) -> Any:
    """The report of the timings that there are, a number being a list of one."""
    return {"returned": None, "log": reference.report(case.name, case.inputs["all_timing_dict"])}


def two_hosts_warn(case: Case, moment: Moment, difference: Difference) -> Any:
    """What crosses hosts: buffers with whom they keep for, agent groups."""
    layout, host = case.data["result"]["ok"], gfn_layouts.host_names(case.inputs)
    lists: Mapping[str, Sequence[Sequence[int]]] = {
        "agent group": layout["agent_group_rank_list"],
        "buffer": [
            [buffer, *layout["per_rank"][buffer]["assigned_training_ranks"]]
            for buffer in layout["buffer_ranks"]
        ],
    }
    return [
        kind for kind, found in lists.items() if any(len({host[rank] for rank in it}) > 1 for it in found)
    ]


def all_of_world(case: Case, moment: Moment, difference: Difference) -> Any:
    """The sum of ones of all ranks."""
    return Tensor.of("float32", [float(case.world)])


def nothing_or_value(case: Case, moment: Moment, difference: Difference) -> Any:
    """None of a barrier; of a collective what it gives."""
    return None if moment.method == "barrier" else by_reference(case, moment, difference)


def sent_by_other(case: Case, moment: Moment, difference: Difference) -> Any:
    """What a rank's partner sent: a tensor or a map of a specification, as that rank made it."""
    (built,) = [it for it in case.data["groups"] if it["as"] == "g"]
    (group,) = [ranks for ranks in built["group_ranks"] if moment.rank in ranks]
    source = moment.inputs["src"]
    place = group.index(moment.rank) - 1 if source is None else source
    (step,) = case.data["steps"][str(group[place])]
    return _inside(Arguments(group[place], {"g": place}).read(step["args"][0], "g"), difference.path)


def no_agents(case: Case, moment: Moment, difference: Difference) -> Any:
    """None of ranks that do not train; of others what was recorded."""
    rank = int(difference.path.split(".")[2])
    trains = rank in case.data["result"]["ok"]["training_ranks"]
    return difference.recorded if trains else None


def one_trainer(case: Case, moment: Moment, difference: Difference) -> Any:
    """The groups of a gang of one, which trains."""
    right: dict[str, Any] = {
        "ok.agent_group_id": 0,
        "ok.groups_torch.agent": [[0]],
        "ok.groups_torch.train": [0],
        "ok.env.0": "0",
        "ok.env.1": "1",
    }
    return right[difference.path]


def is_there(case: Case, moment: Moment, difference: Difference) -> Any:
    """That a queue is there."""
    return "queue"


def numbered_name(case: Case, moment: Moment, difference: Difference) -> Any:
    """The name with the number of the last list that the rank is in."""
    (built,) = [it for it in case.data["groups"] if it["as"] == moment.step]
    numbers = [number for number, ranks in enumerate(built["group_ranks"]) if moment.rank in ranks]
    return f"{difference.recorded}/{numbers[-1]}"


VALUES: dict[str, Value] = {
    "the name and a number": numbered_name,
    "whether it is there": is_there,
    "the collective in numpy, or nothing": nothing_or_value,
    "what the other sent": sent_by_other,
    "no agent group for ranks that do not train": no_agents,
    "the groups of one trainer": one_trainer,
    "the collective in numpy": by_reference,
    "what was sent": sent,
    "stacked": stacked,
    "its own tensor": of_one,
    "in binary64": in_double,
    "divided by the group's size": own_size_average,
    "the reduction": reduced,
    "the order that was given": reversed_order,
    "all rows": rows,
    "all tensors": uneven,
    "what the other of two sent": sent_in_ring,
    "the source's value": of_source,
    "the average of those who call": average_of_callers,
    "a list of the elements": set_as_list,
    "the report of those": report_of_those,
    "that groups cross hosts": two_hosts_warn,
    "the sum of ones": all_of_world,
}
