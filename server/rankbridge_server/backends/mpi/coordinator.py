"""One member of a group on MPI."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

import torch

from ..errors import data_failed
from ..pieces import as_bytes
from .binding import MPI
from .channel import Channel
from .reductions import MpiReductions


class MpiCoordinator(MpiReductions):
    """Implements `core.coordinator.Coordinator` on one communicator, with MPI's nonblocking operations.

    Collectives, and sends and receives, may run at the same time: MPI keeps them apart. `retire` gets the channel when
    the group is closed.
    """

    def __init__(
        self,
        channel: Channel,
        rank_in_group: int,
        tag_of: Callable[[int], int],
        retire: Callable[[Channel], None],
    ) -> None:
        super().__init__(channel, rank_in_group)
        self._tag_of = tag_of
        self._retire = retire

    def barrier(self, timeout: float) -> None:
        """MPI_Ibarrier."""
        self._channel.collective(lambda comm: comm.Ibarrier(), timeout)

    def send(self, tensor: object, dst_rank_in_group: int, tag: int, timeout: float) -> None:
        """MPI_Isend. A small tensor may be on its way when this returns."""
        given = cast(torch.Tensor, tensor).contiguous()
        if given.numel():
            data = [as_bytes(given).numpy(), MPI.BYTE]
            self._channel.send(lambda comm: comm.Isend(data, dst_rank_in_group, self._tag_of(tag)), timeout)

    def recv(self, tensor: object, src_rank_in_group: int, tag: int, timeout: float) -> None:
        """MPI_Irecv. Raises BACKEND_FAILED as well when what comes is of another size."""
        result = cast(torch.Tensor, tensor)
        if not result.numel():
            return
        data, status = [as_bytes(result).numpy(), MPI.BYTE], MPI.Status()
        self._channel.receive(
            lambda comm: comm.Irecv(data, src_rank_in_group, self._tag_of(tag)), timeout, status
        )
        if status.Get_count(MPI.BYTE) != result.nbytes:
            raise data_failed(
                "MPI",
                f"{status.Get_count(MPI.BYTE)} bytes came from rank {src_rank_in_group} in the group for a tensor of "
                f"{result.nbytes}",
            )

    def close(self) -> None:
        """Fails operations that run; returns the communicator to MPI when that is safe."""
        self._channel.close()
        self._retire(self._channel)

    def _broadcast(self, data: torch.Tensor, src_rank_in_group: int, timeout: float) -> None:
        self._channel.collective(
            lambda comm: comm.Ibcast([data.numpy(), MPI.BYTE], root=src_rank_in_group), timeout
        )

    def _scatter(
        self,
        parts: torch.Tensor,
        part: torch.Tensor,
        counts: Sequence[int],
        src_rank_in_group: int,
        timeout: float,
    ) -> None:
        sent = [parts.numpy(), counts, MPI.BYTE] if parts.nbytes else None
        received = [part.numpy(), MPI.BYTE]
        self._channel.collective(lambda comm: comm.Iscatterv(sent, received, src_rank_in_group), timeout)

    def _gather(
        self,
        part: torch.Tensor,
        parts: torch.Tensor,
        counts: Sequence[int],
        dst_rank_in_group: int,
        timeout: float,
    ) -> None:
        sent = [part.numpy(), MPI.BYTE]
        received = [parts.numpy(), counts, MPI.BYTE] if parts.nbytes else None
        self._channel.collective(lambda comm: comm.Igatherv(sent, received, dst_rank_in_group), timeout)

    def _all_gather(
        self, part: torch.Tensor, parts: torch.Tensor, counts: Sequence[int], timeout: float
    ) -> None:
        sent, received = [part.numpy(), MPI.BYTE], [parts.numpy(), counts, MPI.BYTE]
        self._channel.collective(lambda comm: comm.Iallgatherv(sent, received), timeout)

    def _exchange(
        self,
        given: torch.Tensor,
        result: torch.Tensor,
        sent: Sequence[int],
        received: Sequence[int],
        timeout: float,
    ) -> None:
        going, coming = [given.numpy(), sent, MPI.BYTE], [result.numpy(), received, MPI.BYTE]
        self._channel.collective(lambda comm: comm.Ialltoallv(going, coming), timeout)
