"""Torch's operators of collectives: all pass its dispatcher."""

from __future__ import annotations

import inspect
from types import CodeType, FunctionType
from typing import Any

OPERATORS = {
    "allreduce_": "all_reduce",
    "broadcast_": "broadcast",
    "reduce_": "reduce",
    "allgather_": "all_gather",
    "_allgather_base_": "all_gather_into_tensor",
    "gather_": "gather",
    "gather_into_tensor_": "gather_into_tensor",
    "scatter_": "scatter",
    "reduce_scatter_": "reduce_scatter",
    "_reduce_scatter_base_": "reduce_scatter_tensor",
    "alltoall_": "all_to_all",
    "alltoall_base_": "all_to_all_single",
    "barrier": "barrier",
    "monitored_barrier_": "monitored_barrier",
    "send": "send",
    "recv_": "recv",
    "recv_any_source_": "recv",
    "allreduce_coalesced_": "all_reduce_coalesced",
    "allgather_coalesced_": "all_gather_coalesced",
    "allgather_into_tensor_coalesced_": "all_gather_into_tensor_coalesced",
    "reduce_scatter_tensor_coalesced_": "reduce_scatter_tensor_coalesced",
}
"""By the names of collectives in the record."""


def code_of(torch: Any, kind: str) -> CodeType | None:
    """Of torch.distributed's function for this collective; None: it has none."""
    function = getattr(torch.distributed, kind, None)
    return inspect.unwrap(function).__code__ if isinstance(function, FunctionType) else None
