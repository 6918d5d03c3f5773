"""Functions that tests call on ranks."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import torch

import rankbridge_server

KEPT: dict[str, Any] = {}
OPEN = threading.Event()


@rankbridge_server.function
def echo(value: Any) -> Any:
    """Returns what it is given."""
    return value


@rankbridge_server.function
def scaled(batch: torch.Tensor, /, factor: float = 2.0, *, shift: float = 0.0) -> torch.Tensor:
    """Scales a batch.

    Returns a new tensor: `batch * factor + shift`.
    """
    return batch * factor + shift


@rankbridge_server.function
def add_(tensor: torch.Tensor, number: float) -> None:
    """Adds a number to every element, in place."""
    tensor.add_(number)


@rankbridge_server.function
def collected(*numbers: int, **named: str) -> dict[str, Any]:
    return {"numbers": list(numbers), "named": named}


@rankbridge_server.function(name="place")
def where(context: rankbridge_server.Context) -> tuple[int, int]:
    """Rank and size."""
    return context.rank, context.world_size


@rankbridge_server.function
def fail(text: str, rank: int, context: rankbridge_server.Context) -> int:
    """Raises on one rank."""
    if context.rank == rank:
        raise_it(text)
    return context.rank


def raise_it(text: str) -> None:
    raise LookupError(text)


@rankbridge_server.function
def no_value() -> object:
    """Returns something that has no value."""
    return object()


@rankbridge_server.function
def steps(count: int, *, size: int = 0, context: rankbridge_server.Context) -> int:
    """Reports steps."""
    for step in range(1, count + 1):
        context.report(step=step, rank=context.rank, padding=b"\xff" * size)
    return count


@rankbridge_server.function
def halves(number: float) -> Iterator[float]:
    """Yields halves until one is below 1, and returns how many there were."""
    count = 0
    while number >= 1:
        number /= 2
        count += 1
        yield number
    return count


@rankbridge_server.function
def until_cancelled(context: rankbridge_server.Context) -> str:
    """Runs until it is asked to end."""
    context.report(running=True)
    while not context.cancelled:
        OPEN.wait(0.01)
    return "asked to end"


@rankbridge_server.function
def gated(context: rankbridge_server.Context) -> int:
    """Reports, waits until `open_gate` was called in its process, and reports again."""
    context.report(torch.tensor([1.5]))
    OPEN.wait(60)
    context.report("opened")
    return context.rank


@rankbridge_server.function
def open_gate(is_open: bool) -> None:
    """Opens the gate of `gated`, or closes it."""
    if is_open:
        OPEN.set()
    else:
        OPEN.clear()
