"""vLLM's methods by the harness's reference model, and torchgfn's reports: what is right where the records are not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tests.conformance.values import NUMPY, Json, Tensor

from rankbridge import Tensor as BridgeTensor
from rankbridge.harness import reference as model
from rankbridge.harness.floats import decode, encode

Arguments = Mapping[str, Any]


def value(method: str, members: Sequence[Arguments], place: int) -> Any:
    """What a method of vLLM's `GroupCoordinator` gives the member at a place, of what all bring in group order."""
    own = members[place]
    match method.strip("_").removesuffix("_out_place"):
        case "all_reduce":
            return reduced([it["input_"] for it in members], "sum")
        case "all_gather":
            return gathered([it["input_"] for it in members], own["dim"])
        case "all_gatherv":
            tensors = [it["input_"] for it in members]
            if isinstance(own["input_"], list):
                return [gathered([it[i] for it in tensors], own["dim"]) for i in range(len(own["input_"]))]
            return gathered(tensors, own["dim"])
        case "gather":
            joined = gathered([it["input_"] for it in members], own["dim"])
            return joined if place == own["dst"] else None
        case "reduce_scatter" | "reduce_scatterv":
            total = reduced([it["input_"] for it in members], "sum")
            return part(total, own["dim"], own.get("sizes"), len(members), place)
        case "combine":
            total = reduced([it["hidden_states"] for it in members], "sum")
            return part(total, 0, own["sizes"], len(members), place)
        case "broadcast":
            return members[own["src"]]["input_"]
        case "broadcast_object":
            return members[own["src"]]["obj"]
        case "broadcast_object_list":
            return members[own["src"]]["obj_list"]
        case "broadcast_tensor_dict":
            return members[own["src"]]["tensor_dict"]
        case "dispatch" | "dispatch_router_logits":
            count = len(own["tensors"])
            parts: list[Any] = [gathered([it["tensors"][i] for it in members], 0) for i in range(count)]
            if own["extra_tensors"]:
                extra = [it["extra_tensors"] for it in members]
                parts.append([gathered([it[i] for it in extra], 0) for i in range(len(extra[0]))])
            return tuple(parts)
    raise NotImplementedError(method)


def gathered(tensors: Sequence[Tensor], dim: int) -> Tensor:
    """All of them, side by side."""
    return _of_model(model.gathered([_for_model(it) for it in tensors], {"dim": dim}))


def part(whole: Tensor, dim: int, sizes: Sequence[int] | None, members: int, place: int) -> Tensor:
    """One member's part."""
    each = sizes or [whole.shape[dim] // members] * members
    return Tensor(whole.dtype, model.divided(whole.array, dim, each)[place])


def reduced(tensors: Sequence[Tensor], op: str) -> Tensor:
    """All of them, element by element."""
    result = model.reduced([_for_model(it) for it in tensors], op)
    return _of_model(result.tensor if isinstance(result, model.Near) else result)


def _for_model(it: Tensor) -> BridgeTensor:
    return encode(it.array, it.dtype)


def _of_model(it: BridgeTensor) -> Tensor:
    return Tensor(it.dtype, decode(it).astype(NUMPY.get(it.dtype, it.dtype)))


def report(name: str, timings: Sequence[Json]) -> list[list[str]]:
    """The report of torchgfn on timings, as lines with their levels. A number is a list of one."""
    lists = [{step: it if isinstance(it, list) else [it] for step, it in own.items()} for own in timings]
    return _imbalance(lists) if name == "report_load_imbalance" else _times(lists)


def _times(timings: Sequence[Mapping[str, list[float]]]) -> list[list[str]]:
    lines = ["Timing information for each rank:"]
    totals: dict[str, list[float]] = {}
    for rank, own in enumerate(timings):
        lines.append(f"Rank {rank} timing information:")
        for step, seconds in own.items():
            total = sum(seconds)
            lines.append(f"  {step}: {total / len(seconds):.4f} seconds (total: {total:.4f} seconds)")
            totals.setdefault(step, []).append(total)
    lines.append("\nMaximum timing information:")
    lines += [f"  {step}: {max(each):.4f} seconds" for step, each in totals.items()]
    lines.append("\nAverage timing information:")
    lines += [f"  {step}: {sum(each) / len(each):.4f} seconds" for step, each in totals.items()]
    return [["INFO", line] for line in lines]


def _imbalance(timings: Sequence[Mapping[str, list[float]]]) -> list[list[str]]:
    lines = [["INFO", "Step Name                  Useful Work      Waiting"], ["INFO", "-" * 80]]
    for step in timings[0]:
        columns = list(zip(*(own[step] for own in timings), strict=True))
        means = [sum(column) / len(column) for column in columns]
        waits = [max(column) - mean for column, mean in zip(columns, means, strict=True)]
        lines.append(["INFO", f"{step:<25} {sum(means):>10.4f}s {sum(waits):>10.4f}s"])
    return lines
