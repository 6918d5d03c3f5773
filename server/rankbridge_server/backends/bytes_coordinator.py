"""One member of a group on an engine that moves bytes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import cast

import torch

from ..core.coordinator import Coordinator
from .pieces import as_bytes, byte_counts, concatenated, copied, side_by_side, with_size

_NOTHING = nullcontext()
_CPU = torch.device("cpu")


class BytesCoordinator(Coordinator):
    """The collectives of `core.coordinator.Coordinator` that only move data, for tensors of every dtype and layout.

    A subclass moves flat bytes in the abstract methods, which return when that is done. Tensors without elements never
    enter the engine, unless other members' tensors have elements: all members have agreed on the sizes.
    """

    def __init__(self, rank_in_group: int, size: int, device: torch.device = _CPU) -> None:
        self._rank_in_group = rank_in_group
        self._size = size
        self._device = device

    def broadcast(self, tensor: object, src_rank_in_group: int, timeout: float) -> object:
        """The engine's broadcast, in a new tensor."""
        given = cast(torch.Tensor, tensor)
        with self._inside():
            if self._rank_in_group == src_rank_in_group:
                result = copied(given)
            else:
                result = torch.empty_like(given, memory_format=torch.contiguous_format)
            if result.numel():
                self._broadcast(as_bytes(result), src_rank_in_group, timeout)
        return result

    def scatter(
        self, tensor: object, src_rank_in_group: int, dim: int, sizes: Sequence[int], timeout: float
    ) -> object:
        """The engine's scatter of parts side by side."""
        given = cast(torch.Tensor, tensor)
        shape = with_size(given.shape, dim, sizes[self._rank_in_group])
        with self._inside():
            counts = byte_counts(given, dim, sizes)
            result = self._empty(shape, given.dtype)
            if any(counts):
                gives = self._rank_in_group == src_rank_in_group
                parts = side_by_side(given, dim, sizes) if gives else self._empty([0], torch.uint8)
                self._scatter(parts, as_bytes(result), counts, src_rank_in_group, timeout)
        return result

    def gather(
        self, tensor: object, dst_rank_in_group: int, dim: int, sizes: Sequence[int], timeout: float
    ) -> object | None:
        """The engine's gather into one buffer, rearranged along `dim`."""
        receives = self._rank_in_group == dst_rank_in_group
        with self._inside():
            given = cast(torch.Tensor, tensor).contiguous()
            counts = byte_counts(given, dim, sizes)
            pieces = self._empty([sum(counts) // given.itemsize if receives else 0], given.dtype)
            if any(counts):
                self._gather(as_bytes(given), as_bytes(pieces), counts, dst_rank_in_group, timeout)
            return concatenated(pieces, given.shape, dim, sizes) if receives else None

    def all_gather(self, tensor: object, dim: int, sizes: Sequence[int], timeout: float) -> object:
        """The engine's all_gather into one buffer, rearranged along `dim`."""
        with self._inside():
            given = cast(torch.Tensor, tensor).contiguous()
            counts = byte_counts(given, dim, sizes)
            pieces = self._empty([sum(counts) // given.itemsize], given.dtype)
            if any(counts):
                self._all_gather(as_bytes(given), as_bytes(pieces), counts, timeout)
            return concatenated(pieces, given.shape, dim, sizes)

    def all_to_all(self, tensor: object, dim: int, sizes: Sequence[Sequence[int]], timeout: float) -> object:
        """The engine's all_to_all of parts side by side into one buffer, rearranged along `dim`."""
        given = cast(torch.Tensor, tensor)
        sent = sizes[self._rank_in_group]
        received = [row[self._rank_in_group] for row in sizes]
        with self._inside():
            counts = byte_counts(given, dim, received)
            pieces = self._empty([sum(counts) // given.itemsize], given.dtype)
            # A member that sends and receives nothing takes part, too, unless all are such members.
            if any(byte_counts(given, dim, [size for row in sizes for size in row])):
                parts = side_by_side(given, dim, sent)
                self._exchange(parts, as_bytes(pieces), byte_counts(given, dim, sent), counts, timeout)
            return concatenated(pieces, given.shape, dim, received)

    def _inside(self) -> AbstractContextManager[None]:
        """The context of an operation."""
        return _NOTHING

    @abstractmethod
    def _broadcast(self, data: torch.Tensor, src_rank_in_group: int, timeout: float) -> None:
        """Broadcasts in place."""

    def _scatter(
        self,
        parts: torch.Tensor,
        part: torch.Tensor,
        counts: Sequence[int],
        src_rank_in_group: int,
        timeout: float,
    ) -> None:
        """Scatters `parts`, which is empty except at the source. `counts`: of each member's bytes."""
        sent = counts if self._rank_in_group == src_rank_in_group else [0] * self._size
        self._exchange(parts, part, sent, self._only(src_rank_in_group, part.nbytes), timeout)

    def _gather(
        self,
        part: torch.Tensor,
        parts: torch.Tensor,
        counts: Sequence[int],
        dst_rank_in_group: int,
        timeout: float,
    ) -> None:
        """Gathers into `parts`, which is empty except at the destination. `counts`: of each member's bytes."""
        received = counts if self._rank_in_group == dst_rank_in_group else [0] * self._size
        self._exchange(part, parts, self._only(dst_rank_in_group, part.nbytes), received, timeout)

    @abstractmethod
    def _all_gather(
        self, part: torch.Tensor, parts: torch.Tensor, counts: Sequence[int], timeout: float
    ) -> None:
        """Gathers into `parts` everywhere. `counts`: of each member's bytes."""

    @abstractmethod
    def _exchange(
        self,
        given: torch.Tensor,
        result: torch.Tensor,
        sent: Sequence[int],
        received: Sequence[int],
        timeout: float,
    ) -> None:
        """Sends each member its next bytes of `given`, and receives the others' side by side into `result`."""

    def _only(self, rank_in_group: int, nbytes: int) -> list[int]:
        """So many bytes for one member, none for others."""
        return [nbytes if rank == rank_in_group else 0 for rank in range(self._size)]

    def _empty(self, shape: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
        return torch.empty(shape, dtype=dtype, device=self._device)
