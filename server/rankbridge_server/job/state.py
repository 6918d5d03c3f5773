"""Bringing a state from one rank to the others: its tensors by the backend, the rest as a value."""

from __future__ import annotations

from typing import Any, cast

import torch
import torch.distributed as dist

from rankbridge.v1 import ref_pb2, value_pb2

from ..backends.torch_tensors import TORCH
from ..core.refs.tensors import Tensors
from ..service.wire import wire
from ..service.wire.values import refs_in
from .values import Written, cloned, read

_CPU = "cpu"


def broadcast(state: dict[str, Any], version: int, is_new: bool, tensors: Tensors) -> dict[str, Any]:
    """Brings a state from one rank to others, over torch's default group: see `Context.broadcast_state`."""
    mine = torch.tensor([int(not is_new), version])
    each = [torch.empty_like(mine) for _ in range(dist.get_world_size())]
    dist.all_gather(each, mine)
    claims = [(bool(it[0]), int(it[1])) for it in each]
    newest = max(claims)
    source = claims.index(newest)
    gets = [rank != source and (not old or it != newest[1]) for rank, (old, it) in enumerate(claims)]
    if not any(gets):
        return state
    rank = dist.get_rank()
    received = _broadcast(state if rank == source else None, source, tensors)
    return received if gets[rank] else state


def _broadcast(state: dict[str, Any] | None, source: int, tensors: Tensors) -> dict[str, Any]:
    """Broadcasts a state over torch's default group. `state`: at the source; None elsewhere.

    Returns it, on the others in new tensors: on the CPU, or the rank's own device, as the source has them. Raises
    TypeError at the source for what has no value; then no rank gets anything.
    """
    written = None if state is None else Written(state, cloned)
    if written is not None:
        for ref, spec in zip(refs_in(written.value), written.specs, strict=True):
            ref.tensor.CopyFrom(wire.pack_tensor_spec(spec))
    packed = written.value.SerializeToString() if written is not None else b""
    length = torch.tensor([len(packed)])
    dist.broadcast(length, source)
    skeleton = torch.frombuffer(bytearray(packed), dtype=torch.uint8) if packed else torch.empty(0)
    if written is None:
        skeleton = torch.empty(int(length), dtype=torch.uint8)
    dist.broadcast(skeleton, source)
    value = value_pb2.Value.FromString(bytes(skeleton.numpy().tobytes()))
    moved = written.tensors if written is not None else [_empty(it, tensors) for it in refs_in(value)]
    for tensor in moved:
        # As bytes: the backend reduces nothing here, and moves every dtype.
        if tensor.numel():
            dist.broadcast(tensor.reshape(-1).view(torch.uint8), source)
    if state is not None:
        return state
    for place, ref in enumerate(refs_in(value)):
        ref.id = str(place)
    return cast(dict[str, Any], read(value, tensors, lambda place: moved[int(place)]))


def _empty(ref: ref_pb2.Ref, tensors: Tensors) -> torch.Tensor:
    spec = wire.tensor_spec(ref.tensor, _CPU)
    device = _CPU if spec.device == _CPU else tensors.device
    return torch.empty(spec.shape, dtype=TORCH[spec.dtype], device=device)
