"""One member of a group on Gloo."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TypeVar, cast

import torch

from ...core.coordinator import ReduceOp
from ...core.errors import BridgeError, ErrorCode, Phase
from ..pieces import as_bytes, concatenated
from .raw import (
    AllgatherOptions,
    AllreduceOptions,
    BroadcastOptions,
    GatherOptions,
    GlooGroup,
    Work,
)
from .raw import ReduceOp as TorchReduceOp

_OPS = {
    ReduceOp.SUM: TorchReduceOp.SUM,
    ReduceOp.PRODUCT: TorchReduceOp.PRODUCT,
    ReduceOp.MIN: TorchReduceOp.MIN,
    ReduceOp.MAX: TorchReduceOp.MAX,
    ReduceOp.AVG: TorchReduceOp.AVG,
}

Options = TypeVar("Options", AllgatherOptions, AllreduceOptions, BroadcastOptions, GatherOptions)


class GlooCoordinator:
    """Implements `core.coordinator.Coordinator` on one ProcessGroupGloo.

    Moves are done on bytes, so that every dtype travels. Tensors without elements never enter Gloo: all members
    have agreed on the shape.
    """

    def __init__(self, group: GlooGroup, rank_in_group: int, size: int) -> None:
        self._group: GlooGroup | None = group
        self._rank_in_group = rank_in_group
        self._size = size

    def barrier(self, timeout: float) -> None:
        """Gloo's all_reduce of one element: half the time of Gloo's own barrier, and as strict."""
        token = torch.zeros(1)
        self._wait(lambda group: group.allreduce([token], _options(AllreduceOptions, timeout)))

    def broadcast(self, tensor: object, src_rank_in_group: int, timeout: float) -> object:
        """Gloo's broadcast, in a new tensor."""
        given = cast(torch.Tensor, tensor)
        if self._rank_in_group == src_rank_in_group:
            result = given.clone(memory_format=torch.contiguous_format)
        else:
            result = torch.empty_like(given, memory_format=torch.contiguous_format)
        if result.numel():
            options = _options(BroadcastOptions, timeout)
            options.rootRank = src_rank_in_group
            options.rootTensor = 0
            self._wait(lambda group: group.broadcast([as_bytes(result)], options))
        return result

    def gather(self, tensor: object, dst_rank_in_group: int, dim: int, timeout: float) -> object | None:
        """Gloo's gather into one buffer, laid out along `dim` afterwards."""
        given = cast(torch.Tensor, tensor).contiguous()
        receives = self._rank_in_group == dst_rank_in_group
        pieces = torch.empty(self._size * given.numel(), dtype=given.dtype) if receives else None
        if given.numel():
            outputs = [list(as_bytes(pieces).chunk(self._size))] if pieces is not None else []
            options = _options(GatherOptions, timeout)
            options.rootRank = dst_rank_in_group
            self._wait(lambda group: group.gather(outputs, [as_bytes(given)], options))
        return None if pieces is None else concatenated(pieces, self._size, given.shape, dim)

    def all_reduce(self, tensor: object, op: ReduceOp, timeout: float) -> object:
        """Gloo's all_reduce on a copy."""
        result = cast(torch.Tensor, tensor).clone(memory_format=torch.contiguous_format)
        if result.numel():
            options = _options(AllreduceOptions, timeout)
            options.reduceOp = TorchReduceOp(_OPS[op])
            self._wait(lambda group: group.allreduce([result], options))
        if result.dtype is torch.bool and op is ReduceOp.SUM:
            # Gloo adds the bytes; a bool that is neither 0 nor 1 is undefined behaviour in torch.
            return result.view(torch.uint8).ne(0)
        return result

    def all_gather(self, tensor: object, dim: int, timeout: float) -> object:
        """Gloo's all_gather into one buffer, laid out along `dim` afterwards."""
        given = cast(torch.Tensor, tensor).contiguous()
        pieces = torch.empty(self._size * given.numel(), dtype=given.dtype)
        if given.numel():
            options = _options(AllgatherOptions, timeout)
            outputs = [list(as_bytes(pieces).chunk(self._size))]
            self._wait(lambda group: group.allgather(outputs, [as_bytes(given)], options))
        return concatenated(pieces, self._size, given.shape, dim)

    def close(self) -> None:
        """Let go of the group. Blocks while an operation is in flight."""
        self._group = None

    def _wait(self, start: Callable[[GlooGroup], Work]) -> None:
        group = self._group
        if group is None:
            raise _failed("the group was closed")
        with _backend_errors():
            start(group).wait()


def _options(kind: Callable[[], Options], timeout: float) -> Options:
    options = kind()
    options.timeout = timedelta(seconds=timeout)
    return options


@contextmanager
def _backend_errors() -> Iterator[None]:
    try:
        yield
    except (RuntimeError, ValueError) as error:
        raise _failed(str(error)) from error


def _failed(reason: str) -> BridgeError:
    return BridgeError.of(
        ErrorCode.BACKEND_FAILED, f"Gloo failed: {reason}", phase=Phase.DATA, indefinite=True
    )
