"""The exchange of tensors between the members of a group in one process."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Self, cast

import torch

from ..errors import data_failed


class Exchanged(tuple[torch.Tensor | None, ...]):
    """The members' tensors of one exchange, by rank in group. All members get the same object."""

    def __new__(cls, tensors: Iterable[torch.Tensor | None]) -> Self:
        """Makes the tuple of the tensors."""
        given = super().__new__(cls, tensors)
        given._making = threading.Lock()
        given._made = None
        return given

    _making: threading.Lock
    _made: torch.Tensor | None

    def computed_once(self, make: Callable[[Sequence[torch.Tensor]], torch.Tensor]) -> torch.Tensor:
        """The result of `make` on the tensors, which the first caller makes for all members."""
        with self._making:
            if self._made is None:
                self._made = make(cast(Sequence[torch.Tensor], self))
            return self._made


class Meeting:
    """The meeting of one group. Every collective is one exchange of tensors between all members."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._changed = threading.Condition()
        self._round = 0
        self._offer: dict[int, torch.Tensor | None] = {}
        self._result = Exchanged(())
        self._broken = False
        self._sent: dict[tuple[int, int], deque[torch.Tensor]] = {}

    def exchange(self, rank_in_group: int, given: torch.Tensor | None, timeout: float) -> Exchanged:
        """Gives a tensor; returns all members' tensors. A timeout raises BACKEND_FAILED, now and ever after."""
        with self._changed:
            mine = self._round
            self._offer[rank_in_group] = given
            if len(self._offer) == self._size and not self._broken:
                self._result = Exchanged(self._offer[rank] for rank in range(self._size))
                self._offer = {}
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
                raise data_failed("The fake backend", f"{len(self._offer)} of {self._size} members entered")
            return self._result

    def put(self, dst_rank_in_group: int, tag: int, tensor: torch.Tensor) -> None:
        """Sends a tensor. Raises BACKEND_FAILED when the meeting is broken."""
        with self._changed:
            if self._broken:
                raise data_failed("The fake backend", "the group was closed")
            self._sent.setdefault((dst_rank_in_group, tag), deque()).append(tensor)
            self._changed.notify_all()

    def take(self, rank_in_group: int, tag: int, timeout: float) -> torch.Tensor:
        """The next tensor that was sent to this member with this tag. Raises BACKEND_FAILED after `timeout` seconds."""
        key = (rank_in_group, tag)
        with self._changed:
            self._changed.wait_for(lambda: self._broken or key in self._sent, timeout)
            if key not in self._sent:
                raise data_failed("The fake backend", f"nothing came with tag {tag}")
            waiting = self._sent[key]
            tensor = waiting.popleft()
            if not waiting:
                del self._sent[key]
            return tensor

    def close(self) -> None:
        """Breaks the meeting: every exchange fails, now and ever after."""
        with self._changed:
            self._broken = True
            self._changed.notify_all()
