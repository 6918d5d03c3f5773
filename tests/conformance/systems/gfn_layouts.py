"""torchgfn: who trains, who keeps a buffer, who coordinates."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from tests.conformance import checks, forms, launches
from tests.conformance.clients.python import attempt
from tests.conformance.compare import ABSENT
from tests.conformance.moments import Answer, Moment
from tests.conformance.recorded import Case
from tests.conformance.stage import Stage
from tests.conformance.systems.calls import Replay, one_each
from tests.conformance.values import Json

from rankbridge import Group, Layout
from rankbridge._plan.layout import split_evenly

NUMBERS = {
    "buffers": "num_remote_buffers",
    "agent_groups": "num_agent_groups",
    "coordinators": "num_coordinators",
}


def host_names(inputs: Json) -> list[str]:
    """The host of each rank, of equally many on each of some hosts."""
    if "hostnames" in inputs:
        return list(inputs["hostnames"])
    there = split_evenly(range(inputs["world_size"]), inputs["num_nodes"])
    return [f"host{number}" for number, ranks in enumerate(there) for _ in ranks]


def planned_layout(case: Case) -> Iterator[Moment]:
    """A layout by hosts, or the arithmetic of one. No rank is asked."""
    inputs, recorded = case.data["inputs"], case.data["result"]
    if case.name == "_split_ceil_floor":
        parts = split_evenly(range(inputs["total"]), inputs["n"])
        yield _whole(case, recorded, {"ok": [len(part) for part in parts]})
        return
    if case.name == "_first_env":
        yield _whole(case, recorded, {"ok": ABSENT})
        return
    numbers = {ours: inputs[theirs] for ours, theirs in NUMBERS.items()}
    answer = attempt(lambda: Layout.by_host(host_names(inputs), **numbers))
    if "error" in answer or "error" in recorded:
        yield _whole(case, recorded, answer)
        return
    layout: Layout = answer["ok"]
    ours = forms.gfn_layout(layout)
    known = {key: value for key, value in recorded["ok"].items() if key in ours}
    known["per_rank"] = [
        {key: value for key, value in one.items() if key in ours["per_rank"][0]} for one in known["per_rank"]
    ]
    yield _whole(case, {"ok": known}, {"ok": ours})
    kinds = sorted({"buffer" if it.startswith("buffer") else "agent group" for it in layout.warnings})
    warned = sorted({forms.gfn_warning(it) for it in case.data["warnings"]})
    yield replace(_whole(case, {"ok": warned}, {"ok": kinds}), step="warnings", method="warnings")


def _whole(case: Case, recorded: Answer, answer: Answer) -> Moment:
    return Moment(
        step="0",
        rank=0,
        recorded=[recorded],
        answer=answer,
        method=case.name,
        inputs=case.data["inputs"],
    )


def layout(case: Case, stage: Stage) -> Iterator[Moment]:
    """A layout by hosts that are not there: nothing is made of it on the gang."""
    yield from planned_layout(case)


def planned_context(case: Case) -> Iterator[Moment]:
    """What each rank is, as far as a description of the layout tells. No rank is asked."""
    version = case.suite.removeprefix("gfn_context_")
    answer = attempt(lambda: forms.gfn_plan(version, case))
    if "error" in answer:
        yield from one_each(case, dict.fromkeys(case.ranks, answer))
        return

    def seen_by(rank: int) -> Callable[[Group], Json]:
        return lambda group: list(group.ranks) if rank in group else "non_member"

    yield from _context(case, answer["ok"], seen_by)


def context(case: Case, stage: Stage) -> Iterator[Moment]:
    """The groups of a layout are made, data goes round in them, and each rank is what was recorded."""
    version = case.suite.removeprefix("gfn_context_")
    answer = attempt(lambda: forms.gfn_plan(version, case))
    if "error" in answer:
        yield from one_each(case, dict.fromkeys(case.ranks, answer))
        return
    made = stage.gang.new_layout(replace(answer["ok"], name=stage.name))
    stage.made(made.groups())
    checks.assert_groups_work(stage.gang, made.groups())

    def seen_by(rank: int) -> Callable[[Group], Json]:
        own = checks.own_groups(stage.gang, rank)
        return lambda group: list(own[group.name].ranks) if group.name in own else "non_member"

    yield from _context(case, made, seen_by)


def _context(
    case: Case, layout: Layout, seen_by: Callable[[int], Callable[[Group], Json]]
) -> Iterator[Moment]:
    answers: dict[int, Answer] = {}
    for rank, recorded in enumerate(case.answers):
        seen = seen_by(rank)
        ours = {
            **forms.gfn_rank(layout, rank),
            "groups_torch": forms.gfn_groups(layout, seen),
            "env": [str(rank), str(len(layout))],
        }
        answer = {key: value for key, value in ours.items() if key in recorded}
        if "mpi4py" in recorded:
            answer["mpi4py"] = {key: ours[key] for key in recorded["mpi4py"]}
            groups = forms.gfn_groups(layout, seen)
            answer["groups_mpi"] = {key: _none(value) for key, value in groups.items()}
        answers[rank] = {"ok": answer}
    yield from one_each(case, answers)


def _none(seen: Json) -> Json:
    """On MPI, a rank has None where it is no member."""
    if isinstance(seen, list) and not all(isinstance(it, int) for it in seen):
        return [_none(it) for it in seen]
    return None if seen == "non_member" else seen


def backend(case: Case, stage: Stage) -> Iterator[Moment]:
    """What moves the data is said when ranks are started."""
    wanted = case.inputs["dist_backend"]
    yield from one_each(case, dict.fromkeys(case.ranks, launches.start_on(wanted)))


CONTEXTS: dict[str, Replay] = {"initialize_distributed_compute": context, "*backend*": backend}

REPLAYS: dict[str, dict[str, Replay]] = {
    "gfn_layout": {"*": layout},
    "gfn_context_seed": CONTEXTS,
    "gfn_context_head": CONTEXTS,
}
