"""Communicators of groups that have ended. MPI has some two thousand, and can free only quiet ones."""

from __future__ import annotations

import threading
from collections.abc import Mapping

from .channel import Channel, Count

# Each address carries the counts of at most this many communicators.
_MAX_COUNTS = 64

Counts = Mapping[str, Count]
"""One member's counts on its retired communicators, by their keys."""


class Retired:
    """This rank's closed channels.

    MPI gives a freed communicator's number to the next one. A message that was still under way would then be taken for
    one of the new group's; so a communicator is freed when all its members have told of the same collectives, and of
    as many receives as sends. They tell it with their addresses, when they form another group. Safe to call from any
    thread.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._channels: dict[str, Channel] = {}

    def add(self, channel: Channel) -> None:
        """Adds a closed channel."""
        with self._lock:
            self._channels[channel.key] = channel

    def counts(self) -> Counts:
        """The counts of channels that are quiet on this rank; different ones each time if there are too many."""
        with self._lock:
            quiet = {key: count for key, it in self._channels.items() if (count := it.quiet()) is not None}
            first = dict(list(quiet.items())[:_MAX_COUNTS])
            for key in first:
                self._channels[key] = self._channels.pop(key)
        return first

    def free(self, counts: Mapping[int, Counts]) -> None:
        """Frees the channels that are quiet on all members. `counts`: of a new group's members, by rank in MPI."""
        with self._lock:
            done = [it for it in self._channels.values() if it.quiet() is not None and _is_quiet(it, counts)]
            for it in done:
                del self._channels[it.key]
        for it in done:
            it.free()

    def __len__(self) -> int:
        return len(self._channels)


def _is_quiet(channel: Channel, counts: Mapping[int, Counts]) -> bool:
    by_rank = [counts.get(rank, {}).get(channel.key) for rank in channel.ranks]
    known = [count for count in by_rank if count is not None]
    return (
        len(known) == len(by_rank)
        and len({count.collectives for count in known}) == 1
        and sum(count.sent for count in known) == sum(count.received for count in known)
    )
