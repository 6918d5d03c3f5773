"""What torch.distributed is on a rank."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from ..core.errors import BridgeError
from ..core.generation import Generation

if TYPE_CHECKING:
    from torch.distributed import ProcessGroup


class World(Protocol):
    """torch.distributed's default group and named groups in one generation after another."""

    def enter(self, generation: Generation, timeout: float) -> None:
        """Leaves the last generation's groups, and makes this one's. Called while no function runs."""

    def group(self, name: str) -> ProcessGroup:
        """The process group of a named group. Raises UNKNOWN_GROUP."""

    def counts(self) -> Mapping[str, int]:
        """How many collectives this rank has begun in each group, by torch's name."""

    def shut(self, error: BridgeError) -> None:
        """Lets every call that waits in torch.distributed raise at once. Never blocks."""
