"""vLLM: `GroupCoordinator`, in two versions."""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

from tests.conformance import forms, launches, programs
from tests.conformance.clients.python import attempt, by_rank
from tests.conformance.moments import Answer, Moment
from tests.conformance.programs import Pace
from tests.conformance.recorded import Case
from tests.conformance.stage import HOPELESS_S, OF_ONE_RANK, Stage
from tests.conformance.systems.calls import Replay
from tests.conformance.systems.vllm_calls import (
    CALLS,
    MEETINGS,
    OF_COORDINATORS,
    ON_CUDA,
    Arguments,
    Context,
    bound,
    lacks,
)
from tests.conformance.systems.vllm_queues import Queues
from tests.conformance.values import Json, Tensor
from tests.conformance.vllm_grammar import Arguments as Specifications, read_result

from rankbridge import Group, GroupCoordinator, Ref

SETTINGS = ("__moe__", "__sleep__")
"""Steps that are not calls: what the records emulate of a model, and waiting."""


ELIDED = 1000
"""Longest text that was recorded as it is, where a case says that longer ones were not."""


def by_version(case: Case) -> list[Json]:
    """What every rank answered in each version, the newest last."""
    results = case.data["results"]
    return [results[version]["ranks"] for version in sorted(results, key=_number)]


def _number(version: str) -> list[int]:
    return [int(part) for part in version.replace("*", "0").split(".")]


