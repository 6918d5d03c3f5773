"""Where the page has its state from."""

from __future__ import annotations

from typing import Protocol


class Source(Protocol):
    """Writes the state of a gang or a job into the model, while somebody looks."""

    def start(self) -> None:
        """Begins to look."""

    def stop(self) -> None:
        """Ends it; asks no rank any more."""

    def ask(self) -> None:
        """Asks for a verdict soon."""
