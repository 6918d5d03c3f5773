"""One member of a group on MPI."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import cast

import torch

from ...core.coordinator import Coordinator, ReduceOp
from ..pieces import concatenated, side_by_side
from .binding import MPI
from .buffers import memory
from .channel import Channel
from .errors import data_failed
from .reducer import Reducer


class MpiCoordinator(Coordinator):
    """Implements `core.coordinator.Coordinator` on one communicator, with MPI's nonblocking operations.

    Tensors move as bytes, so that every dtype works. Tensors without elements never enter MPI, unless others have
    some: all members have agreed on the sizes. Collectives, and sends and receives, may run at the same time: MPI keeps
    them apart. `retire` gets the channel when the group is closed.
    """

    def __init__(
        self,
        channel: Channel,
        rank_in_group: int,
        tag_of: Callable[[int], int],
        retire: Callable[[Channel], None],
    ) -> None:
        self._channel = channel
        self._rank_in_group = rank_in_group
        self._size = len(channel.ranks)
        self._tag_of = tag_of
        self._retire = retire
        self._reducer = Reducer(channel, rank_in_group)

    def barrier(self, timeout: float) -> None:
        """MPI_Ibarrier."""
        self._channel.collective(lambda comm: comm.Ibarrier(), timeout)

    def broadcast(self, tensor: object, src_rank_in_group: int, timeout: float) -> object:
        """MPI_Ibcast, in a new tensor."""
        given = cast(torch.Tensor, tensor)
        if self._rank_in_group == src_rank_in_group:
            result = given.clone(memory_format=torch.contiguous_format)
        else:
            result = torch.empty_like(given, memory_format=torch.contiguous_format)
        if result.numel():
            data = [memory(result), MPI.BYTE]
            self._channel.collective(lambda comm: comm.Ibcast(data, root=src_rank_in_group), timeout)
        return result

    def scatter(self, tensor: object, src_rank_in_group: int, dim: int, timeout: float) -> object:
        """MPI_Iscatter of parts side by side."""
        given = cast(torch.Tensor, tensor)
        shape, parts = given.shape, None
        if self._rank_in_group == src_rank_in_group:
            size = given.shape[dim] // self._size
            parts = side_by_side(given, dim, [size] * self._size)
            shape = torch.Size([*shape[:dim], size, *shape[dim + 1 :]])
        result = torch.empty(shape, dtype=given.dtype)
        if result.numel():
            sent = None if parts is None else [parts.numpy(), result.nbytes, MPI.BYTE]
            received = [memory(result), MPI.BYTE]
            self._channel.collective(lambda comm: comm.Iscatter(sent, received, src_rank_in_group), timeout)
        return result

    def gather(
        self, tensor: object, dst_rank_in_group: int, dim: int, sizes: Sequence[int], timeout: float
    ) -> object | None:
        """MPI_Igatherv into one buffer, laid out along `dim` afterwards."""
        given = cast(torch.Tensor, tensor).contiguous()
        counts = _counts(given, dim, sizes)
        receives = self._rank_in_group == dst_rank_in_group
        pieces = torch.empty(sum(counts) // given.itemsize if receives else 0, dtype=given.dtype)
        if any(counts):
            sent = [memory(given), MPI.BYTE]
            received = [memory(pieces), counts, MPI.BYTE] if receives else None
            self._channel.collective(lambda comm: comm.Igatherv(sent, received, dst_rank_in_group), timeout)
        return concatenated(pieces, given.shape, dim, sizes) if receives else None

    def reduce(self, tensor: object, op: ReduceOp, dst_rank_in_group: int, timeout: float) -> object | None:
        """MPI_Ireduce, or torch's reduction of what was exchanged."""
        return self._reducer.reduce(cast(torch.Tensor, tensor), op, dst_rank_in_group, timeout)

    def all_reduce(self, tensor: object, op: ReduceOp, timeout: float) -> object:
        """MPI_Iallreduce, or torch's reduction of what was exchanged."""
        return self._reducer.all_reduce(cast(torch.Tensor, tensor), op, timeout)

    def reduce_scatter(
        self, tensor: object, op: ReduceOp, dim: int, sizes: Sequence[int], timeout: float
    ) -> object:
        """MPI_Ireduce_scatter of parts side by side, or torch's reduction of what was exchanged."""
        return self._reducer.reduce_scatter(cast(torch.Tensor, tensor), op, dim, sizes, timeout)

    def scan(self, tensor: object, op: ReduceOp, exclusive: bool, timeout: float) -> object:
        """MPI_Iscan or MPI_Iexscan, or torch's reductions of what was exchanged."""
        return self._reducer.scan(cast(torch.Tensor, tensor), op, exclusive, timeout)

    def all_gather(self, tensor: object, dim: int, sizes: Sequence[int], timeout: float) -> object:
        """MPI_Iallgatherv into one buffer, laid out along `dim` afterwards."""
        given = cast(torch.Tensor, tensor).contiguous()
        counts = _counts(given, dim, sizes)
        pieces = torch.empty(sum(counts) // given.itemsize, dtype=given.dtype)
        if any(counts):
            sent, received = [memory(given), MPI.BYTE], [memory(pieces), counts, MPI.BYTE]
            self._channel.collective(lambda comm: comm.Iallgatherv(sent, received), timeout)
        return concatenated(pieces, given.shape, dim, sizes)

    def all_to_all(self, tensor: object, dim: int, sizes: Sequence[Sequence[int]], timeout: float) -> object:
        """MPI_Ialltoallv of parts side by side into one buffer, laid out along `dim` afterwards."""
        given = cast(torch.Tensor, tensor)
        sent = sizes[self._rank_in_group]
        received = [row[self._rank_in_group] for row in sizes]
        counts = _counts(given, dim, received)
        pieces = torch.empty(sum(counts) // given.itemsize, dtype=given.dtype)
        # A member that sends and receives nothing takes part, too, unless all are such members.
        if any(_counts(given, dim, [size for row in sizes for size in row])):
            going = [side_by_side(given, dim, sent).numpy(), _counts(given, dim, sent), MPI.BYTE]
            coming = [memory(pieces), counts, MPI.BYTE]
            self._channel.collective(lambda comm: comm.Ialltoallv(going, coming), timeout)
        return concatenated(pieces, given.shape, dim, received)

    def send(self, tensor: object, dst_rank_in_group: int, tag: int, timeout: float) -> None:
        """MPI_Isend. A small tensor may be on its way when this returns."""
        given = cast(torch.Tensor, tensor).contiguous()
        if given.numel():
            data = [memory(given), MPI.BYTE]
            self._channel.send(lambda comm: comm.Isend(data, dst_rank_in_group, self._tag_of(tag)), timeout)

    def recv(self, tensor: object, src_rank_in_group: int, tag: int, timeout: float) -> None:
        """MPI_Irecv. Raises BACKEND_FAILED as well when what comes is of another size."""
        result = cast(torch.Tensor, tensor)
        if not result.numel():
            return
        data, status = [memory(result), MPI.BYTE], MPI.Status()
        self._channel.receive(
            lambda comm: comm.Irecv(data, src_rank_in_group, self._tag_of(tag)), timeout, status
        )
        if status.Get_count(MPI.BYTE) != result.nbytes:
            raise data_failed(
                f"{status.Get_count(MPI.BYTE)} bytes came from rank {src_rank_in_group} in the group for a tensor of "
                f"{result.nbytes}"
            )

    def close(self) -> None:
        """Fails operations that run; returns the communicator to MPI when that is safe."""
        self._channel.close()
        self._retire(self._channel)


def _counts(given: torch.Tensor, dim: int, sizes: Sequence[int]) -> list[int]:
    """Bytes of tensors like `given` but for their sizes along `dim`."""
    others = math.prod(given.shape[:dim]) * math.prod(given.shape[dim + 1 :])
    return [size * others * given.itemsize for size in sizes]