class Player:
    """Replays the steps of one case."""

    def __init__(self, case: Case, stage: Stage, groups: dict[str, Sequence[Group]]) -> None:
        """Knows the groups of the case, by its names for them."""
        self.case = case
        self.stage = stage
        self.groups = groups
        self.queues = Queues(stage)
        places = {
            rank: {
                name: own.member(rank).rank_in_group for name in groups if (own := self.group_of(rank, name))
            }
            for rank in case.ranks
        }
        self.arguments = {rank: Specifications(rank, places[rank]) for rank in case.ranks}
        self.kept: dict[tuple[int, int], tuple[Tensor, Ref]] = {}
        self.sizes: list[int] | None = None
        self.pace = Pace(case.ranks)
        self._ending = threading.Lock()

    def group_of(self, rank: int, name: str) -> Group | None:
        """The group that a rank has of those of one name: the last, as in vLLM."""
        own = [group for group in self.groups[name] if rank in group]
        return own[-1] if own else None

    def given(self, rank: int, step: Json) -> Arguments:
        """What a rank gives to a step, by name."""
        group = step.get("g", next(iter(self.groups)))
        read = self.arguments[rank].read
        args = read(step.get("args", []), group)
        kwargs = {key: read(value, group) for key, value in step.get("kwargs", {}).items()}
        if "on" in step:
            return {"args": args, **kwargs}
        given = bound(step["m"], args, kwargs)
        return {**given, "sizes": self.sizes} if step["m"].startswith(("dispatch", "combine")) else given

    def context(self, rank: int, group: Group) -> Context:
        """Where a rank makes a call of a group."""
        return Context(group, rank, lambda tensor: self._put(rank, tensor))

    def _put(self, rank: int, tensor: Tensor) -> Ref:
        # One object of a case is one tensor on the rank. It is kept, so that no other object has its id.
        key = rank, id(tensor)
        if key not in self.kept:
            self.kept[key] = tensor, self.stage.put(rank, tensor)
        return self.kept[key][1]

    def step_of_all(self, step: Json, ranks: Sequence[int]) -> dict[int, tuple[Answer, Arguments]]:
        """Plays a step on several ranks at once."""
        method = step["m"]
        if method == "__moe__":
            self.sizes = step["tokens"]
            return {}
        if method == "__nodes__":
            return {rank: self._nodes(rank, step["g"]) for rank in ranks}
        if method == "__module__":
            return self._of_module(step, ranks)
        given = {rank: self.given(rank, step) for rank in ranks}
        if "on" in step:
            on_all = self.queues.on_all(method, step["on"], given)
            return {rank: (answer, given[rank]) for rank, answer in on_all.items()}
        answers: dict[int, Answer] = {}
        for group in self._groups_of(ranks, step["g"]):
            members = [rank for rank in group.ranks if rank in given]
            if "keep" in step:
                answers |= self.queues.create(method, group, given, step["keep"])
                continue
            # Where all send, or all receive, nobody is met.
            timeout = HOPELESS_S if method in OF_ONE_RANK else None
            answers |= self.call(method, group, {rank: given[rank] for rank in members}, timeout)
        return {rank: (self._with_after(answers[rank], rank, given[rank]), given[rank]) for rank in ranks}

    def call(
        self, method: str, group: Group, given: Mapping[int, Arguments], timeout: float | None
    ) -> dict[int, Answer]:
        """Makes a call of a group, or a part of it, with what each member gives."""
        if method in OF_COORDINATORS:
            return self._call_of_coordinator(method, group, given)
        match method:
            case "destroy":
                # Of members of one group each ends it, the first for all.
                with self._ending:
                    ended = attempt(lambda: self.stage.gang.destroy_groups([group]))
                return dict.fromkeys(given, {"ok": None} if "ok" in ended else ended)
            case "first_rank" | "next_rank":
                return {rank: {"ok": getattr(group.member(rank), method)} for rank in given}
            case "prepare_communication_buffer_for_model":
                return self._prepare(group, given)
            case "graph_capture":
                return self.queues.capture(group, given)
        if any(lacks(method, arguments) for arguments in given.values()):
            return self._call_that_lacks(method, group, given)
        name, make = (ON_CUDA if "cuda_path" in self.case.data else {}).get(method, CALLS[method])
        made = {rank: make(self.context(rank, group), arguments) for rank, arguments in given.items()}
        answers = self.stage.together(name, made, group, timeout)
        if name.startswith("recv"):
            answers = {rank: _received(answer) for rank, answer in answers.items()}
        return answers

    def _of_module(self, step: Json, ranks: Sequence[int]) -> dict[int, tuple[Answer, Arguments]]:
        """Calls a function of vLLM's module, which takes a group by its name, and leaves its tensor as it is."""
        given: dict[int, Arguments] = {}
        for rank in ranks:
            tensor, *dim_and_size, name = self.arguments[rank].read(step["args"], next(iter(self.groups)))
            given[rank] = {"input_": tensor, **dict(zip(("dim",), dim_and_size, strict=False))}
        options = {"dim": dim_and_size[0]} if dim_and_size else {}
        refs = [self._put(rank, arguments["input_"]) for rank, arguments in given.items()]
        answers = self.stage.client.call(step["fn"], (refs,), options, f"{self.stage.name}/{name}", ranks)
        return {
            rank: (self._with_after(self.stage.fetched(answers[rank]), rank, given[rank]), given[rank])
            for rank in ranks
        }

    def _call_that_lacks(
        self, method: str, group: Group, given: Mapping[int, Arguments]
    ) -> dict[int, Answer]:
        """Makes a call without a required argument, of the class that has vLLM's signatures.

        What a rank's own methods require differs: they receive from whoever sends, for one.
        """
        call = getattr(GroupCoordinator(self.stage.gang, [group]), method)
        names = dict.fromkeys(name for arguments in given.values() for name in arguments)
        by_rank = {name: [given.get(rank, {}).get(name) for rank in self.case.ranks] for name in names}
        return dict.fromkeys(given, attempt(lambda: call(**by_rank)))

    def _call_of_coordinator(
        self, method: str, group: Group, given: Mapping[int, Arguments]
    ) -> dict[int, Answer]:
        made = [CALLS[method][1](self.context(rank, group), given[rank]) for rank in group.ranks]
        columns = [self._by_rank(group, column) for column in zip(*(args for args, _ in made), strict=True)]
        (_, own), *_ = made
        options = {name: it for name, it in own.items() if name != "sizes"}
        sizes = None if own["sizes"] is None else self._by_rank(group, own["sizes"])
        coordinator = GroupCoordinator(self.stage.gang, [group])
        if method == "all_gatherv":
            answer = attempt(lambda: coordinator.all_gatherv(columns[0], sizes=sizes, **options))
        else:
            hidden, logits, extra = columns
            answer = attempt(lambda: coordinator.dispatch(hidden, logits, False, extra, sizes=sizes))
        if "error" in answer:
            return dict.fromkeys(group.ranks, answer)
        values = {rank: answer["ok"][rank] for rank in group.ranks}
        if method != "all_gatherv":
            values = {rank: _dispatched(value, given[rank]) for rank, value in values.items()}
        return {rank: self.stage.fetched({"ok": value}) for rank, value in values.items()}

    def _by_rank(self, group: Group, values: Sequence[Any]) -> list[Any]:
        return by_rank(self.stage.gang, group, values)

    def _prepare(self, group: Group, given: Mapping[int, Arguments]) -> dict[int, Answer]:
        # A model without parameters: there is nothing to prepare, and nothing comes of it.
        assert all(arguments["model"] is None for arguments in given.values())
        coordinator = GroupCoordinator(self.stage.gang, [group])
        answer = attempt(lambda: coordinator.prepare_communication_buffer_for_model([]))
        if "error" in answer:
            return dict.fromkeys(given, answer)
        return {rank: {"ok": answer["ok"][rank] or None} for rank in group.ranks}

    def _nodes(self, rank: int, name: str) -> tuple[Answer, Arguments]:
        group = self.group_of(rank, name)
        assert group is not None
        return {"ok": forms.vllm_nodes(self.stage.gang.group(group.name))}, {}

    def _groups_of(self, ranks: Sequence[int], name: str) -> list[Group]:
        found = {own.name: own for rank in ranks if (own := self.group_of(rank, name)) is not None}
        return list(found.values())

    def _with_after(self, answer: Answer, rank: int, given: Arguments) -> Answer:
        """Adds to an answer which tensors of the arguments have changed, by their place."""
        if "ok" not in answer:
            return answer
        after = {}
        for place, tensor in enumerate(given.values()):
            if isinstance(tensor, Tensor) and (rank, id(tensor)) in self.kept:
                now = self.stage.client.get(self.kept[rank, id(tensor)][1])
                if not now.close_to(tensor):
                    after[str(place)] = now
        return {**answer, "args_after": after}

    def program(self, rank: int, steps: Sequence[Json]) -> list[tuple[Answer, Arguments]]:
        """Plays a rank's own steps, one after the other."""
        played: list[tuple[Answer, Arguments]] = []
        try:
            for place, step in enumerate(steps):
                recorded = [ranks[rank]["steps"][place] for ranks in by_version(self.case)]
                played.append(self._step_of_one(rank, step, recorded))
        finally:
            self.pace.ended(rank)
        return played

    def _step_of_one(self, rank: int, step: Json, recorded: Sequence[Answer]) -> tuple[Answer, Arguments]:
        timeout = self._patience(rank, recorded[-1])
        if step["m"] == "__sleep__":
            self.pace.wait_for_others(rank)
            return {"ok": None}, {}
        if "on" in step:
            given = self.given(rank, step)
            ended = not any("TimeoutError" in str(it.get("error")) for it in recorded)
            return self.queues.on_one(rank, step["m"], step["on"], given, ended), given
        if step["m"] == "__ctor__":
            with self.pace.meeting(rank):
                return self._make_again(rank, step), {}
        given = self.given(rank, step)
        group = self.group_of(rank, step["g"])
        assert group is not None
        if step["m"].startswith("isend") or step["m"].startswith("irecv"):
            return self._begun(rank, group, step["m"], given), given
        if step["m"] == "create_mq_broadcaster":
            with self.pace.meeting(rank):
                return self.queues.create_on(rank, group, given, step["keep"]), given
        # Who waits in vain is not met.
        meets = step["m"] in MEETINGS and timeout is None
        with self.pace.meeting(rank) if meets else nullcontext():
            answer = self.call(step["m"], group, {rank: given}, timeout)[rank]
        return self._with_after(answer, rank, given), given

    def _make_again(self, rank: int, step: Json) -> Answer:
        """Makes one rank's part of a group in the middle of a case, which has one list of ranks."""
        (ranks,) = step["group_ranks"]
        name = f"{step['group_name']}:0"
        made = attempt(lambda: self.stage.gang[rank].new_group(f"{self.stage.name}/{name}", ranks))
        if "error" in made:
            return made
        self.groups[step["as"]] = self.stage.made([made["ok"]])
        self.arguments[rank].places[step["as"]] = made["ok"].member(rank).rank_in_group
        return {"ok": made["ok"].name.removeprefix(f"{self.stage.name}/")}

    def _begun(self, rank: int, group: Group, method: str, given: Arguments) -> Answer:
        """What is begun and then waited for; tensors of a map move as one operation."""
        _, make = CALLS[method]
        args, options = make(self.context(rank, group), given)
        begin = getattr(self.stage.gang[rank], method)
        answer = attempt(lambda: begin(*args, group=group, **options).wait())
        if "ok" in answer and method.startswith("irecv"):
            return {"ok": {"dict": self.stage.fetched(_received(answer))["ok"]}}
        return {"ok": {}} if "ok" in answer else answer

    def _patience(self, rank: int, recorded: Answer) -> float | None:
        """Longest time of a call that waits, if its partner never came when it was recorded."""
        steps = self.case.data["steps"]
        others = [steps[str(other)] for other in self.case.ranks if other != rank]
        nobody = not any(others) and "hang" in recorded
        timed_out = "Timed out waiting" in recorded.get("error", {}).get("message", "")
        return HOPELESS_S if nobody or timed_out else None


