"""What the core asks of the control links between sidecars of one generation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from .admission import Arrival, Verdict
from .matching import Match, Post


@dataclass(frozen=True, slots=True)
class Ended:
    """Why a generation is over: a rank was lost, or it was ended on purpose or by a fault of `rank`."""

    rank: int
    lost: bool
    reason: str


class Links(Protocol):
    """One sidecar's control links in one generation. Safe to call from any thread."""

    @property
    def address(self) -> str:
        """Where the other sidecars connect to: "unix:/path" or "host:port"."""
        ...

    def start(self, addresses: Mapping[int, str], secret: bytes, ended: Callable[[Ended], None]) -> None:
        """Begin to accept links. `addresses` by rank; `ended` is called once when the generation is over."""
        ...

    def add_group(self, group: str, ranks: Sequence[int], timeout: float) -> None:
        """Link this sidecar, a member, with the leader of a group, `ranks[0]`. Raises OSError."""
        ...

    def remove_group(self, group: str) -> None:
        """Forget a group; arrivals that wait for a verdict are forgotten too."""
        ...

    def admit(self, group: str, arrival: Arrival, arrived: Callable[[], None], patience: float) -> Verdict:
        """Tell the leader that this rank has come, call `arrived`, and wait for the verdict.

        One thread at a time for each group. Raises TimeoutError after `patience` seconds without a verdict, and
        ConnectionError when the links were closed.
        """
        ...

    def withdraw(self, group: str, arrival: Arrival) -> None:
        """Ask the leader to let this rank leave; `admit` gets the verdict, WITHDRAWN or another."""
        ...

    def post(self, group: str, post: Post, answered: Callable[[Match | None], None]) -> None:
        """Tell the leader that this rank wants to send or to receive; `answered` gets its word, once, and is quick.

        It gets None when the group, or the generation, has ended here before that. Raises ConnectionError when the
        links were closed.
        """
        ...

    def recall(self, group: str, number: int) -> None:
        """Ask the leader for a post back; `answered` gets the match, WITHDRAWN or another."""
        ...

    def end(self, ended: Ended) -> None:
        """Tell all linked sidecars that the generation is over, and close."""
        ...


class LinkMaker(Protocol):
    """Makes the links of a new generation."""

    def __call__(self, generation: int, rank: int) -> Links:
        """Links that listen, and accept nobody before `start`. Raises OSError."""
        ...
