"""Stacks of ranks as a file of speedscope (https://www.speedscope.app)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rankbridge._plan.record import StackFrame, ThreadStack

_SCHEMA = "https://www.speedscope.app/file-format-schema.json"


def speedscope(stacks: Mapping[int, Sequence[ThreadStack]]) -> dict[str, Any]:
    """Writes the stacks of ranks as a file of speedscope: a profile for each rank, a sample for each thread.

    Args:
        stacks: By rank, the stacks of its threads, as `Gang.stacks` gives them.

    Returns:
        What `json.dump` writes. Below all calls of a thread is a frame with its name. All samples weigh the same.
    """
    frames: dict[StackFrame, int] = {}
    profiles = [_profile(rank, threads, frames) for rank, threads in sorted(stacks.items())]
    shared = [
        {"name": it.function, **({"file": it.file, "line": it.line} if it.file else {})} for it in frames
    ]
    return {"$schema": _SCHEMA, "exporter": "rankbridge", "shared": {"frames": shared}, "profiles": profiles}


def _profile(rank: int, threads: Sequence[ThreadStack], frames: dict[StackFrame, int]) -> dict[str, Any]:
    samples = []
    for thread in threads:
        name = StackFrame(function=f"thread {thread.name} ({thread.native_id})", file="", line=0)
        samples.append([frames.setdefault(it, len(frames)) for it in (name, *reversed(thread.frames))])
    return {
        "type": "sampled",
        "name": f"rank {rank}",
        "unit": "none",
        "startValue": 0,
        "endValue": len(samples),
        "samples": samples,
        "weights": [1] * len(samples),
    }