def _dispatched(gathered: tuple[Any, ...], given: Arguments) -> tuple[Any, ...]:
    """What a version of `dispatch` gives: further tensors by themselves, or as a list if they came in one."""
    hidden, logits, *extra = gathered
    more = extra[0] if extra else []
    tensors = len(given["tensors"]) - 2
    listed = [more[tensors:]] if given["extra_tensors"] else []
    return (hidden, logits, *more[:tensors], *listed)


def _received(answer: Answer) -> Answer:
    """Of a value and who sent it, the value."""
    return {"ok": answer["ok"][0]} if "ok" in answer else answer


def names_of(case: Case) -> dict[str, list[str]]:
    """Names for the groups of each name of a case: vLLM's, made one group's each where several would have it."""
    counts: dict[str, int] = {}
    found = {}
    for built in case.data["groups"]:
        name = built.get("group_name", "anonymous")
        number = counts.get(name, 0)
        counts[name] = number + 1
        lists = built["group_ranks"]
        one = len(lists) == 1
        found[built["as"]] = [
            f"{name}:{number}" + ("" if one else f"/{place}") for place in range(len(lists))
        ]
    return found


def made(case: Case, stage: Stage) -> tuple[dict[str, Answer], dict[str, Sequence[Group]]]:
    """Makes the groups of a case: what came of each of its names, and the groups."""
    answers: dict[str, Answer] = {}
    groups: dict[str, Sequence[Group]] = {}
    for built in case.data["groups"]:
        name = built["as"]
        if "torch_distributed_backend" in built:
            answers[name] = launches.start_on(built["torch_distributed_backend"])
            continue
        if "local_rank" in built:
            # Here a rank is told it by its launcher.
            said = launches.launched(_environment(case, built["local_rank"]))
            if "error" in said:
                answers[name] = said
                continue
        lists = dict(zip(names_of(case)[name], built["group_ranks"], strict=True))
        answers[name] = stage.new_groups(lists)
        if "ok" in answers[name]:
            groups[name] = [stage.group(each) for each in lists]
    return answers, groups


