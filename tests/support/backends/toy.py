"""A backend of torch.distributed as somebody would write a first one: pure Python, over the store alone.

Each member leaves its bytes in the store; the last one to come wakes the others, and everybody reads everything.
"""

# mypy: disable-error-code="override, call-arg"
# Authors do without works and overloads, and torch's stubs know one of two ways to make a group.

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import reduce as folded
from typing import Any

import torch
import torch.distributed as dist

Tensors = list[torch.Tensor]
Combine = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]

COMBINE: Sequence[tuple[Any, Combine]] = (
    (dist.ReduceOp.SUM, torch.add),
    (dist.ReduceOp.AVG, torch.add),
    (dist.ReduceOp.PRODUCT, torch.mul),
    (dist.ReduceOp.MIN, torch.minimum),
    (dist.ReduceOp.MAX, torch.maximum),
    (dist.ReduceOp.BAND, torch.bitwise_and),
    (dist.ReduceOp.BOR, torch.bitwise_or),
    (dist.ReduceOp.BXOR, torch.bitwise_xor),
)


class Toy(dist.ProcessGroup):
    """One member."""

    def __init__(self, store: Any, rank: int, size: int) -> None:
        super().__init__(rank, size)
        self.store = store
        self.meetings = 0
        self.messages: dict[str, int] = {}

    def getBackendName(self) -> str:
        """For torch."""
        return "toy"

    def allreduce(self, tensors: Tensors, opts: Any) -> None:
        """Reduces in the order of ranks."""
        for tensor in tensors:
            tensor.copy_(self.reduced(self.exchanged(tensor), opts.reduceOp))

    def reduce(self, tensors: Tensors, opts: Any) -> None:
        """As allreduce, at the root."""
        given = self.exchanged(tensors[0])
        if self.rank() == opts.rootRank:
            tensors[0].copy_(self.reduced(given, opts.reduceOp))

    def reduce_scatter(self, outputs: Tensors, inputs: Sequence[Tensors], opts: Any) -> None:
        """A part of the whole reduction."""
        given = [self.exchanged(it) for it in inputs[0]]
        outputs[0].copy_(self.reduced(given[self.rank()], opts.reduceOp))

    def broadcast(self, tensors: Tensors, opts: Any) -> None:
        """Takes the root's."""
        tensors[0].copy_(self.exchanged(tensors[0])[opts.rootRank])

    def allgather(self, outputs: Sequence[Tensors], inputs: Tensors, opts: Any) -> None:
        """Takes everybody's."""
        for place, it in zip(outputs[0], self.exchanged(inputs[0]), strict=True):
            place.copy_(it)

    def gather(self, outputs: Sequence[Tensors], inputs: Tensors, opts: Any) -> None:
        """Takes everybody's, at the root."""
        given = self.exchanged(inputs[0])
        if outputs:
            for place, it in zip(outputs[0], given, strict=True):
                place.copy_(it)

    def scatter(self, outputs: Tensors, inputs: Sequence[Tensors], opts: Any) -> None:
        """Takes a part of the root's."""
        parts = torch.cat(list(inputs[0])) if inputs else outputs[0][:0]
        self.exchange(as_bytes(parts))
        whole = as_tensor(self.brought(opts.rootRank), outputs[0])
        outputs[0].copy_(whole[self.rank() * outputs[0].numel() :][: outputs[0].numel()])

    def alltoall_base(
        self, output: torch.Tensor, given: torch.Tensor, received: list[int], sent: list[int], opts: Any
    ) -> None:
        """Takes from everybody what is for this member; `given` is flat, and sizes are elements."""
        starts = [0, *torch.tensor(sent).cumsum(0).tolist()]
        for peer in range(self.size()):
            part = given[starts[peer] : starts[peer + 1]]
            self.put(f"to/{peer}", as_bytes(part))
        self.exchange(b"")
        parts = [
            as_tensor(self.store.get(f"{self.meetings}/{it}/to/{self.rank()}"), output)
            for it in range(self.size())
        ]
        output.copy_(torch.cat(parts))

    def barrier(self, opts: Any) -> None:
        """Exchanges nothing."""
        self.exchange(b"")

    def send(self, tensors: Tensors, dst: int, tag: int) -> None:
        """Leaves it in the store."""
        self.store.set(self.next_message(self.rank(), dst, tag), as_bytes(tensors[0]))

    def recv(self, tensors: Tensors, src: int, tag: int) -> None:
        """Takes it from the store."""
        key = self.next_message(src, self.rank(), tag)
        tensors[0].copy_(as_tensor(self.store.get(key), tensors[0]))
        self.store.delete_key(key)

    def next_message(self, src: int, dst: int, tag: int) -> str:
        """The key of the next one of this kind."""
        kind = f"message/{src}/{dst}/{tag}"
        self.messages[kind] = self.messages.get(kind, 0) + 1
        return f"{kind}/{self.messages[kind]}"

    def put(self, what: str, data: bytes) -> None:
        """Leaves something for the coming exchange."""
        self.store.set(f"{self.meetings + 1}/{self.rank()}/{what}", data)

    def exchange(self, data: bytes) -> None:
        """Returns when everybody has left its data."""
        self.put("all", data)
        self.meetings += 1
        place = self.store.add(f"{self.meetings}/came", 1)
        self.store.set(f"{self.meetings}/place/{place}", str(self.rank()))
        if place == self.size():
            self.wake()
        self.store.wait([f"{self.meetings}/awake"])

    def wake(self) -> None:
        """The last one wakes the others."""
        self.store.set(f"{self.meetings}/awake", "")

    def brought(self, rank: int) -> bytes:
        """What a member has left for the last exchange."""
        return bytes(self.store.get(f"{self.meetings}/{rank}/all"))

    def exchanged(self, tensor: torch.Tensor) -> Tensors:
        """Everybody's tensor, by rank."""
        self.exchange(as_bytes(tensor))
        return [as_tensor(self.brought(rank), tensor) for rank in range(self.size())]

    def reduced(self, given: Tensors, op: Any) -> torch.Tensor:
        """Everybody's tensors in one."""
        # torch's own object is equal to the name of its reduction, and has another hash.
        combine = next(it for name, it in COMBINE if op == name)
        total = folded(combine, given)
        return total / len(given) if op == dist.ReduceOp.AVG else total


def as_bytes(tensor: torch.Tensor) -> bytes:
    """Its elements."""
    return bytes(tensor.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())


def as_tensor(data: bytes, like: torch.Tensor) -> torch.Tensor:
    """Elements as of another tensor; flat, if there are not as many."""
    flat = torch.frombuffer(bytearray(data), dtype=like.dtype) if len(data) else like.new_empty(0)
    return flat.view(like.shape) if flat.numel() == like.numel() else flat


def create(store: Any, rank: int, size: int, timeout: timedelta) -> Toy:
    """What torch calls for the backend of a registered name, and rankbridge for that of a module."""
    return Toy(store, rank, size)
