"""A round of chaos as a scenario, for `rankbridge test` and its --shrink."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.chaos.faults.calls import Cancel, Mismatch, Missing
from tests.chaos.faults.fault import LONGEST_DELAY_S, LOST
from tests.chaos.faults.limits import FullSession
from tests.chaos.faults.ranks import Blink, CloseLink, Kill, Stop
from tests.chaos.operations import Operation
from tests.chaos.pending import MAX_PENDING
from tests.chaos.plan import Round
from tests.chaos.scene import CALL_TIMEOUT_S, PAIR
from tests.chaos.stage import MAX_SESSION_REFS

from rankbridge.harness.writing import write

_GONE = ["CANCELLED", "OK", "UNAVAILABLE"]
# Longer than in chaos: who does not come is named alone when all others have come by then.
_MISSING_MS = 3_000
Step = dict[str, Any]


def write_round(it: Round, folder: Path, backend: str = "gloo") -> Path:
    """Writes a round as a scenario; returns the file. What has no word in scenarios stands in its comment."""
    path = folder / f"round-{it.number}.toml"
    folder.mkdir(parents=True, exist_ok=True)
    data, lacking = as_scenario(it, backend)
    write(path, data, [str(it), *lacking])
    return path


def as_scenario(it: Round, backend: str) -> tuple[dict[str, Any], list[str]]:
    """Gives a round as a scenario, and what has no word there."""
    groups = {"world": list(range(it.size)), PAIR: [it.size - 1, 0]}
    tensors: dict[str, Any] = {}
    steps = [_step(operation, group, tensors) | {"expect": {"ok": True}} for operation, group in it.good]
    steps += _fault_steps(it, groups, tensors)
    steps.append({"call": "barrier", "expect": {"ok": True}})
    lacking = ["Elements are others than chaos has: there they have a period."]
    if it.client != "python":
        lacking.append(
            f"There is no word for who calls: {', '.join(it.callers)}; here it is the Python client."
        )
    if type(it.fault) not in _STEPS:
        lacking.append(f"There is no word for the fault {it.fault.kind}: here nothing goes wrong.")
    data = {
        "format": 1,
        "name": str(it),
        "timeout_ms": round(CALL_TIMEOUT_S * 1000),
        "groups": {PAIR: groups[PAIR]},
        "gang": {
            "size": it.size,
            "backend": backend,
            "limits": {"max_pending": MAX_PENDING, "max_session_refs": MAX_SESSION_REFS},
        },
        "tensors": tensors,
        "step": steps,
    }
    return data, lacking


def _step(operation: Operation, group: str, tensors: dict[str, Any]) -> Step:
    name = f"tensor{len(tensors)}"
    shape = [operation.elements]
    tensors[name] = {"dtype": operation.dtype, "shape": shape, "fill": {"seed": operation.salt}}
    return {"call": operation.kind, "of": name, "group": group, **operation.options}


def _fault_steps(it: Round, groups: dict[str, list[int]], tensors: dict[str, Any]) -> list[Step]:
    step = _step(it.operation, it.group, tensors)
    make = _STEPS.get(type(it.fault))
    if make is None:
        return [step | {"expect": {"ok": True}}]
    steps: list[Step] = make(it, step, groups[it.group], tensors)
    return steps


def _struck(it: Round, step: Step, expect: Step, *faults: Step) -> list[Step]:
    """The step, then the faults, whether it has ended or not, then how it may have ended."""
    alone = {"each": [], "fault": list(faults)}
    return [step | {"name": "hit", "wait": False}, alone, {"await": "hit", "expect": expect}]


def _with(it: Round, word: str, more_ms: float = 0.0) -> Step:
    return {word: [it.fault.victim], "after_ms": round(it.fault.delay * 1000 + more_ms)}


def _without_victim(it: Round, step: Step, members: list[int]) -> Step:
    return step | ({"absent": [it.fault.victim]} if it.fault.victim in members else {})


def _errors(it: Round, step: Step, members: list[int], own: list[str]) -> Step:
    """The errors that members may have when the victim is lost."""
    others = sorted([*map(str, LOST), *([] if "absent" in step else ["OK"])])
    called = [rank for rank in members if rank not in step.get("absent", ())]
    return {"error": {str(rank): own if rank == it.fault.victim else others for rank in called}}


def _kill(it: Round, step: Step, members: list[int], tensors: dict[str, Any]) -> list[Step]:
    step = _without_victim(it, step, members) if it.fault.absent else step
    expect = _errors(it, step, members, _GONE)
    formed = {"form": True, "expect": {"replaced": [it.fault.victim]}}
    return [*_struck(it, step, expect, _with(it, "kill")), formed]


def _stop(it: Round, step: Step, members: list[int], tensors: dict[str, Any]) -> list[Step]:
    if it.fault.victim not in members:
        step, members = {"call": "all_reduce", "of": step["of"], "op": "sum"}, list(range(it.size))
    step = _without_victim(it, step, members)
    hit = _struck(it, step, _errors(it, step, members, []), _with(it, "stop"))
    return [*hit, {"each": [], "fault": {"cont": [it.fault.victim]}}, {"form": True}]


def _blink(it: Round, step: Step, members: list[int], tensors: dict[str, Any]) -> list[Step]:
    expect = _errors(it, step, members, sorted(["OK", *map(str, LOST)]))
    long = Blink.LONGEST_S * it.fault.delay / LONGEST_DELAY_S * 1000
    return [*_struck(it, step, expect, _with(it, "stop"), _with(it, "cont", long)), {"form": True}]


def _close_link(it: Round, step: Step, members: list[int], tensors: dict[str, Any]) -> list[Step]:
    step = _without_victim(it, step, members) if it.fault.absent else step
    expect = _errors(it, step, members, sorted(["OK", *map(str, LOST)]))
    formed = {"form": True, "expect": {"replaced": []}}
    return [*_struck(it, step, expect, _with(it, "drop_link")), formed]


def _mismatch(it: Round, step: Step, members: list[int], tensors: dict[str, Any]) -> list[Step]:
    odd = members[it.fault.victim % len(members)]
    tensors["odd"] = tensors[step["of"]] | {"shape": [it.operation.elements + 1]}
    expect = {"error": "MISMATCH", "indefinite": False, "unchanged": [step["of"]]}
    return [step | {"but": {str(odd): {"of": "odd"}}, "expect": expect}]


def _missing(it: Round, step: Step, members: list[int], tensors: dict[str, Any]) -> list[Step]:
    absent = members[it.fault.victim % len(members)]
    expect = {"error": "PEER_MISSING", "names": {"missing": [absent]}, "indefinite": False}
    return [step | {"absent": [absent], "timeout_ms": _MISSING_MS, "expect": expect}]


def _cancel(it: Round, step: Step, members: list[int], tensors: dict[str, Any]) -> list[Step]:
    victim = members[it.fault.victim % len(members)]
    absent = {"absent": [victim]} if it.fault.absent else {}
    called = [rank for rank in members if rank not in absent.get("absent", ())]
    # A call of all members may have ended at any later time.
    fault = {"cancel": called, "after_ms": round(it.fault.delay * 1000) if absent else 0}
    codes = ["CANCELLED", "UNKNOWN_OPERATION", *([] if absent else ["OK"])]
    return [step | absent | {"fault": fault, "expect": {"error": codes}}]


def _full_session(it: Round, step: Step, members: list[int], tensors: dict[str, Any]) -> list[Step]:
    full = members[it.fault.victim % len(members)]
    reduction = {"call": "all_reduce", "of": step["of"], "group": step["group"], "op": "sum"}
    expect = {"error": "RESOURCE_EXHAUSTED", "indefinite": False, "unchanged": [step["of"]]}
    return [
        reduction | {"fault": {"quota": [full]}, "expect": expect},
        reduction | {"expect": {"ok": True}},
    ]


_STEPS: dict[type, Any] = {
    Kill: _kill,
    Stop: _stop,
    Blink: _blink,
    CloseLink: _close_link,
    Mismatch: _mismatch,
    Missing: _missing,
    Cancel: _cancel,
    FullSession: _full_session,
}