def _environment(case: Case, local_rank: int) -> dict[str, str]:
    size = str(case.world)
    return {"RANK": "0", "WORLD_SIZE": size, "LOCAL_WORLD_SIZE": size, "LOCAL_RANK": str(local_rank)}


def replay(case: Case, stage: Stage) -> Iterator[Moment]:
    """Makes the groups, compares what each member is, and plays the steps."""
    versions = by_version(case)
    answers, groups = made(case, stage)
    player = Player(case, stage, groups)
    for name, answer in answers.items():
        for rank in case.ranks:
            group = player.group_of(rank, name) if name in groups else None
            recorded = [ranks[rank]["ctor"][name] for ranks in versions]
            if group is None and name in groups:
                answer = attempt(functools.partial(groups[name][0].member, rank))
            elif group is not None:
                answer = {"ok": _properties(stage, group, rank)}
                if not case.name.startswith(("props/", "ctor/")):
                    # Of a case that is about something else, what the bridge tells as well.
                    recorded = [_subset(one, answer["ok"]) for one in recorded]
            yield _moment(case, rank, name, "__init__", recorded, answer)
    if len(groups) < len(answers):
        return
    steps = case.data["steps"]
    if "*" in steps:
        steps = steps["*"]
    if isinstance(steps, list):
        for place, step in enumerate(steps):
            if len(versions[-1][0]["steps"]) <= place:
                # The processes had been killed by then.
                return
            yield from _of_step(player, str(place), step, player.step_of_all(step, case.ranks))
        return
    own = {rank: steps[str(rank)] for rank in case.ranks}
    played = programs.run({rank: _program(player, rank, own[rank]) for rank in case.ranks})
    for rank in case.ranks:
        for place, (answer, given) in enumerate(played[rank]):
            if own[rank][place]["m"] not in SETTINGS:
                method = own[rank][place]["m"]
                recorded = [ranks[rank]["steps"][place] for ranks in versions]
                yield _moment(case, rank, str(place), method, recorded, answer, given)


