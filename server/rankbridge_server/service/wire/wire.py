"""Conversions between the core's types and protobuf's, errors included."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from enum import Enum
from functools import lru_cache
from typing import Any, TypeVar

from rankbridge.v1 import (
    call_pb2,
    collective_service_pb2,
    dtype_pb2,
    error_pb2,
    group_service_pb2,
    queue_service_pb2,
    rank_service_pb2,
    ref_pb2,
    ref_service_pb2,
    tensor_pb2,
)

from ...core.coordinator import Backend, GroupDescription, ReduceOp
from ...core.dtype import Dtype
from ...core.errors import ErrorCode, Failure, Phase, Place, Raised, RankDetail, RankState, invalid
from ...core.groups.group import GroupView
from ...core.groups.preparation import RankAddress
from ...core.groups.regrouping import PeerState
from ...core.printable import lines, printable
from ...core.queues.view import QueueView
from ...core.refs.refs import Ref
from ...core.refs.tensors import Arange, Full, Init, Normal, TensorSpec, Uniform
from ...core.task import Call
from ...links.wire import pack_activity

E = TypeVar("E", bound=Enum)

_TRACEPARENT = re.compile(r"00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")
MAX_TIMEOUT_MS = 24 * 3600 * 1000
MAX_SITE_BYTES = 256


def call(message: call_pb2.Call, default_timeout: float, *, first: bool = False) -> Call:
    """The call of an operation; `first` as in `Call`. Raises INVALID_ARGUMENT for a timeout of more than a day."""
    if message.timeout_ms > MAX_TIMEOUT_MS:
        raise invalid(
            "timeout_ms is too long", expected=f"at most {MAX_TIMEOUT_MS}", got=str(message.timeout_ms)
        )
    return Call(
        group=message.group,
        operation_id=message.operation_id,
        timeout=message.timeout_ms / 1000 or default_timeout,
        session_id=message.session_id,
        generation=message.generation,
        first=first,
        traceparent=_traceparent(message.traceparent) if message.traceparent else "",
        site=_site(message.site) if message.site else "",
    )


def _traceparent(text: str) -> str:
    return text if _TRACEPARENT.fullmatch(text) else ""


@lru_cache(1024)
def _site(text: str) -> str:
    """The line of code that has made a call, as one short line, whoever says so. The end of a long path says most."""
    return printable(text).encode()[-MAX_SITE_BYTES:].decode(errors="ignore")


def dtype(value: dtype_pb2.Dtype.ValueType) -> Dtype:
    """A dtype. Raises INVALID_ARGUMENT for one that is missing or not known."""
    try:
        return Dtype[dtype_pb2.Dtype.Name(value).removeprefix("DTYPE_")]
    except (ValueError, KeyError):
        raise invalid(
            "dtype is missing or unknown", expected="a dtype of torch", got=f"number {value}"
        ) from None


def tensor_spec(message: tensor_pb2.TensorSpec, device: str) -> TensorSpec:
    """A spec, on the rank's own device when it names none. Raises INVALID_ARGUMENT."""
    spec = TensorSpec(dtype(message.dtype), tuple(message.shape), message.device or device)
    spec.check()
    return spec


def pack_dtype(value: Dtype) -> dtype_pb2.Dtype.ValueType:
    """Packs a dtype."""
    return dtype_pb2.Dtype.Value(f"DTYPE_{value.name}")


def pack_tensor_spec(spec: TensorSpec) -> tensor_pb2.TensorSpec:
    """Packs a spec."""
    return tensor_pb2.TensorSpec(dtype=pack_dtype(spec.dtype), shape=spec.shape, device=spec.device)


def init(message: ref_service_pb2.CreateTensorRequest) -> Init:
    """How the elements of a new tensor are made."""
    match message.WhichOneof("init"):
        case "full":
            return Full(_element(message.full))
        case "arange":
            return Arange(message.arange.start, message.arange.step or 1.0)
        case "uniform":
            uniform = message.uniform
            high = 1.0 if uniform.low == uniform.high == 0 else uniform.high
            return Uniform(uniform.seed, uniform.low, high)
        case "normal":
            std = message.normal.std if message.normal.HasField("std") else 1.0
            return Normal(message.normal.seed, message.normal.mean, std)
        case _:
            return Full(0)


def _element(message: ref_service_pb2.Full) -> bool | int | float:
    kind = message.WhichOneof("element")
    if kind is None:
        raise invalid("full names no element", expected="float, int or bool", got="nothing")
    element: bool | int | float = getattr(message, kind)
    return element


def pack_ref(ref: Ref) -> ref_pb2.Ref:
    """Packs a ref."""
    return ref_pb2.Ref(id=ref.id, rank=ref.rank, session_id=ref.session_id, tensor=pack_tensor_spec(ref.spec))


def pack_group(group: GroupView) -> group_service_pb2.Group:
    """Packs a group."""
    return group_service_pb2.Group(**asdict(group))


