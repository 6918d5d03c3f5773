"""One member of a group on Gloo."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import TypeVar, cast

import torch

from ...core.coordinator import Coordinator, ReduceOp
from ...core.errors import BridgeError, ErrorCode, Phase
from ..pieces import as_bytes, concatenated, divided, side_by_side
from .raw import (
    AllgatherOptions,
    AllreduceOptions,
    AllToAllOptions,
    BroadcastOptions,
    GatherOptions,
    GlooGroup,
    ReduceOptions,
    ScatterOptions,
    Work,
)
from .raw import ReduceOp as TorchReduceOp

_OPS = {
    ReduceOp.SUM: TorchReduceOp.SUM,
    ReduceOp.PRODUCT: TorchReduceOp.PRODUCT,
    ReduceOp.MIN: TorchReduceOp.MIN,
    ReduceOp.MAX: TorchReduceOp.MAX,
    ReduceOp.AVG: TorchReduceOp.AVG,
    ReduceOp.BAND: TorchReduceOp.BAND,
    ReduceOp.BOR: TorchReduceOp.BOR,
    ReduceOp.BXOR: TorchReduceOp.BXOR,
}

Options = TypeVar(
    "Options",
    AllgatherOptions,
    AllreduceOptions,
    AllToAllOptions,
    BroadcastOptions,
    GatherOptions,
    ReduceOptions,
    ScatterOptions,
)


class GlooCoordinator(Coordinator):
    """Implements `core.coordinator.Coordinator` on one ProcessGroupGloo.

    Tensors move as bytes, so that every dtype works. Tensors without elements never enter Gloo: all members have
    agreed on the shape.
    """

    def __init__(self, group: GlooGroup, rank_in_group: int, size: int) -> None:
        self._group: GlooGroup | None = group
        self._rank_in_group = rank_in_group
        self._size = size
        # The tensor of barriers: its sum stays 0.
        self._token = [torch.zeros(1)]
        self._reductions: dict[tuple[ReduceOp, torch.dtype, float], AllreduceOptions] = {}

    def barrier(self, timeout: float) -> None:
        """Gloo's all_reduce of one element, which takes half the time of Gloo's barrier and is as strict."""
        options = self._reducing(ReduceOp.SUM, torch.float32, timeout)
        self._wait(lambda group: group.allreduce(self._token, options))

    def broadcast(self, tensor: object, src_rank_in_group: int, timeout: float) -> object:
        """Gloo's broadcast, in a new tensor."""
        given = cast(torch.Tensor, tensor)
        if self._rank_in_group == src_rank_in_group:
            result = _copy(given)
        else:
            result = torch.empty_like(given, memory_format=torch.contiguous_format)
        if result.numel():
            self._wait(lambda group: _broadcast(group, as_bytes(result), src_rank_in_group, timeout))
        return result

    def scatter(self, tensor: object, src_rank_in_group: int, dim: int, timeout: float) -> object:
        """Gloo's scatter of contiguous parts."""
        given = cast(torch.Tensor, tensor)
        inputs: list[list[torch.Tensor]] = []
        if self._rank_in_group == src_rank_in_group:
            parts = divided(given, dim, [given.shape[dim] // self._size] * self._size)
            inputs = [[as_bytes(part) for part in parts]]
            given = parts[0]
        result = torch.empty(given.shape, dtype=given.dtype)
        if result.numel():
            options = _options(ScatterOptions, timeout)
            options.rootRank = src_rank_in_group
            self._wait(lambda group: group.scatter([as_bytes(result)], inputs, options))
        return result

    def gather(
        self, tensor: object, dst_rank_in_group: int, dim: int, sizes: Sequence[int], timeout: float
    ) -> object | None:
        """Gloo's gather into one buffer, rearranged along `dim`; with different sizes, Gloo's all_to_all."""
        given = cast(torch.Tensor, tensor).contiguous()
        counts = _counts(given, dim, sizes)
        receives = self._rank_in_group == dst_rank_in_group
        pieces = torch.empty(sum(counts) // given.itemsize if receives else 0, dtype=given.dtype)
        if not any(counts):
            pass
        elif len(set(counts)) == 1:
            options = _options(GatherOptions, timeout)
            options.rootRank = dst_rank_in_group
            outputs = [list(as_bytes(pieces).chunk(self._size))] if receives else []
            self._wait(lambda group: group.gather(outputs, [as_bytes(given)], options))
        else:
            sent = [given.nbytes if rank == dst_rank_in_group else 0 for rank in range(self._size)]
            received = counts if receives else [0] * self._size
            self._exchange(as_bytes(given), as_bytes(pieces), sent, received, timeout)
        return concatenated(pieces, given.shape, dim, sizes) if receives else None

    def reduce(self, tensor: object, op: ReduceOp, dst_rank_in_group: int, timeout: float) -> object | None:
        """Gloo's reduce on a copy, because it leaves partial results in the others' tensors."""
        result = _copy(tensor)
        if result.numel():
            options = _options(ReduceOptions, timeout)
            options.reduceOp = _op(op, result.dtype)
            options.rootRank = dst_rank_in_group
            self._wait(lambda group: group.reduce([result], options))
        return result if self._rank_in_group == dst_rank_in_group else None

    def all_reduce(self, tensor: object, op: ReduceOp, timeout: float) -> torch.Tensor:
        """Gloo's all_reduce on a copy."""
        result = _copy(tensor)
        if result.numel():
            options = self._reducing(op, result.dtype, timeout)
            self._wait(lambda group: group.allreduce([result], options))
        return result

    def reduce_scatter(
        self, tensor: object, op: ReduceOp, dim: int, sizes: Sequence[int], timeout: float
    ) -> object:
        """A part of Gloo's all_reduce, as in Gloo's own reduce_scatter."""
        whole = self.all_reduce(tensor, op, timeout)
        # A copy, which does not keep the whole tensor's memory for one part.
        return _copy(torch.split(whole, list(sizes), dim)[self._rank_in_group])

    def all_gather(self, tensor: object, dim: int, sizes: Sequence[int], timeout: float) -> object:
        """Gloo's all_gather into one buffer, rearranged along `dim`; with different sizes, Gloo's broadcasts."""
        given = cast(torch.Tensor, tensor).contiguous()
        counts = _counts(given, dim, sizes)
        pieces = torch.empty(sum(counts) // given.itemsize, dtype=given.dtype)
        parts = torch.split(as_bytes(pieces), counts)
        if not any(counts):
            pass
        elif len(set(counts)) == 1:
            options = _options(AllgatherOptions, timeout)
            self._wait(lambda group: group.allgather([parts], [as_bytes(given)], options))
        else:
            parts[self._rank_in_group].copy_(as_bytes(given))
            sources = [(part, rank) for rank, part in enumerate(parts) if part.numel()]
            self._wait_all(lambda group: [_broadcast(group, *it, timeout) for it in sources])
        return concatenated(pieces, given.shape, dim, sizes)

    def all_to_all(self, tensor: object, dim: int, sizes: Sequence[Sequence[int]], timeout: float) -> object:
        """Gloo's all_to_all of contiguous parts into one buffer, rearranged along `dim`."""
        given = cast(torch.Tensor, tensor)
        sent = sizes[self._rank_in_group]
        received = [row[self._rank_in_group] for row in sizes]
        counts = _counts(given, dim, received)
        pieces = torch.empty(sum(counts) // given.itemsize, dtype=given.dtype)
        # A member that sends and receives nothing takes part, too, unless all are such members.
        if any(_counts(given, dim, [size for row in sizes for size in row])):
            parts = side_by_side(given, dim, sent)
            self._exchange(parts, as_bytes(pieces), _counts(given, dim, sent), counts, timeout)
        return concatenated(pieces, given.shape, dim, received)

    def send(self, tensor: object, dst_rank_in_group: int, tag: int, timeout: float) -> None:
        """Gloo's send, which ends when the receiver has begun to receive."""
        given = cast(torch.Tensor, tensor).contiguous()
        if given.numel():
            self._pass(lambda group: group.send([as_bytes(given)], dst_rank_in_group, tag), timeout)

    def recv(self, tensor: object, src_rank_in_group: int, tag: int, timeout: float) -> None:
        """Gloo's receive, in place."""
        into = cast(torch.Tensor, tensor)
        if into.numel():
            self._pass(lambda group: group.recv([as_bytes(into)], src_rank_in_group, tag), timeout)

    def close(self) -> None:
        """Releases the group. Blocks while an operation is in flight."""
        self._group = None

    def _reducing(self, op: ReduceOp, dtype: torch.dtype, timeout: float) -> AllreduceOptions:
        """Options of an all_reduce, cached: making them takes as long as sending a small message."""
        known = self._reductions.get((op, dtype, timeout))
        if known is None:
            known = self._reductions[op, dtype, timeout] = _options(AllreduceOptions, timeout)
            known.reduceOp = _op(op, dtype)
        return known

    def _exchange(
        self,
        given: torch.Tensor,
        result: torch.Tensor,
        sent: Sequence[int],
        received: Sequence[int],
        timeout: float,
    ) -> None:
        """Sends each member its next bytes of `given`, and receives the others' side by side into `result`."""
        options = _options(AllToAllOptions, timeout)
        self._wait(lambda group: group.alltoall_base(result, given, received, sent, options))

    def _pass(self, start: Callable[[GlooGroup], Work], timeout: float) -> None:
        """Waits for a send or a receive, which take their timeout in `wait`."""
        group = self._group
        if group is None:
            raise _failed("the group was closed")
        with _backend_errors():
            start(group).wait(timedelta(seconds=timeout))

    def _wait(self, start: Callable[[GlooGroup], Work]) -> None:
        self._wait_all(lambda group: [start(group)])

    def _wait_all(self, start: Callable[[GlooGroup], Sequence[Work]]) -> None:
        group = self._group
        if group is None:
            raise _failed("the group was closed")
        with _backend_errors():
            for work in start(group):
                work.wait()


def _copy(tensor: object) -> torch.Tensor:
    return cast(torch.Tensor, tensor).clone(memory_format=torch.contiguous_format)


def _counts(given: torch.Tensor, dim: int, sizes: Sequence[int]) -> list[int]:
    """Bytes of tensors like `given` but for their sizes along `dim`."""
    others = math.prod(given.shape[:dim]) * math.prod(given.shape[dim + 1 :])
    return [size * others * given.itemsize for size in sizes]


def _broadcast(group: GlooGroup, tensor: torch.Tensor, src_rank_in_group: int, timeout: float) -> Work:
    options = _options(BroadcastOptions, timeout)
    options.rootRank = src_rank_in_group
    options.rootTensor = 0
    return group.broadcast([tensor], options)


def _op(op: ReduceOp, dtype: torch.dtype) -> TorchReduceOp:
    if dtype is torch.bool and op is ReduceOp.SUM:
        # Gloo adds the bytes: the sum may be neither 0 nor 1, and is 0 again with 256 members.
        return TorchReduceOp(TorchReduceOp.BOR)
    return TorchReduceOp(_OPS[op])


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
