"""One member of a group on NCCL."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import TypeVar, cast

import torch

from ...core.coordinator import Captured, Coordinator, ReduceOp
from ..pieces import as_bytes, concatenated, side_by_side
from .channel import Channel
from .raw import (
    AllgatherOptions,
    AllreduceOptions,
    AllToAllOptions,
    BroadcastOptions,
    NcclGroup,
    ReduceOptions,
    ReduceScatterOptions,
    Work,
)
from .reductions import numbers

Options = TypeVar(
    "Options",
    AllgatherOptions,
    AllreduceOptions,
    AllToAllOptions,
    BroadcastOptions,
    ReduceOptions,
    ReduceScatterOptions,
)


class NcclCoordinator(Coordinator):
    """Implements `core.coordinator.Coordinator` on communicators for collectives, and for sends and receives.

    And `Capturing`: what it does on the communicator for collectives can be captured.

    Tensors move as bytes, so that every dtype works. Tensors without elements never enter NCCL, unless others have
    some: all members have agreed on the sizes. A result that is returned is there: the device has done its part.
    """

    def __init__(
        self, collectives: Channel, messages: Channel, device: torch.device, rank_in_group: int, size: int
    ) -> None:
        self._collectives = collectives
        self._messages = messages
        self._device = device
        self._rank_in_group = rank_in_group
        self._size = size

    def barrier(self, timeout: float) -> None:
        """NCCL's all_reduce of one element."""
        with self._collectives.inside():
            token = torch.zeros(1, device=self._device)
            options = _options(AllreduceOptions, timeout)
            self._collectives.run(lambda group: group.allreduce([token], options), timeout)

    def broadcast(self, tensor: object, src_rank_in_group: int, timeout: float) -> object:
        """NCCL's broadcast, in a new tensor."""
        given = cast(torch.Tensor, tensor)
        with self._collectives.inside():
            if self._rank_in_group == src_rank_in_group:
                result = _copy(given)
            else:
                result = torch.empty_like(given, memory_format=torch.contiguous_format)
            if result.numel():
                data = as_bytes(result)
                self._collectives.run(
                    lambda group: _broadcast(group, data, src_rank_in_group, timeout), timeout
                )
        return result

    def scatter(self, tensor: object, src_rank_in_group: int, dim: int, timeout: float) -> object:
        """Grouped sends and receives of parts side by side."""
        given = cast(torch.Tensor, tensor)
        shape = given.shape
        sends = self._rank_in_group == src_rank_in_group
        with self._collectives.inside():
            if sends:
                shape = torch.Size([*shape[:dim], shape[dim] // self._size, *shape[dim + 1 :]])
                parts = side_by_side(given, dim, [shape[dim]] * self._size)
            else:
                parts = torch.empty(0, dtype=torch.uint8, device=self._device)
            result = self._empty(shape, given.dtype)
            if result.numel():
                sent = [result.nbytes if sends else 0] * self._size
                received = self._only(src_rank_in_group, result.nbytes)
                self._exchange(parts, as_bytes(result), sent, received, timeout)
        return result

    def gather(
        self, tensor: object, dst_rank_in_group: int, dim: int, sizes: Sequence[int], timeout: float
    ) -> object | None:
        """Grouped sends and receives into one buffer, laid out along `dim` afterwards."""
        receives = self._rank_in_group == dst_rank_in_group
        with self._collectives.inside():
            given = cast(torch.Tensor, tensor).contiguous()
            counts = _counts(given, dim, sizes)
            pieces = self._empty([sum(counts) // given.itemsize if receives else 0], given.dtype)
            if any(counts):
                sent = self._only(dst_rank_in_group, given.nbytes)
                received = counts if receives else [0] * self._size
                self._exchange(as_bytes(given), as_bytes(pieces), sent, received, timeout)
            return concatenated(pieces, given.shape, dim, sizes) if receives else None

    def reduce(self, tensor: object, op: ReduceOp, dst_rank_in_group: int, timeout: float) -> object | None:
        """NCCL's reduce, on a copy."""
        with self._collectives.inside():
            result = _copy(tensor)
            if result.numel():
                values, its = numbers(result, op)
                options = _options(ReduceOptions, timeout)
                options.reduceOp, options.rootRank, options.rootTensor = its, dst_rank_in_group, 0
                self._collectives.run(lambda group: group.reduce([values], options), timeout)
        return result if self._rank_in_group == dst_rank_in_group else None

    def all_reduce(self, tensor: object, op: ReduceOp, timeout: float) -> object:
        """NCCL's all_reduce, on a copy."""
        with self._collectives.inside():
            return self._all_reduced(tensor, op, timeout)

    def reduce_scatter(
        self, tensor: object, op: ReduceOp, dim: int, sizes: Sequence[int], timeout: float
    ) -> object:
        """NCCL's reduce_scatter of parts side by side; of different sizes, a part of its all_reduce."""
        given = cast(torch.Tensor, tensor)
        mine = sizes[self._rank_in_group]
        with self._collectives.inside():
            if len(set(sizes)) > 1:
                whole = self._all_reduced(given, op, timeout)
                # A copy, which does not keep the whole tensor's memory for one part.
                return _copy(torch.split(whole, list(sizes), dim)[self._rank_in_group])
            result = self._empty([*given.shape[:dim], mine, *given.shape[dim + 1 :]], given.dtype)
            if result.numel():
                values, its = numbers(side_by_side(given, dim, sizes).view(given.dtype), op)
                into, _ = numbers(result, op)
                options = _options(ReduceScatterOptions, timeout)
                options.reduceOp = its
                self._collectives.run(
                    lambda group: group._reduce_scatter_base(into, values, options), timeout
                )
            return result

    def all_gather(self, tensor: object, dim: int, sizes: Sequence[int], timeout: float) -> object:
        """NCCL's all_gather into one buffer, laid out along `dim` afterwards; of different sizes, its broadcasts."""
        with self._collectives.inside():
            given = cast(torch.Tensor, tensor).contiguous()
            counts = _counts(given, dim, sizes)
            pieces = self._empty([sum(counts) // given.itemsize], given.dtype)
            data, mine = as_bytes(pieces), as_bytes(given)
            if not any(counts):
                pass
            elif len(set(counts)) == 1:
                options = _options(AllgatherOptions, timeout)
                self._collectives.run(lambda group: group._allgather_base(data, mine, options), timeout)
            else:
                parts = torch.split(data, counts)
                parts[self._rank_in_group].copy_(mine)
                self._collectives.run_together(
                    [_broadcasting(part, rank, timeout) for rank, part in enumerate(parts) if part.numel()],
                    timeout,
                )
            return concatenated(pieces, given.shape, dim, sizes)

    def all_to_all(self, tensor: object, dim: int, sizes: Sequence[Sequence[int]], timeout: float) -> object:
        """Grouped sends and receives of parts side by side into one buffer, laid out along `dim` afterwards."""
        given = cast(torch.Tensor, tensor)
        sent = sizes[self._rank_in_group]
        received = [row[self._rank_in_group] for row in sizes]
        with self._collectives.inside():
            counts = _counts(given, dim, received)
            pieces = self._empty([sum(counts) // given.itemsize], given.dtype)
            # A member that sends and receives nothing takes part, too, unless all are such members.
            if any(_counts(given, dim, [size for row in sizes for size in row])):
                parts = side_by_side(given, dim, sent)
                self._exchange(parts, as_bytes(pieces), _counts(given, dim, sent), counts, timeout)
            return concatenated(pieces, given.shape, dim, received)

    def send(self, tensor: object, dst_rank_in_group: int, tag: int, timeout: float) -> None:
        """NCCL's send. NCCL has no tags: both ends send and receive in one order."""
        with self._messages.inside():
            given = cast(torch.Tensor, tensor).contiguous()
            if given.numel():
                data = as_bytes(given)
                self._messages.run_together([lambda group: group.send([data], dst_rank_in_group, 0)], timeout)

    def recv(self, tensor: object, src_rank_in_group: int, tag: int, timeout: float) -> None:
        """NCCL's receive, in place."""
        result = cast(torch.Tensor, tensor)
        if not result.numel():
            return
        with self._messages.inside():
            data = as_bytes(result)
            self._messages.run_together([lambda group: group.recv([data], src_rank_in_group, 0)], timeout)

    def capture(
        self,
        inputs: Sequence[object],
        enter: Callable[[Sequence[object]], Sequence[object]],
        timeout: float,
    ) -> Captured | None:
        """Capture collectives in a CUDA graph."""
        return self._collectives.capture(cast(Sequence[torch.Tensor], inputs), enter, timeout)

    def close(self) -> None:
        """End what runs, and free the communicators."""
        self._collectives.close()
        self._messages.close()

    def _all_reduced(self, tensor: object, op: ReduceOp, timeout: float) -> torch.Tensor:
        result = _copy(tensor)
        if result.numel():
            values, its = numbers(result, op)
            options = _options(AllreduceOptions, timeout)
            options.reduceOp = its
            self._collectives.run(lambda group: group.allreduce([values], options), timeout)
        return result

    def _exchange(
        self,
        given: torch.Tensor,
        result: torch.Tensor,
        sent: Sequence[int],
        received: Sequence[int],
        timeout: float,
    ) -> None:
        """Send each member its next bytes of `given`, and put those that come side by side into `result`."""
        options = _options(AllToAllOptions, timeout)
        self._collectives.run(
            lambda group: group.alltoall_base(result, given, received, sent, options), timeout
        )

    def _only(self, rank_in_group: int, nbytes: int) -> list[int]:
        """That many bytes for or from one member, none for others."""
        return [nbytes if rank == rank_in_group else 0 for rank in range(self._size)]

    def _empty(self, shape: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
        return torch.empty(shape, dtype=dtype, device=self._device)


def _copy(tensor: object) -> torch.Tensor:
    return cast(torch.Tensor, tensor).clone(memory_format=torch.contiguous_format)


def _counts(given: torch.Tensor, dim: int, sizes: Sequence[int]) -> list[int]:
    """Bytes of tensors like `given` but for their sizes along `dim`."""
    others = math.prod(given.shape[:dim]) * math.prod(given.shape[dim + 1 :])
    return [size * others * given.itemsize for size in sizes]


def _broadcasting(
    tensor: torch.Tensor, src_rank_in_group: int, timeout: float
) -> Callable[[NcclGroup], object]:
    return lambda group: _broadcast(group, tensor, src_rank_in_group, timeout)


def _broadcast(group: NcclGroup, tensor: torch.Tensor, src_rank_in_group: int, timeout: float) -> Work | None:
    options = _options(BroadcastOptions, timeout)
    options.rootRank, options.rootTensor = src_rank_in_group, 0
    return group.broadcast([tensor], options)


def _options(kind: Callable[[], Options], timeout: float) -> Options:
    options = kind()
    options.timeout = timedelta(seconds=timeout)
    return options