def pack_queue(queue: QueueView) -> queue_service_pb2.Queue:
    """Packs a queue."""
    return queue_service_pb2.Queue(
        name=queue.name,
        group=queue.group,
        writer_rank_in_group=queue.writer,
        reader_ranks_in_group=queue.readers,
        shared_memory_ranks_in_group=queue.shared_memory,
        max_chunk_bytes=queue.max_chunk_bytes,
        max_chunks=queue.max_chunks,
    )


def groups(messages: Sequence[rank_service_pb2.GroupDescription]) -> list[GroupDescription]:
    """Unpacks groups that are to be formed."""
    return [GroupDescription(message.name, tuple(message.ranks)) for message in messages]


def pack_groups(descriptions: Sequence[GroupDescription]) -> list[rank_service_pb2.GroupDescription]:
    """Packs groups that are to be formed."""
    return [rank_service_pb2.GroupDescription(name=it.name, ranks=it.ranks) for it in descriptions]


def peer_state(message: rank_service_pb2.DescribeRankResponse) -> PeerState:
    """The state of a rank before forming."""
    state = message.generation_state
    was_formed = state in (rank_service_pb2.GENERATION_STATE_FORMED, rank_service_pb2.GENERATION_STATE_OVER)
    return PeerState(
        seen=max(message.generation, message.highest_generation),
        formed=message.generation,
        rank=message.rank if was_formed else None,
        groups=tuple(GroupDescription(it.name, tuple(it.ranks)) for it in message.groups),
    )


def address(message: rank_service_pb2.RankAddress) -> RankAddress:
    """Unpacks the addresses of a rank."""
    return RankAddress(message.rank, message.link, {it.group: it.address for it in message.groups})


def pack_address(it: RankAddress) -> rank_service_pb2.RankAddress:
    """Packs the addresses of a rank."""
    return rank_service_pb2.RankAddress(
        rank=it.rank,
        link=it.link,
        groups=[rank_service_pb2.GroupAddress(group=name, address=blob) for name, blob in it.groups.items()],
    )


def pack_abilities(operations: Iterable[str], backend: Backend) -> rank_service_pb2.Abilities:
    """Packs what a backend supports. `operations`: the names of all operations of the service."""
    dtypes = backend.tensors.dtypes
    reductions = {op: [pack_dtype(it) for it in dtypes if backend.reduces(op, it)] for op in ReduceOp}
    return rank_service_pb2.Abilities(
        collectives=[it for it in operations if it not in backend.lacks],
        dtypes=map(pack_dtype, dtypes),
        reductions=[
            rank_service_pb2.Reduction(
                op=collective_service_pb2.ReduceOp.Value(f"REDUCE_OP_{op.name}"), dtypes=those
            )
            for op, those in reductions.items()
            if those
        ],
    )


def pack_error(failure: Failure) -> error_pb2.Error:
    """Packs a failure."""
    place = failure.place or Place()
    return error_pb2.Error(
        code=error_pb2.ErrorCode.Value(f"ERROR_CODE_{failure.code.name}"),
        message=lines(str(failure)),
        indefinite=failure.indefinite,
        phase=error_pb2.Phase.Value(f"PHASE_{failure.phase.name}"),
        **place._asdict(),
        expected=lines(failure.expected),
        got=lines(failure.got),
        ranks=[
            error_pb2.RankDetail(
                rank=it.rank,
                rank_in_group=it.rank_in_group,
                state=error_pb2.RankState.Value(f"RANK_STATE_{it.state.name}"),
                detail=lines(it.detail),
                site=it.site,
                activity=None if it.activity is None else pack_activity(it.activity),
            )
            for it in failure.ranks
        ],
        raised=_pack_raised(failure.raised),
    )


def _pack_raised(raised: Raised | None) -> error_pb2.Raised | None:
    if raised is None:
        return None
    return error_pb2.Raised(
        rank=raised.rank,
        type=raised.type,
        text=lines(raised.text),
        traceback=lines(raised.traceback),
        where=lines(raised.where),
    )


def failure(message: error_pb2.Error) -> Failure:
    """Unpacks another sidecar's failure. An unknown code of a newer version becomes INTERNAL, a state FAILED."""
    code = _named(ErrorCode, error_pb2.ErrorCode, "ERROR_CODE_", message.code, ErrorCode.INTERNAL)
    known = message.code == error_pb2.ErrorCode.Value(f"ERROR_CODE_{code.name}")
    return Failure(
        code=code,
        message=message.message if known else f"error code {message.code}: {message.message}",
        indefinite=message.indefinite,
        phase=_named(Phase, error_pb2.Phase, "PHASE_", message.phase, Phase.UNSPECIFIED),
        ranks=tuple(
            RankDetail(
                rank=it.rank,
                rank_in_group=it.rank_in_group,
                state=_named(RankState, error_pb2.RankState, "RANK_STATE_", it.state, RankState.FAILED),
                detail=it.detail,
                site=it.site,
            )
            for it in message.ranks
        ),
    )


def _named(kind: type[E], wire: Any, prefix: str, number: int, otherwise: E) -> E:
    name = wire.Name(number).removeprefix(prefix) if number in wire.values() else ""
    return kind.__members__.get(name, otherwise)
