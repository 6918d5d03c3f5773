"""Where the page has its state from."""

from __future__ import annotations

from typing import Any, Protocol, TypedDict


class Tensors(TypedDict):
    """Tensors of a rank, the first ones: of each its session, ref, dtype, shape and bytes. `why`: why not more."""

    tensors: list[dict[str, Any]]
    why: str


class Source(Protocol):
    """Writes the state of a gang or a job into the model, while somebody looks."""

    def start(self) -> None:
        """Begins to look."""

    def stop(self) -> None:
        """Ends it; asks no rank any more."""

    def ask(self) -> None:
        """Asks for a verdict soon."""

    def tensors(self, rank: int) -> Tensors:
        """What a rank holds."""
