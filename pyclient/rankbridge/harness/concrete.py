"""One run of a case as a scenario of its own: without a matrix, and with nothing left to be drawn."""

from __future__ import annotations

import copy
import os
import random
from pathlib import Path
from typing import Any

from rankbridge.harness.cases import Case, faults_in
from rankbridge.harness.points import point_of

SEEDS_APART = 1000


def seed_of(case: Case, repetition: int) -> int:
    """Gives the seed of a repetition."""
    return int(case.data.get("seed", 0)) + SEEDS_APART * repetition


def concrete(case: Case, repetition: int, folder: Path) -> dict[str, Any]:
    """Gives the scenario that does what one repetition of a case did.

    Args:
        case: The case.
        repetition: Which, from 0.
        folder: Where its file will be: files of modules are named from there.
    """
    data: dict[str, Any] = copy.deepcopy(dict(case.data))
    seed = seed_of(case, repetition)
    for word in ("matrix", "repeat", "seed"):
        data.pop(word, None)
    data["name"] = f"{case.name} ({repetition + 1} of {case.repeat})" if case.repeat > 1 else case.name
    data["gang"]["backend"] = case.backend
    if case.load:
        data["gang"]["load"] = [os.path.relpath(it, folder) if it.endswith(".py") else it for it in case.load]
    for place, tensor in enumerate(data.get("tensors", {}).values()):
        if tensor.get("fill") == "random":
            tensor["fill"] = {"seed": seed + place}
    _draw(data, random.Random(seed))
    return data


def _draw(data: dict[str, Any], rng: random.Random) -> None:
    """Draws what a session would draw, in its order."""
    for step in data["step"]:
        step.get("expect", {}).pop("sometimes", None)
        for fault in faults_in(step):
            after = fault.get("after_ms", 0)
            if isinstance(after, list) and "delay_ms" not in fault and point_of(fault.get("at", "")) is None:
                fault["after_ms"] = round(rng.uniform(*after))  # type: ignore[index]