def _properties(stage: Stage, group: Group, rank: int) -> Json:
    return {
        **forms.vllm_member(group, rank),
        "unique_name": group.name.removeprefix(f"{stage.name}/"),
        "device": stage.gang[rank].default_device(),
    }


def _subset(recorded: Answer, known: Mapping[str, Any]) -> Answer:
    if "ok" not in recorded:
        return recorded
    return {"ok": {key: value for key, value in recorded["ok"].items() if key in known}}


def _program(player: Player, rank: int, steps: Sequence[Json]) -> Any:
    return lambda: player.program(rank, steps)


def _of_step(
    player: Player, place: str, step: Json, played: Mapping[int, tuple[Answer, Arguments]]
) -> Iterator[Moment]:
    versions = by_version(player.case)
    for rank, (answer, given) in played.items():
        if "elide" in player.case.data and isinstance(answer.get("ok"), str) and len(answer["ok"]) > ELIDED:
            # Of a long text only its length was recorded.
            answer = {"ok": {"str_len": len(answer["ok"])}}
        recorded = [ranks[rank]["steps"][int(place)] for ranks in versions]
        group = player.group_of(rank, step["g"]) if "g" in step else None
        members = [] if group is None else [played[other][1] for other in group.ranks]
        yield _moment(player.case, rank, place, step["m"], recorded, answer, given, group, members)


def _moment(
    case: Case,
    rank: int,
    step: str,
    method: str,
    recorded: Sequence[Answer],
    answer: Answer,
    given: Arguments | None = None,
    group: Group | None = None,
    members: Sequence[Arguments] = (),
) -> Moment:
    return Moment(
        step=step,
        rank=rank,
        recorded=[_read(one) for one in recorded],
        answer=answer,
        method=method,
        inputs=given or {},
        arguments=members,
        place=0 if group is None else group.member(rank).rank_in_group,
    )


def _read(recorded: Json) -> Answer:
    """A recorded answer; which Python object was returned, and how long it took, are not of the bridge."""
    if "ok" not in recorded:
        return dict(recorded)
    after = recorded.get("args_after", {})
    changed = {place: read_result(value) for place, value in after.items()}
    # What is given by value is not changed: only a tensor on its rank can be.
    tensors = {place: value for place, value in changed.items() if isinstance(value, Tensor)}
    return {"ok": read_result(recorded["ok"]), "args_after": tensors}


REPLAYS: dict[str, dict[str, Replay]] = {"vllm": {"*": replay}}
