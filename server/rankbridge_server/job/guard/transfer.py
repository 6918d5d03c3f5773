"""One send or receive that guard enters once both ends agree."""

from __future__ import annotations

import math
import re
from _thread import allocate_lock
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Protocol

from ...core.admission.admission import Ruling
from ...core.admission.matching import Match, Post
from ..watch.next_call import NextCall

PLACE = re.compile(r"rank_in_group (\d+)")

Enter = Callable[[int | None], Any]
"""Enters the backend. Of a receive from any source, with the source, by rank in the group."""


class AllTransfers(Protocol):
    """What a send or receive needs from all of them."""

    def enter(self, transfer: Transfer, match: Match) -> Any:
        """Enters the backend; gives its work."""

    def wait(self, transfer: Transfer, limit: float) -> None:
        """Waits until a transfer is settled, `limit` seconds at most."""

    def error_of(self, transfer: Transfer) -> Exception:
        """Why a transfer that was answered was not entered."""


class Transfer:
    """One send or receive of this rank. `peer`: rank in the job; None: any. `number`: in its channel, from 1.

    `carried`: the tensor of a small message, which does not enter the backend; None: it does.
    """

    def __init__(
        self,
        transfers: AllTransfers,
        call: NextCall,
        post: Post,
        peer: int | None,
        channel: str,
        number: int,
        carried: Any,
    ) -> None:
        self.call = call
        self.post = post
        self.peer = peer
        self.channel = channel
        self.number = number
        self.carried = carried
        self.match: Match | None = None
        self.failure: Exception | None = None
        self.entered: Any = None
        self.enter: Enter | None = None
        self._is_done = False
        self._transfers = transfers
        self._settled = allocate_lock()
        self._settled.acquire()

    @property
    def text(self) -> str:
        """What it asks for, by ranks in the job."""
        place_text = str(self.post)
        return PLACE.sub(lambda _: f"rank {self.peer}", place_text)

    def settle(self, match: Match | None) -> None:
        """Takes the answer to the post; enters the backend, if it is GO."""
        self.match = match
        if match is not None and match.ruling is Ruling.GO and self.enter is not None:
            try:
                self.entered = self._transfers.enter(self, match)
            except Exception as error:
                # It belongs to who waits, not to the thread that reads the links.
                self.failure = error
        # The tensor is the backend's now, and the script's.
        self.enter = self.carried = None
        self._settled.release()

    def is_settled(self, seconds: float = 0.0) -> bool:
        """Whether it was answered; waits so long for it."""
        if not self._settled.acquire(timeout=max(0.0, seconds)):
            return False
        self._settled.release()
        return True

    def wait(self, timeout: timedelta | None) -> bool:
        """Waits for the other end, and for the backend. Raises GuardError, and what the backend raises."""
        limit = timeout.total_seconds() if timeout else 0.0
        if not self.is_settled():
            self._transfers.wait(self, limit or math.inf)
        if self.failure is None and self.entered is None:
            self.failure = self._transfers.error_of(self)
        if self.failure is not None:
            raise self.failure
        if not self._is_done:
            # Gloo's work waits again for what has come, for ever.
            self._is_done = bool(self.entered.wait(timeout) if timeout else self.entered.wait())
        return self._is_done
