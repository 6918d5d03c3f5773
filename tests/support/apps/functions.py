"""Functions that tests load into ranks: of every kind of argument, result and failure."""

from __future__ import annotations

import os
import threading
from collections.abc import Generator
from pathlib import Path
from typing import Any

import torch

import rankbridge_server
from rankbridge_server import Context

HELD = threading.Event()
STATE: dict[str, int] = {}


@rankbridge_server.function
def add(a: int, b: int = 2, *rest: int, scale: float = 1.0, **more: int) -> float:
    """Adds what it is given.

    All of it.
    """
    return (a + b + sum(rest) + sum(more.values())) * scale


@rankbridge_server.function(name="echo")
def give_back(value: Any) -> Any:
    """Returns its argument."""
    return value


@rankbridge_server.function
def about(context: Context) -> dict[str, Any]:
    return {
        "rank": context.rank,
        "world_size": context.world_size,
        "generation": context.generation,
        "operation_id": context.operation_id,
        "new_ranks": list(context.new_ranks),
    }


@rankbridge_server.function
def double(tensor: torch.Tensor) -> dict[str, Any]:
    """Doubles a tensor in place, and returns the old one."""
    before = tensor.clone()
    tensor *= 2
    return {"before": before, "sum": float(tensor.sum())}


@rankbridge_server.function
def shared_tensor() -> torch.Tensor:
    """Returns what the module keeps, and changes it afterwards with the next call."""
    tensor: torch.Tensor = KEPT
    KEPT.add_(1)
    return tensor


KEPT = torch.zeros(3)


@rankbridge_server.function
def fail(context: Context, on: int, text: str = "no luck", folder: str = "") -> str:
    """Raises on one rank. `folder`: it does so when all the others have left a file there, and so have begun."""
    if folder and context.rank != on:
        Path(folder, str(context.rank)).touch()
    if context.rank == on:
        while folder and len(os.listdir(folder)) < context.world_size - 1:
            context.check()
        _deeper(text)
    return f"rank {context.rank} went well"


def _deeper(text: str) -> None:
    raise LookupError(text)


@rankbridge_server.function
def leave(how: str) -> str:
    """Leaves in an unusual way."""
    if how == "exit":
        raise SystemExit(3)
    if how == "fork":
        if child := os.fork():
            return f"status {os.waitpid(child, 0)[1]}"
        return "from the child"
    return "plainly"


@rankbridge_server.function
def no_value(kind: str) -> object:
    match kind:
        case "set":
            return {"nested": [1, {2}]}
        case "sparse":
            return torch.eye(2).to_sparse()
        case "deep":
            deep: list[Any] = []
            for _ in range(60):
                deep = [deep]
            return deep
    return None


@rankbridge_server.function
def hold(context: Context) -> str:
    """Waits until it is let go, or asked to end."""
    context.report("held")
    while not HELD.wait(0.005):
        context.check()
    return "let go"


@rankbridge_server.function
def hold_on() -> str:
    """Waits until it is let go, whatever it is asked."""
    HELD.wait()
    return "let go"


@rankbridge_server.function
def let_go() -> None:
    HELD.set()


@rankbridge_server.function
def hold_again() -> None:
    HELD.clear()


@rankbridge_server.function
def count_up(context: Context, to: int) -> Generator[dict[str, int], None, int]:
    """Yields numbers, and returns their sum."""
    total = 0
    for number in range(to):
        total += number
        yield {"number": number, "rank": context.rank}
    return total


@rankbridge_server.function
def reporting(context: Context, many: int) -> int:
    for number in range(many):
        context.report(number=number, tensor=torch.tensor([number]))
    return many


@rankbridge_server.function
def remember(key: str, value: int) -> dict[str, int]:
    STATE[key] = value
    return STATE
