"""What torch's flight recorder says, as calls."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from .evidence import Call, Frame, Group
from .stacks import called_from

KEPT = 64
"""Calls of each group that become evidence."""
_ON_DEVICES = " on devices"
_NAMES = {
    "allreduce": "all_reduce",
    "_all_gather_base": "all_gather_into_tensor",
    "all_gather_base": "all_gather_into_tensor",
    "allgather_base": "all_gather_into_tensor",
    "_allgather_base": "all_gather_into_tensor",
    "all_gather_single": "all_gather_into_tensor",
    "all_gather_single_coalesced": "all_gather_into_tensor_coalesced",
    "allgather": "all_gather",
    "_reduce_scatter_base": "reduce_scatter_tensor",
    "reduce_scatter_base": "reduce_scatter_tensor",
    "reduce_scatter_single": "reduce_scatter_tensor",
    "reduce_scatter_single_coalesced": "reduce_scatter_tensor_coalesced",
    "gather_single": "gather_into_tensor",
    "alltoall": "all_to_all",
    "alltoall_base": "all_to_all_single",
    "all_to_all_base": "all_to_all_single",
}
_DTYPES = {
    "Float": "float32",
    "Double": "float64",
    "Half": "float16",
    "BFloat16": "bfloat16",
    "Long": "int64",
}
_DTYPES |= {"Int": "int32", "Short": "int16", "Char": "int8", "Byte": "uint8", "Bool": "bool"}


class BadTrace(ValueError):
    """What is wrong with a dump."""


def groups(content: Mapping[str, Any]) -> tuple[Group, ...]:
    """The groups that a rank has named."""
    try:
        return tuple(
            Group(
                name=str(name),
                ranks=tuple(int(rank) for rank in it["ranks"]),
                backend=str(it.get("backend", "")),
                description=str(it.get("description", "")),
            )
            for name, it in content.items()
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise BadTrace(f"the groups are not as torch describes them: {error!r}") from None


def known(content: Mapping[str, Any]) -> tuple[tuple[Group, ...], tuple[Call, ...]]:
    """Groups and newest collectives, as `core.torch_state` has found them in a rank. Raises BadTrace.

    A group may have a backend for devices besides: what that does has numbers of its own, and is another group here.
    """
    found = groups(content.get("groups", {}))
    device = calls(content.get("device_trace", {}), on_device=True)
    mixed = {it.name for it in found if it.backend != "nccl"}
    apart = [replace(it, group=f"{it.group}{_ON_DEVICES}") if it.group in mixed else it for it in device]
    others = [replace(it, name=f"{it.name}{_ON_DEVICES}") for it in found if it.name in mixed and device]
    together = sorted((*calls(content.get("trace", {})), *apart), key=lambda it: it.called_at or 0.0)
    return (*found, *others), tuple(together)


def calls(trace: Mapping[str, Any], *, on_device: bool = False) -> tuple[Call, ...]:
    """The newest collectives of each group, in their order. Raises BadTrace."""
    kept: dict[str, deque[tuple[int, Call]]] = defaultdict(lambda: deque(maxlen=KEPT))
    try:
        for entry in trace.get("entries", ()):
            # Process groups below torch.distributed, as a gang's own, have no name.
            if entry.get("is_p2p") or not entry["process_group"][0]:
                continue
            call = replace(_call(entry), on_device=on_device)
            # A new group of the same name counts from the beginning.
            if kept[call.group] and call.number < kept[call.group][-1][1].number:
                kept[call.group].clear()
            kept[call.group].append((int(entry["record_id"]), call))
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise BadTrace(f"an entry is not as torch writes it: {error!r}") from None
    return tuple(
        call for _, call in sorted((it for group in kept.values() for it in group), key=lambda it: it[0])
    )


def _call(entry: Mapping[str, Any]) -> Call:
    name = str(entry["profiling_name"]).rpartition(":")[2]
    return Call(
        group=str(entry["process_group"][0]),
        number=int(entry["collective_seq_id"]),
        kind=_NAMES.get(name, name),
        dtypes=tuple(_DTYPES.get(it, str(it).lower()) for it in entry.get("input_dtypes") or ()),
        shapes=tuple(tuple(int(size) for size in it) for it in entry.get("input_sizes") or ()),
        called_at=int(entry["time_created_ns"]) / 1e9,
        done=bool(entry["retired"]) or entry.get("state") == "completed",
        site=called_from(
            [
                Frame(name=str(it["name"]), file=str(it["filename"]), line=int(it["line"]))
                for it in entry.get("frames") or ()
            ]
        ),
    )
