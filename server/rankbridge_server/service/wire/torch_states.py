"""Conversions between what torch has of a process and protobuf's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rankbridge.v1 import debug_service_pb2 as pb

from ...doctor import flight_recorder
from ...doctor.evidence import Call, Group
from ...doctor.testimony import TorchState


def pack_torch_state(state: Mapping[str, Any], script: bool, since_us: int) -> pb.TorchState | None:
    """What `core.torch_state` has found; None: nothing. `since_us`: what was called before is left out."""
    try:
        groups = flight_recorder.groups(state.get("groups", {}))
        calls = flight_recorder.calls(state.get("trace", {}))
    except flight_recorder.BadTrace:
        return None
    if not groups:
        return None
    arguments = state.get("arguments", {})
    return pb.TorchState(
        groups=[pb.TorchGroup(name=it.name, description=it.description, ranks=it.ranks) for it in groups],
        collectives=[_pack(it) for it in calls if (it.called_at or 0.0) * 1e6 >= since_us],
        calling=str(state.get("calling", "")),
        peer=arguments.get("src", arguments.get("dst")),
        tag=arguments.get("tag"),
        script=script,
    )


def torch_state(packed: pb.TorchState) -> TorchState:
    """The same for a verdict."""
    return TorchState(
        groups=tuple(
            Group(name=it.name, ranks=tuple(it.ranks), description=it.description) for it in packed.groups
        ),
        calls=tuple(map(_call, packed.collectives)),
        calling=packed.calling,
        peer=packed.peer if packed.HasField("peer") else None,
        tag=packed.tag if packed.HasField("tag") else None,
        script=packed.script,
    )


def _pack(it: Call) -> pb.TorchCollective:
    return pb.TorchCollective(
        group=it.group,
        number=it.number,
        kind=it.kind,
        dtypes=it.dtypes,
        shapes=[pb.TorchShape(sizes=sizes) for sizes in it.shapes],
        called_us=round((it.called_at or 0.0) * 1e6),
        done=bool(it.done),
    )


def _call(it: pb.TorchCollective) -> Call:
    return Call(
        group=it.group,
        number=it.number,
        kind=it.kind,
        dtypes=tuple(it.dtypes),
        shapes=tuple(tuple(shape.sizes) for shape in it.shapes),
        called_at=it.called_us / 1e6,
        done=it.done,
    )
