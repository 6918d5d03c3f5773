"""The collectives of a group."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Unpack

from rankbridge._plan.calls import Call
from rankbridge._plan.operations.declare import (
    CallOptions,
    Scope,
    checked_rank,
    checked_sizes,
    group_call,
    operation,
    options_of,
    outcome_of,
)
from rankbridge._plan.operations.readers import none_reader, ref_or_none, ref_reader
from rankbridge._plan.operations.shares import FirstArgument, given_to, shared_by
from rankbridge._plan.ref import Ref
from rankbridge.errors import InvalidArgumentError
from rankbridge.v1 import collective_service_pb2 as collective_pb

__all__ = [
    "ReduceOp",
    "all_reduce",
    "all_to_all",
    "barrier",
    "broadcast",
    "reduce",
    "reduce_op",
    "reduce_scatter",
    "scan",
    "scatter",
]

ReduceOp = Literal["sum", "product", "min", "max", "avg", "band", "bor", "bxor"]
"""How elements are combined."""


@given_to(FirstArgument.NOTHING)
@operation
def barrier(scope: Scope, **options: Unpack[CallOptions]) -> Call[None]:
    """Waits for all members."""
    call = options_of(scope, scope.session_id, **options)
    request = collective_pb.BarrierRequest(call=call)
    return group_call(
        scope, "barrier", "CollectiveService/Barrier", request, none_reader(collective_pb.BarrierResponse)
    )


@operation
def broadcast(
    scope: Scope,
    ref: Ref,
    *,
    src_rank_in_group: int = 0,
    in_place: bool = False,
    **options: Unpack[CallOptions],
) -> Call[Ref]:
    """Sends one member's tensor to all."""
    request = collective_pb.BroadcastRequest(
        call=options_of(scope, ref.session_id, **options),
        ref_id=ref.id,
        src_rank_in_group=checked_rank("src_rank_in_group", src_rank_in_group),
        in_place=in_place,
    )
    read = ref_reader(collective_pb.BroadcastResponse)
    return group_call(scope, "broadcast", "CollectiveService/Broadcast", request, read)


@operation
def scatter(
    scope: Scope, ref: Ref, *, src_rank_in_group: int = 0, dim: int = 0, **options: Unpack[CallOptions]
) -> Call[Ref]:
    """Divides one member's tensor among all."""
    request = collective_pb.ScatterRequest(
        call=options_of(scope, ref.session_id, **options),
        ref_id=ref.id,
        src_rank_in_group=checked_rank("src_rank_in_group", src_rank_in_group),
        dim=dim,
    )
    read = ref_reader(collective_pb.ScatterResponse)
    return group_call(scope, "scatter", "CollectiveService/Scatter", request, read)


@operation
def reduce(
    scope: Scope,
    ref: Ref,
    *,
    op: ReduceOp = "sum",
    dst_rank_in_group: int = 0,
    **options: Unpack[CallOptions],
) -> Call[Ref | None]:
    """Reduces all members' tensors at one of them, element by element."""
    request = collective_pb.ReduceRequest(
        call=options_of(scope, ref.session_id, **options),
        ref_id=ref.id,
        op=reduce_op(op),
        dst_rank_in_group=checked_rank("dst_rank_in_group", dst_rank_in_group),
    )
    read = outcome_of(collective_pb.ReduceResponse, ref_or_none)
    return group_call(scope, "reduce", "CollectiveService/Reduce", request, read)


@operation
def all_reduce(
    scope: Scope, ref: Ref, *, op: ReduceOp = "sum", in_place: bool = False, **options: Unpack[CallOptions]
) -> Call[Ref]:
    """Reduces all members' tensors, element by element."""
    request = collective_pb.AllReduceRequest(
        call=options_of(scope, ref.session_id, **options), ref_id=ref.id, op=reduce_op(op), in_place=in_place
    )
    read = ref_reader(collective_pb.AllReduceResponse)
    return group_call(scope, "all_reduce", "CollectiveService/AllReduce", request, read)


@operation
def reduce_scatter(
    scope: Scope,
    ref: Ref,
    *,
    op: ReduceOp = "sum",
    dim: int = -1,
    sizes: Sequence[int] | None = None,
    **options: Unpack[CallOptions],
) -> Call[Ref]:
    """Reduces all members' tensors, and divides the result among them."""
    request = collective_pb.ReduceScatterRequest(
        call=options_of(scope, ref.session_id, **options),
        ref_id=ref.id,
        op=reduce_op(op),
        dim=dim,
        sizes=checked_sizes("sizes", sizes),
    )
    read = ref_reader(collective_pb.ReduceScatterResponse)
    return group_call(scope, "reduce_scatter", "CollectiveService/ReduceScatter", request, read)


@operation
def all_to_all(
    scope: Scope,
    ref: Ref,
    *,
    dim: int = 0,
    input_sizes: Sequence[int] | None = None,
    output_sizes: Sequence[int] | None = None,
    **options: Unpack[CallOptions],
) -> Call[Ref]:
    """Sends every member its part of every member's tensor."""
    request = collective_pb.AllToAllRequest(
        call=options_of(scope, ref.session_id, **options),
        ref_id=ref.id,
        dim=dim,
        input_sizes=checked_sizes("input_sizes", input_sizes),
        output_sizes=checked_sizes("output_sizes", output_sizes),
    )
    read = ref_reader(collective_pb.AllToAllResponse)
    return group_call(scope, "all_to_all", "CollectiveService/AllToAll", request, read)


@shared_by("all_to_all")
def _rows_and_columns(options: dict[str, Any], members: int) -> list[dict[str, Any]]:
    """Makes of `sizes`, a row for each member, what each sends and gets."""
    if unknown := options.keys() & {"input_sizes", "output_sizes"}:
        raise TypeError(f"all_to_all of a gang takes sizes, not {', '.join(sorted(unknown))}")
    common = {name: value for name, value in options.items() if name != "sizes"}
    if (sizes := options.get("sizes")) is None:
        return [common] * members
    rows = [list(row) for row in sizes]
    if [len(row) for row in rows] != [members] * members:
        raise InvalidArgumentError(
            "sizes do not fit the group",
            operation="all_to_all",
            expected=f"{members} rows of {members}, one for each member",
            got=f"rows of {[len(row) for row in rows]}",
        )
    return [
        {**common, "input_sizes": row, "output_sizes": [other[member] for other in rows]}
        for member, row in enumerate(rows)
    ]


@operation
def scan(
    scope: Scope, ref: Ref, *, op: ReduceOp = "sum", exclusive: bool = False, **options: Unpack[CallOptions]
) -> Call[Ref]:
    """Reduces the tensors of the members so far, element by element."""
    request = collective_pb.ScanRequest(
        call=options_of(scope, ref.session_id, **options),
        ref_id=ref.id,
        op=reduce_op(op),
        exclusive=exclusive,
    )
    read = ref_reader(collective_pb.ScanResponse)
    return group_call(scope, "scan", "CollectiveService/Scan", request, read)


def reduce_op(op: str) -> collective_pb.ReduceOp.ValueType:
    """Finds a reduce op by its name.

    Raises:
        InvalidArgumentError: There is none.
    """
    found = _REDUCE_OPS.get(op)
    if found is None:
        raise InvalidArgumentError(
            "there is no such reduce op", expected=f"one of {', '.join(_REDUCE_OPS)}", got=str(op)
        )
    return found


_REDUCE_OPS = {
    name.removeprefix("REDUCE_OP_").lower(): number
    for name, number in collective_pb.ReduceOp.items()
    if number != collective_pb.REDUCE_OP_UNSPECIFIED
}
