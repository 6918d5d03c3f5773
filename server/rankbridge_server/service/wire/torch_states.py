"""Conversions between what torch has of a process and protobuf's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rankbridge.v1 import debug_service_pb2 as pb

from ...doctor import flight_recorder
from ...doctor.contract_texts import frame_of, with_contract
from ...doctor.evidence import Call, Group
from ...doctor.testimony import TorchState


def pack_torch_state(
    state: Mapping[str, Any],
    script: bool,
    since_us: int,
    coordinators: Mapping[str, Sequence[int]] | None = None,
    coordinator_calls: Sequence[pb.RecordedOperation] = (),
) -> pb.TorchState | None:
    """What `core.torch_state` has found; None: nothing. `since_us`: what was called before is left out.

    `coordinators`: ranks by name; `coordinator_calls`: of these.
    """
    try:
        groups, calls = flight_recorder.known(state)
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
        coordinators=[
            pb.CoordinatorGroup(name=name, ranks=ranks) for name, ranks in (coordinators or {}).items()
        ],
        coordinator_calls=[it for it in coordinator_calls if it.called_us >= since_us],
    )


def torch_state(packed: pb.TorchState) -> TorchState:
    """The same for a verdict."""
    coordinators = {it.name: _coordinator(it) for it in packed.coordinators if it.ranks}
    groups = [Group(name=it.name, ranks=tuple(it.ranks), description=it.description) for it in packed.groups]
    coordinated = [
        _coordinator_call(it, coordinators[it.group])
        for it in packed.coordinator_calls
        if it.group in coordinators
    ]
    return TorchState(
        groups=(*groups, *coordinators.values()),
        calls=(*map(_call, packed.collectives), *coordinated),
        calling=packed.calling,
        peer=packed.peer if packed.HasField("peer") else None,
        tag=packed.tag if packed.HasField("tag") else None,
        script=packed.script,
        waiting_since=min(
            (it.called_at for it in coordinated if it.done is False and it.called_at), default=None
        ),
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
        on_device=it.on_device,
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
        on_device=it.on_device,
    )


def _coordinator(it: pb.CoordinatorGroup) -> Group:
    # Groups of one name have different ranks: "tp:0" of ranks 0-1, and "tp:0" of ranks 2-3.
    return Group(name=f"{it.name}@{it.ranks[0]}", ranks=tuple(it.ranks), description=it.name)


def _coordinator_call(it: pb.RecordedOperation, group: Group) -> Call:
    called = it.called_us / 1e6
    is_over = it.HasField("done_us")
    call = Call(
        group=group.name,
        number=it.number,
        kind=it.operation,
        site=frame_of(it.site),
        called_at=called,
        returned_at=called + it.done_us / 1e6 if is_over else None,
        # What has returned may go on, on a device.
        done=None if is_over else False,
    )
    return with_contract(call, it.contract, group.ranks)
