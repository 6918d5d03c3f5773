"""What the words of a scenario say together: names that exist, ranks that there are, and no contradictions."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path as FilePath
from typing import Any

from rankbridge._plan.dtypes import DTYPES
from rankbridge.harness.operations import DECLARED
from rankbridge.harness.points import Point, point_of
from rankbridge.harness.problems import Findings, Path, nearest

MOST_TENSOR_BYTES = 1 << 30
MOST_FILLERS = 1000
"""Refs with which a session is filled."""
_FAULTS_OF_PROCESSES = ("kill", "stop", "cont", "slow", "drop_link", "partition")
_STATES = ("arrived", "missing", "disagrees", "lost", "failed")


def check_consistency(data: Mapping[str, Any], found: Findings) -> None:
    """Notes what contradicts itself in a scenario whose every word is right."""
    gang = data["gang"]
    check = _Check(int(gang["size"]), data.get("groups", {}), gang.get("backend", ""), found)
    check.loads = "load" in gang
    check.most_refs = gang.get("limits", {}).get("max_session_refs", MOST_FILLERS + 1)
    check.scenario(data)


def check_step(
    step: Mapping[str, Any], groups: Mapping[str, Any], size: int, found: Findings, backend: str = ""
) -> None:
    """Notes what contradicts itself in a step alone; which tensors there are, the ranks know."""
    check = _Check(size, groups, backend, found)
    check.names = None
    check.step(step, ())


def check_load(load: str | Sequence[str], folder: FilePath, at: Path, found: Findings) -> None:
    """Notes files of modules that are not there. Modules that are named, the ranks look for."""
    for place, it in enumerate([load] if isinstance(load, str) else load):
        if it.endswith(".py") and not (folder / it).is_file():
            found.add(at if isinstance(load, str) else (*at, place), f"there is no file {folder / it}")


def ranks_of(fault: Mapping[str, Any]) -> list[int]:
    """Gives the ranks that a fault hits."""
    (hit,) = (it for word, it in fault.items() if word not in ("at", "after_ms"))
    flat = itertools.chain.from_iterable(hit) if "partition" in fault else hit
    return [int(rank) for rank in flat]


class _Check:
    """Goes through the steps in order, and knows the names so far."""

    def __init__(self, size: int, groups: Mapping[str, Any], backend: str, found: Findings) -> None:
        self.found = found
        self.size = size
        self.backend = backend
        self.groups = {"world": list(range(size)), **groups}
        # None: not known here.
        self.names: set[str] | None = set()
        self.begun: dict[str, bool] = {}
        self.loads = True
        self.most_refs = 0

    def scenario(self, data: Mapping[str, Any]) -> None:
        """Checks all of it."""
        self.names = set(data.get("tensors", {}))
        for name, ranks in data.get("groups", {}).items():
            at: Path = ("groups", name)
            if name == "world":
                self.found.add(at, "world is there already")
            if len(set(ranks)) < len(ranks):
                self.found.add(at, "a rank stands twice")
            self.ranks(ranks, at)
        for name, tensor in data.get("tensors", {}).items():
            self.tensor(tensor, ("tensors", name))
        for place, step in enumerate(data["step"]):
            self.step(step, ("step", place))

    def tensor(self, tensor: Mapping[str, Any], at: Path) -> None:
        """One tensor."""
        if "fill" in tensor and "values" in tensor:
            self.found.add((*at, "values"), "a tensor has `fill` or `values`, not both")
        sizes = [self.size if it == "$rank" else it for it in tensor["shape"]]
        if tensor["dtype"] != "$rank" and "$rank" not in (tensor["shape"],):
            nbytes = math.prod(sizes) * DTYPES[tensor["dtype"]].itemsize
            if nbytes > MOST_TENSOR_BYTES:
                self.found.add((*at, "shape"), f"{nbytes:,} bytes; at most {MOST_TENSOR_BYTES:,}")

    def step(self, step: Mapping[str, Any], at: Path) -> None:
        """One step."""
        members = self.members(step, at)
        if "call" in step:
            self.call(step, at)
            for rank, other in step.get("but", {}).items():
                self.ranks([int(rank)], (*at, "but"), members)
                words = DECLARED[step["call"]].of_one
                for word in other:
                    if word not in words:
                        text = f"unknown word `{word}` in other of {step['call']}{nearest(word, words)}"
                        self.found.add((*at, "but", rank, word), text)
                self.tensors(other, (*at, "but", rank))
            self.ranks(step.get("absent", ()), (*at, "absent"), members)
        else:
            for word in ("but", "absent", "group", "as"):
                if word in step:
                    self.found.add((*at, word), f"`{word}` goes with `call`")
        if step.get("each") == []:
            self.faults_alone(step, at)
        for place, one in enumerate(step.get("each", ())):
            inside = (*at, "each", place)
            self.ranks([one["rank"]], (*inside, "rank"), self.members(one, inside))
            self.call(one, inside)
        self.awaited(step, at)
        given = step.get("fault", ())
        for place, fault in enumerate([given] if isinstance(given, dict) else given):
            self.fault(fault, (*at, "fault") if isinstance(given, dict) else (*at, "fault", place))
        self.expected(step.get("expect", {}), (*at, "expect"))

    def faults_alone(self, step: Mapping[str, Any], at: Path) -> None:
        """A step without calls."""
        if "fault" not in step:
            self.found.add((*at, "each"), "a step without calls has a `fault`")
        faults = step.get("fault", {})
        for fault in faults if isinstance(faults, list) else [faults]:
            for word in ("cancel", "delay_ms", "slow", "quota", "hold", "change"):
                if word in fault:
                    self.found.add((*at, "fault"), f"`{word}` is done to calls, and here are none")

    def members(self, step: Mapping[str, Any], at: Path) -> list[int]:
        """Members of the group of a call."""
        group = step.get("group", "world")
        if group not in self.groups:
            self.found.add((*at, "group"), f"there is no group `{group}`{nearest(group, self.groups)}")
        return list(self.groups.get(group, ()))

    def call(self, call: Mapping[str, Any], at: Path) -> None:
        """What a call takes and gives."""
        self.tensors(call, at)
        if "as" in call and self.names is not None:
            if call["as"] in self.names:
                self.found.add((*at, "as"), f"there is a tensor `{call['as']}` already")
            self.names.add(call["as"])

    def tensors(self, call: Mapping[str, Any], at: Path) -> None:
        """Names of tensors that a call takes."""
        for word in ("of", "into"):
            if word in call:
                self.known(call[word], (*at, word))
        tensors = call.get("tensors", {})
        for key, name in tensors.items():
            self.known(name, (*at, "tensors", key))

    def known(self, name: str, at: Path) -> None:
        """A name of a tensor."""
        if self.names is not None and name not in self.names:
            self.found.add(at, f"there is no tensor `{name}` yet{nearest(name, self.names)}")

    def awaited(self, step: Mapping[str, Any], at: Path) -> None:
        """Steps that are not waited for, and those that wait for them."""
        if (name := step.get("await")) is not None:
            if not self.begun.pop(name, False):
                text = f"no step `{name}` before this one is still to be awaited"
                self.found.add((*at, "await"), text + nearest(name, self.begun))
        elif (name := step.get("name")) is not None:
            if name in self.begun:
                self.found.add((*at, "name"), f"there is a step `{name}` already")
            self.begun[name] = step.get("wait") is False

    def fault(self, fault: Mapping[str, Any], at: Path) -> None:
        """A fault that can be had."""
        for word in (*_FAULTS_OF_PROCESSES, "cancel", "delay_ms", "quota", "hold", "change"):
            if word in fault:
                self.ranks(ranks_of({word: fault[word]}), (*at, word))
            if word in fault and word in _FAULTS_OF_PROCESSES and self.backend == "fake":
                self.found.add((*at, word), "ranks on the backend fake share one process: take gloo")
        if "quota" in fault and ("at" in fault or "after_ms" in fault):
            self.found.add((*at, "quota"), "`quota` is there from the step's begin on")
        if "quota" in fault and self.most_refs > MOST_FILLERS:
            text = f"`quota` needs a gang with limits.max_session_refs of at most {MOST_FILLERS:,}"
            self.found.add((*at, "quota"), text)
        if "partition" in fault and set(fault["partition"][0]) & set(fault["partition"][1]):
            self.found.add((*at, "partition"), "a rank stands on both sides")
        if (point := point_of(fault.get("at", ""))) is not None:
            self.point(point, fault, (*at, "at"))
        elif word := next((it for it in ("hold", "change") if it in fault), ""):
            self.found.add((*at, word), f"`{word}` needs `at`: a collective of a function")
        if "after_ms" in fault and "at" in fault:
            self.found.add((*at, "at"), "a fault has `after_ms` or `at`, not both")
        drawn = fault.get("after_ms")
        if isinstance(drawn, list) and drawn[0] > drawn[1]:
            self.found.add((*at, "after_ms"), "the first is more than the second")

    def point(self, point: Point, fault: Mapping[str, Any], at: Path) -> None:
        """A collective of a function to which a rank can come."""
        if not self.loads:
            self.found.add(at, "a gang without `load` has no functions, and no collectives of theirs")
            return
        if self.backend in ("fake", "mpi"):
            self.found.add(
                at, f"functions on the backend {self.backend} have no torch.distributed: take gloo"
            )
        if point.group and point.group not in self.groups:
            self.found.add(at, f"there is no group `{point.group}`{nearest(point.group, self.groups)}")
        members = self.groups.get(point.group or "world", [])
        if point.rank is None and "partition" in fault:
            self.found.add(at, "`partition` needs a rank that comes there: `on rank N`")
        if point.rank is not None:
            self.ranks([point.rank], at, members)
            for word in ("hold", "change", "delay_ms"):
                if word in fault and list(map(int, fault[word])) != [point.rank]:
                    self.found.add(at, f"`{word}` is done to the rank that comes there")

    def expected(self, expect: Mapping[str, Any], at: Path) -> None:
        """Expectations that can be met."""
        if "ok" in expect and "error" in expect:
            self.found.add((*at, "error"), "a step has `ok` or `error`, not both")
        for word in ("unchanged", "kept"):
            for place, name in enumerate(expect.get(word, ())):
                self.known(name, (*at, word, place))
        for word in ("ok", "error", "indefinite", "names"):
            table = expect.get(word)
            for key, value in table.items() if isinstance(table, dict) else ():
                if key.isdecimal():
                    self.ranks([int(key)], (*at, word, key))
                    if word == "names":
                        self.states(value, (*at, word, key))
                elif word == "names":
                    self.states({key: value}, (*at, word))
        self.ranks(expect.get("replaced", ()), (*at, "replaced"))
        if "sometimes" in expect:
            self.expected(expect["sometimes"], (*at, "sometimes"))

    def states(self, named: Mapping[str, Any], at: Path) -> None:
        """States of ranks in errors."""
        for state, ranks in named.items():
            if state not in _STATES:
                text = f"there is no state `{state}`; there are {', '.join(_STATES)}"
                self.found.add((*at, state), text)
            self.ranks(ranks, (*at, state))

    def ranks(self, ranks: Iterable[int], at: Path, among: list[int] | None = None) -> None:
        """Ranks that there are."""
        for rank in ranks:
            if among is None and rank >= self.size:
                self.found.add(at, f"there is no rank {rank} in a gang of {self.size}")
            elif among is not None and rank not in among:
                self.found.add(at, f"rank {rank} is no member of the group")
