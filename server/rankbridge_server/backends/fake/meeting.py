"""Where the members of a group in one process exchange tensors."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Self, cast

import torch

from ...core.errors import BridgeError, ErrorCode, Phase


class Offered(tuple[torch.Tensor | None, ...]):
    """What the members of one exchange gave, by rank in group; all of them get the same object."""

    def __new__(cls, tensors: Iterable[torch.Tensor | None]) -> Self:
        """Holds the tensors."""
        given = super().__new__(cls, tensors)
        given._making = threading.Lock()
        given._made = None
        return given

    _making: threading.Lock
    _made: torch.Tensor | None

    def once(self, make: Callable[[Sequence[torch.Tensor]], torch.Tensor]) -> torch.Tensor:
        """What `make` makes of them, which is the same for every member and is made for the first that asks."""
        with self._making:
            if self._made is None:
                self._made = make(cast(Sequence[torch.Tensor], self))
            return self._made


class Meeting:
    """One group. Every collective is one exchange: each member gives something, and gets what all gave."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._changed = threading.Condition()
        self._round = 0
        self._given: dict[int, torch.Tensor | None] = {}
        self._result = Offered(())
        self._broken = False
        self._sent: dict[tuple[int, int], deque[torch.Tensor]] = {}

    def exchange(self, rank_in_group: int, given: torch.Tensor | None, timeout: float) -> Offered:
        """What each member gave, by rank in group. Raises BACKEND_FAILED after `timeout` seconds, for ever after."""
        with self._changed:
            mine = self._round
            self._given[rank_in_group] = given
            if len(self._given) == self._size and not self._broken:
                self._result = Offered(self._given[rank] for rank in range(self._size))
                self._given = {}
                self._round += 1
                self._changed.notify_all()
                return self._result
            end = time.monotonic() + timeout
            while self._round == mine and not self._broken:
                left = end - time.monotonic()
                if left <= 0:
                    self._broken = True
                    self._changed.notify_all()
                    break
                self._changed.wait(left)
            if self._round == mine:
                raise _failed(f"{len(self._given)} of {self._size} members entered")
            return self._result

    def put(self, dst_rank_in_group: int, tag: int, tensor: torch.Tensor) -> None:
        """Send a tensor. Raises BACKEND_FAILED when the meeting is broken."""
        with self._changed:
            if self._broken:
                raise _failed("the group was closed")
            self._sent.setdefault((dst_rank_in_group, tag), deque()).append(tensor)
            self._changed.notify_all()

    def take(self, rank_in_group: int, tag: int, timeout: float) -> torch.Tensor:
        """The next tensor that was sent to this member with this tag. Raises BACKEND_FAILED after `timeout` seconds."""
        key = (rank_in_group, tag)
        with self._changed:
            self._changed.wait_for(lambda: self._broken or key in self._sent, timeout)
            if key not in self._sent:
                raise _failed(f"nothing came with tag {tag}")
            waiting = self._sent[key]
            tensor = waiting.popleft()
            if not waiting:
                del self._sent[key]
            return tensor

    def close(self) -> None:
        """Break it: whoever is inside, or comes, fails."""
        with self._changed:
            self._broken = True
            self._changed.notify_all()


def _failed(reason: str) -> BridgeError:
    return BridgeError.of(
        ErrorCode.BACKEND_FAILED, f"fake backend: {reason}", phase=Phase.DATA, indefinite=True
    )
