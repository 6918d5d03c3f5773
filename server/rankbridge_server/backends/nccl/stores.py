"""How a ProcessGroupNCCL gets the id of its communicator without a store that members share.

It looks for the id, and the member of rank 0 in the group, who makes it, leaves it, under a key that counts the group's
communicators: there is one. That member asks NCCL for the id and begins to connect in one call of torch's, and leaves
the id in between: its store stops it there until the others have the id as well.
"""

from __future__ import annotations

import threading
from concurrent.futures import Future

from torch._C import _distributed_c10d as c10d

from .raw import Store

_FIRST_COMMUNICATOR = "0"


class ReadingStore(c10d.HashStore):
    """The store of a member that is given the id."""

    def give(self, unique_id: bytes) -> None:
        """Where ProcessGroupNCCL of torch 2.6 to 2.13 looks for it."""
        # torch's stubs say str, and its binding takes both.
        self.set(_FIRST_COMMUNICATOR, unique_id)  # type: ignore[arg-type]


class WritingStore(Store):
    """The store of the member that makes the id: it holds up whoever leaves it, until `let_go` or `give_up`.

    `unique_id`: what was left.
    """

    def __init__(self) -> None:
        super().__init__()
        self.unique_id: Future[bytes] = Future()
        self._decided = threading.Event()
        self._wanted = False

    def set(self, key: str, value: bytes) -> None:  # type: ignore[override]
        """Called by torch. Raises RuntimeError when nobody wants the communicator any more."""
        if key != _FIRST_COMMUNICATOR:
            raise RuntimeError(
                f"this torch leaves the id of a communicator under {key!r}, which is not known"
            )
        self.unique_id.set_result(bytes(value))
        self._decided.wait()
        if not self._wanted:
            raise RuntimeError("the forming was given up")

    def let_go(self) -> None:
        """Let it connect."""
        self._wanted = True
        self._decided.set()

    def give_up(self) -> None:
        """Let it fail, if it has not been let go."""
        self._decided.set()
