"""A class that looks like vLLM's GroupCoordinator, whose sums do not pass by torch.distributed, but by its store."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import PrefixStore


class GroupCoordinator:
    """Sums go by the store; what has tensors in a dictionary, by the store and by torch; a barrier by torch alone."""

    def __init__(self, group_ranks: Sequence[Sequence[int]], rank: int, name: str) -> None:
        for ranks in group_ranks:
            device_group, cpu_group = dist.new_group(list(ranks)), dist.new_group(list(ranks))
            if rank in ranks:
                self.ranks, self.device_group, self.cpu_group = list(ranks), device_group, cpu_group
        self.unique_name = f"{name}:0"
        self.world_size = len(self.ranks)
        self.rank_in_group = self.ranks.index(rank)
        self._store: Any = PrefixStore(f"{name}{self.ranks}", dist.distributed_c10d._get_default_store())
        self._calls = self._sent = self._received = 0

    def all_reduce(self, input_: torch.Tensor) -> torch.Tensor:
        """The sum."""
        return self._all_reduce_out_place(input_)

    def _all_reduce_out_place(self, input_: torch.Tensor) -> torch.Tensor:
        parts = [pickle.loads(it) for it in self._exchanged(pickle.dumps(input_.tolist()))]
        return torch.tensor(parts).sum(0)

    def all_gather(self, input_: torch.Tensor, dim: int = -1) -> torch.Tensor:
        """The parts, by torch."""
        found = [torch.empty_like(input_) for _ in self.ranks]
        dist.all_gather(found, input_, group=self.device_group)
        return torch.cat(found, dim)

    def broadcast(self, input_: torch.Tensor, src: int = 0) -> torch.Tensor:
        """By torch."""
        dist.broadcast(input_, self.ranks[src], group=self.device_group)
        return input_

    def broadcast_tensor_dict(
        self, tensor_dict: dict[str, torch.Tensor] | None = None, src: int = 0
    ) -> dict[str, torch.Tensor]:
        """Names and shapes by the store, tensors by torch."""
        self._calls += 1
        key = f"dict {self._calls}"
        if tensor_dict is not None:
            self._store.set(key, pickle.dumps({name: it.shape for name, it in tensor_dict.items()}))
        else:
            shapes = pickle.loads(self._store.get(key))
            tensor_dict = {name: torch.empty(shape) for name, shape in shapes.items()}
        self.unpacked()
        for it in tensor_dict.values():
            self.broadcast(it, src)
        return tensor_dict

    def unpacked(self) -> None:
        """Between what goes by the store and what goes by torch."""

    def send(self, tensor: torch.Tensor, dst: int | None = None) -> None:
        """By the store, to the next by default."""
        to = (self.rank_in_group + 1) % self.world_size if dst is None else dst
        self._sent += 1
        self._store.set(f"sent {self._sent} {self.rank_in_group} {to}", pickle.dumps(tensor.tolist()))

    def recv(self, size: torch.Size, dtype: torch.dtype, src: int | None = None) -> torch.Tensor:
        """By the store, from the last by default."""
        at = (self.rank_in_group - 1) % self.world_size if src is None else src
        self._received += 1
        data = self._store.get(f"sent {self._received} {at} {self.rank_in_group}")
        return torch.tensor(pickle.loads(data), dtype=dtype)

    def barrier(self) -> None:
        """By torch."""
        dist.barrier(group=self.cpu_group)

    def _exchanged(self, mine: bytes) -> list[bytes]:
        self._calls += 1
        self._store.set(f"{self._calls} {self.rank_in_group}", mine)
        return [self._store.get(f"{self._calls} {it}") for it in range(self.world_size)]
