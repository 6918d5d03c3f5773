# Written by scripts/unasync.py from _async/growths.py: change that file, not this one.
"""Watching how the record of a rank grows, blocking."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Self

from rankbridge._plan.calls import Call
from rankbridge._plan.positions import Position
from rankbridge._plan.record import RecordGrowth
from rankbridge._transport.threads.channels import Channels
from rankbridge._transport.threads.readings import Readings
from rankbridge.errors import DeadlineExceededError, RankBridgeError


class RecordWatch:
    """How the record of one rank grows: an iterator that waits for the next ``RecordGrowth``.

    The first is there at once. Each tells what has ended since the one before, and what is pending. Where nothing
    happens, one comes each second: a rank that gives none for longer is stopped, or cannot be reached. A slow reader
    delays no rank: it loses operations, and `lost` counts them. Use it in a ``with`` statement, or close it.

    Attributes:
        position: How far the record was read, for `after` of another watch. None: nothing was read yet.
    """

    def __init__(self, channels: Channels, call: Call[RecordGrowth]) -> None:
        """Made by ``Rank.watch_record``."""
        self.position: Position | None = None
        self._call = call
        self._first: RecordGrowth | None = None
        self._open = True
        self._readings = Readings(channels, [call])

    def __iter__(self) -> Self:
        """Gives itself."""
        return self

    def __next__(self) -> RecordGrowth:
        """Waits for the next growth.

        Raises:
            RankBridgeError: The rank tells nothing more, because of this.
        """
        growth, self._first = self._first, None
        if growth is None:
            growth = self._next(None)
        if growth is None:
            raise StopIteration
        self.position = growth.position
        return growth

    def __enter__(self) -> Self:
        """Gives itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Closes it."""
        self.close()

    def close(self) -> None:
        """Stops watching. Whoever waits for a growth gets none."""
        self._readings.close()

    def _begin(self) -> Self:
        """Waits until the rank has answered.

        Raises:
            RankBridgeError: It cannot be watched.
        """
        try:
            self._first = self._next(time.monotonic() + self._call.deadline)
        except TimeoutError:
            self.close()
            raise DeadlineExceededError(
                "the rank did not give its record", rank=self._call.rank, operation=self._call.kind
            ) from None
        except BaseException:
            self.close()
            raise
        return self

    def _next(self, until: float | None) -> RecordGrowth | None:
        if not self._open:
            return None
        said = self._readings.next(until)
        if said is None or isinstance(said.what, RecordGrowth):
            return None if said is None else said.what
        self._open = False
        if isinstance(said.what, RankBridgeError):
            raise said.what
        return None
