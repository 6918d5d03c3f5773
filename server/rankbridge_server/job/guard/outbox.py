"""This rank's link with another rank's inbox, to which it posts what it sends there."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress

from ...core.admission.admission import Ruling
from ...core.admission.matching import Match, Post
from ...core.errors import ErrorCode
from ...core.links import Ended, GroupLinks
from .errors import GuardError
from .meeting import Meeting

_DIAL_S = 60.0

Answered = Callable[[Match | None], None]


def inbox_of(rank: int) -> str:
    """The name of the links of all that send to a rank."""
    return f"to/{rank}"


def order_of(rank: int, size: int) -> Sequence[int]:
    """The ranks of an inbox, by place: it leads itself."""
    return tuple(rank_at(place, rank) for place in range(size))


def rank_at(place: int, rank: int) -> int:
    """The rank at a place of an inbox."""
    return rank if place == 0 else place - 1 if place <= rank else place


def place_of(other: int, rank: int) -> int:
    """The place of a rank in an inbox."""
    return 0 if other == rank else other + 1 if other < rank else other


class Outbox:
    """Links itself on a thread of its own, and keeps posts in order until then: no call waits for the other rank.

    `ended`: called when the other rank turns out to have gone.
    """

    def __init__(self, meeting: Meeting, rank: int, ended: Callable[[Ended], None]) -> None:
        self._meeting = meeting
        self._rank = rank
        self._ended = ended
        self._lock = threading.Lock()
        self._links: GroupLinks | None = None
        self._queued: dict[int, tuple[Post, Answered]] = {}
        self._is_closed = False
        self.error: GuardError | None = None
        """Why the other rank cannot be reached; None: it can, or has gone."""
        threading.Thread(target=self._link, name="guard:link", daemon=True).start()

    @property
    def links(self) -> GroupLinks | None:
        """The links; None: there are none yet."""
        return self._links

    def post(self, post: Post, answered: Answered, *, waits_next: bool = False) -> None:
        """Posts, as `core.links.GroupLinks`. A post that can no longer be made is answered with None."""
        with self._lock:
            links = self._links
            if links is None and not self._is_closed:
                self._queued[post.number] = post, answered
                return
        self._post(links, post, answered, waits_next=waits_next)

    def recall(self, number: int) -> None:
        """Withdraws a post."""
        with self._lock:
            queued = self._queued.pop(number, None)
            links = self._links
        if queued is not None:
            queued[1](Match(Ruling.WITHDRAWN))
        elif links is not None:
            links.recall(number)

    def close(self) -> None:
        """Ends the link. What waits is answered with None."""
        with self._lock:
            self._is_closed = True
            queued, self._queued = self._queued, {}
        for _, answered in queued.values():
            answered(None)
        self._meeting.links.remove_group(inbox_of(self._rank))

    def _link(self) -> None:
        while not self._is_closed:
            try:
                self._meeting.links.add_group(
                    inbox_of(self._rank), order_of(self._rank, self._meeting.size), _DIAL_S, stays=True
                )
            except GuardError as error:
                if error.code == ErrorCode.PEER_MISSING.name:
                    # It has called nothing yet.
                    continue
                self.error = error
                self.close()
            except OSError as error:
                if not self._is_closed:
                    self._ended(Ended(self._rank, True, str(error)))
                self.close()
            else:
                self._drain()
            return

    def _drain(self) -> None:
        with self._lock, suppress(ConnectionError):
            links = self._meeting.links.group(inbox_of(self._rank))
            while self._queued:
                post, answered = self._queued.pop(next(iter(self._queued)))
                self._post(links, post, answered)
            self._links = links
        if self._links is None:
            self.close()

    def _post(
        self, links: GroupLinks | None, post: Post, answered: Answered, *, waits_next: bool = False
    ) -> None:
        try:
            if links is None:
                raise ConnectionError("the link has ended")
            links.post(post, answered, waits_next=waits_next)
        except OSError:
            answered(None)
