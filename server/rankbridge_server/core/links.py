"""What the core asks of the control links between sidecars of one generation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from .admission.admission import Arrival, Notice, Verdict
from .admission.matching import Match, Post
from .gang_calls.messages import GangMessage, Relay, Report


@dataclass(frozen=True, slots=True)
class Ended:
    """Why a generation is over: a rank was lost, or it was ended on purpose or by a fault of `rank`."""

    rank: int
    lost: bool
    reason: str


class IdleWait(Protocol):
    """How a lane that has nothing to do waits for work: it reads its group's links meanwhile."""

    def wait(self, has_work: Callable[[], bool]) -> bool:
        """Wait until `wake_lane` is called and there is work; False when the links are closed: then wait elsewhere."""
        ...

    def wake_lane(self) -> None:
        """There is work, or the lane has been closed. Any thread may say so."""
        ...


class Links(Protocol):
    """One sidecar's control links in one generation. Safe to call from any thread."""

    @property
    def address(self) -> str:
        """Where the other sidecars connect to: "unix:/path" or "host:port"."""
        ...

    def start(self, addresses: Mapping[int, str], secret: bytes, ended: Callable[[Ended], None]) -> None:
        """Begin to accept links. `addresses` by rank; `ended` is called once when the generation is over."""
        ...

    def on_message(self, deliver: Callable[[GangMessage], None]) -> None:
        """Say who gets the letters that come, before `start`.

        `heard` is called with the letters of a group in the order in which they were sent, one at a time, by whoever
        reads the links, who holds no lock that an operation needs. It must not block.
        """
        ...

    def idle_wait(self, group: str) -> IdleWait | None:
        """How the lane of a group waits for work; None: as any lane does."""
        ...

    def command(self, group: str, number: int, parts: Sequence[bytes]) -> None:
        """Send members their parts of a gang call; this rank leads the group, and keeps its own, the first.

        Whose link breaks is lost, and the generation with it, which this does not raise.
        """
        ...

    def report(self, report: Report) -> None:
        """Tell the leader of the group what became of this rank's part. A refusal is a verdict for all at once."""
        ...

    def refuse(self, group: str, operation_id: str, verdict: Verdict) -> None:
        """As leader of the group, rule that an operation is not to be, unless it was admitted."""
        ...

    def relay(self, relay: Relay) -> None:
        """Send a gang call or what became of it, by the links of "world". Raises OSError when they are closed."""
        ...

    def on_notice(self, deliver: Callable[[str, Sequence[int], Notice], None]) -> None:
        """Say who is told of the admissions of groups that this rank leads, before `start`.

        `noticed` is called with the group's name, its ranks, and what is told. It must be quick.
        """
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
