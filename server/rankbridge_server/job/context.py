"""What a function of the user's knows of its rank and of its call."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..core.errors import BridgeError, ErrorCode
from ..core.generation import Generation
from ..core.operations.outcome import Packed
from .values import Written

if TYPE_CHECKING:
    from torch.distributed import ProcessGroup

    from .host import FunctionHost


class Context:
    """The rank on which a function runs, and the call for which it does.

    Attributes:
        rank: Rank in the gang; torch.distributed's rank, too.
        world_size: Ranks in the gang.
        generation: Number of the generation.
        new_ranks: Ranks that were not in this process's last generation, in ascending order: those that came as
            replacements, or for the first time. In the first generation, all.
        operation_id: Id of the call. Empty: it has none.
    """

    def __init__(
        self,
        host: FunctionHost,
        generation: Generation,
        operation_id: str = "",
        is_cancelled: Callable[[], bool] = lambda: False,
        report: Callable[[Packed], None] = lambda value: None,
    ) -> None:
        """Made by the rank."""
        self.rank = generation.rank
        self.world_size = generation.world_size
        self.generation = generation.number
        self.new_ranks = host.new_ranks
        self.operation_id = operation_id
        self._host = host
        self._formed = generation
        self._is_cancelled = is_cancelled
        self._report = report

    @property
    def is_new(self) -> bool:
        """Whether this rank is one of the new ones."""
        return self.rank in self.new_ranks

    @property
    def cancelled(self) -> bool:
        """Whether the function should end: its deadline has passed, or its caller has gone or withdrawn the call."""
        return self._is_cancelled()

    def check(self) -> None:
        """Raises an error if the function should end. To be called between steps."""
        if self.cancelled:
            raise BridgeError.of(ErrorCode.CANCELLED, "the function was asked to end", indefinite=True)

    def report(self, value: object = None, /, **values: object) -> None:
        """Reports something to whoever watches the call: a value, or a map of names to values. Never waits.

        Tensors go by value. The rank keeps the newest 1,024 reports of a call, of at most 4 MiB together.

        Raises:
            TypeError: Something has no value.
        """
        if value is not None and values:
            raise TypeError("report takes one value, or named ones")
        written = Written(values if values or value is None else value, None)
        self._report(Packed(written.value.SerializeToString()))

    def group(self, name: str = "world") -> ProcessGroup:
        """Torch's process group of a named group, its members in the group's order.

        Raises:
            BridgeError: UNKNOWN_GROUP: there is none, or this rank is no member. UNSUPPORTED_OPERATION: the backend has
                no process groups.
        """
        return self._host.process_group(name, self._formed)

    def broadcast_state(self, state: dict[str, Any], *, version: int = 0) -> dict[str, Any]:
        """Brings a state, as of ``state_dict()``, from a rank that has it to those that have not.

        All ranks call it. The source is the lowest of those that are not new and have the highest version; if all are
        new, of all. Those that are new, and those of a lower version, get its state. On the others it returns `state`
        itself, unchanged.

        Args:
            state: This rank's: a dict of values and tensors, nested as may be.
            version: A number that grows with the state, as that of the last step: when a step is cut off, some ranks
                may have done it, and others not.

        Returns:
            On a rank that gets it the source's state, in new tensors.

        Raises:
            TypeError: Something in it has no value.
        """
        return self._host.broadcast_state(state, version, self.is_new)
