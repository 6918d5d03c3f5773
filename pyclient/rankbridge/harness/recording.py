"""A session of the driver, written as a scenario."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rankbridge import RankBridgeError, Tensor
from rankbridge.harness.cases import faults_in
from rankbridge.harness.gangs import load_paths
from rankbridge.harness.judging import Happened, judged
from rankbridge.harness.wire import as_json, described_tensor
from rankbridge.harness.writing import write

_NOT_OF_A_STEP = ("id", "do")
_NOT_OF_A_GANG = ("id", "do", "protocol", "folder", "timeout_ms", "seed", "points")


class Recording:
    """What one gang was asked for, and what came of it. A step that others began beside is awaited later.

    Args:
        opened: The request that opened the gang.
        path: Where the scenario is written.
    """

    def __init__(self, opened: Mapping[str, Any], path: Path) -> None:
        """Has no step yet."""
        self._path = path
        gang = {word: it for word, it in opened.items() if word not in _NOT_OF_A_GANG}
        gang.setdefault("backend", "gloo")
        if "load" in gang:
            paths = load_paths(gang["load"], Path.cwd())
            folder = path.absolute().parent
            gang["load"] = [os.path.relpath(it, folder) if it.endswith(".py") else it for it in paths]
        self._data: dict[str, Any] = {"format": 1, "name": "a session of the driver", "gang": gang}
        self._data |= {word: opened[word] for word in ("timeout_ms", "seed") if word in opened}
        self._tensors: dict[str, dict[str, Any]] = {}
        self._groups: dict[str, Sequence[int]] = {}
        self._steps: list[dict[str, Any]] = []
        self._going: dict[Any, tuple[dict[str, Any], float]] = {}
        self._comments: list[str] = []
        self._lock = threading.Lock()

    def groups(self, groups: Mapping[str, Sequence[int]]) -> None:
        """Takes groups that were made."""
        self._groups |= groups

    def created(self, request: Mapping[str, Any]) -> None:
        """Takes a tensor that was made on every rank."""
        described = {word: it for word, it in request.items() if word not in (*_NOT_OF_A_STEP, "name")}
        self._tensor(request["name"], described)

    def put(self, request: Mapping[str, Any], tensor: Tensor) -> None:
        """Takes a tensor that was brought to a rank, or to every rank."""
        if "base64" not in request and "file" not in request:
            self.created({word: it for word, it in request.items() if word != "rank"})
        else:
            described = described_tensor(tensor)
            if "values" not in described:
                self._say(f"there is no word for the elements of {request['name']}: here they are 0")
            self._tensor(request["name"], described)
        if "rank" in request:
            self._say(f"{request['name']} was brought to rank {request['rank']}; here every rank has it")

    def begun(self, request: Mapping[str, Any]) -> None:
        """Takes calls that begin."""
        step = {word: it for word, it in request.items() if word not in _NOT_OF_A_STEP}
        with self._lock:
            for going, _ in self._going.values():
                if "each" in going and "wait" not in going:
                    self._comments.append(
                        f"the calls of {going['name']} began one after another, not at once"
                    )
                going["wait"] = False
            self._steps.append({"name": f"request {request['id']}", **step})
            self._going[request["id"]] = self._steps[-1], time.monotonic()

    def ended(self, identity: Any, happened: Happened) -> None:
        """Takes what came of calls, before what they have changed is forgotten."""
        expect = _expect(happened)
        with self._lock:
            step, _ = self._going.pop(identity)
            if expect:
                step.setdefault("expect", expect)
            if step.get("wait") is False and step is not self._steps[-1]:
                self._steps.append({"await": step["name"]})

    def fault(self, fault: Mapping[str, Any]) -> None:
        """Takes a fault: of the calls that go on, or of none."""
        with self._lock:
            if not self._going:
                self._steps.append({"each": [], "fault": dict(fault)})
                return
            step, began = list(self._going.values())[-1]
            late = {} if "at" in fault else {"after_ms": round((time.monotonic() - began) * 1000)}
            _add(step, {**fault, **late})

    def cancelled(self, request: Mapping[str, Any], ranks: Sequence[int]) -> None:
        """Takes calls that were withdrawn."""
        with self._lock:
            if request["of"] in self._going and ranks:
                step, began = self._going[request["of"]]
                late = round((time.monotonic() - began) * 1000)
                _add(step, {"cancel": list(ranks), "after_ms": late})

    def formed(self, request: Mapping[str, Any], happened: Happened) -> None:
        """Takes a forming."""
        error = happened.error
        expect = {"replaced": list(happened.replaced)} if error is None else {"error": str(error.code)}
        step = {word: it for word, it in request.items() if word not in _NOT_OF_A_STEP}
        with self._lock:
            self._steps.append({"form": True, "expect": expect, **step})

    def write(self) -> None:
        """Writes the scenario, if anything was called.

        Raises:
            OSError, NoWord: It cannot be written.
        """
        awaited = {it.get("await") for it in self._steps}
        for step in self._steps:
            if step.get("name") not in awaited:
                step.pop("name", None)
        if self._steps:
            tables = {"groups": self._groups, "tensors": self._tensors}
            given = {word: it for word, it in tables.items() if it}
            write(self._path, {**self._data, **given, "step": self._steps}, self._comments)

    def _tensor(self, name: str, described: dict[str, Any]) -> None:
        if described.get("fill") == "random":
            described["fill"] = {"seed": self._data.get("seed", 0)}
        if self._tensors.setdefault(name, described) != described:
            self._say(f"{name} was made again, and was another then: here it is as it was first")

    def _say(self, text: str) -> None:
        if text not in self._comments:
            self._comments.append(text)


def _add(step: dict[str, Any], fault: dict[str, Any]) -> None:
    faults = [*faults_in(step), fault]
    step["fault"] = fault if len(faults) == 1 else faults


def _expect(happened: Happened) -> dict[str, Any]:
    """Gives the expectation that what came of calls meets: their errors, or what they gave."""
    if any(error is not None for _, error in happened.errors()):
        return _errors(happened)
    try:
        if not judged(happened, {"ok": True}):
            return {"ok": True}
    except RankBridgeError:
        # A rank is gone, with what it was given.
        return {}
    plain = {str(it.rank): as_json(it.outcome.value) for it in happened.calls if it.outcome}
    alone = len(plain) == len(happened.calls)
    if alone and not any(_has_tensor(it.outcome.value) for it in happened.calls if it.outcome):
        given = {rank: it for rank, it in plain.items() if it is not None}
        return {"ok": given} if given else {}
    return {}


def _errors(happened: Happened) -> dict[str, Any]:
    codes: dict[str, list[str]] = {}
    names: dict[str, dict[str, list[int]]] = {}
    for rank, error in happened.errors():
        codes.setdefault(str(rank), []).append("OK" if error is None else str(error.code))
        for state, ranks in _named(error).items():
            names.setdefault(str(rank), {})[state] = ranks
    either = {rank: it[0] if len(it) == 1 else sorted(set(it)) for rank, it in codes.items()}
    expect: dict[str, Any] = {"error": either}
    return expect | ({"names": names} if names and all(len(it) == 1 for it in codes.values()) else {})


def _named(error: RankBridgeError | None) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for it in error.ranks if error is not None else ():
        if it.state in ("missing", "lost", "disagrees"):
            found.setdefault(it.state, []).append(it.rank)
    return found


def _has_tensor(value: Any) -> bool:
    match value:
        case list() | tuple():
            return any(map(_has_tensor, value))
        case dict():
            return any(map(_has_tensor, value.values()))
    return not isinstance(value, (bool, int, float, str, type(None)))
