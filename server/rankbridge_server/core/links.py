"""What the core needs from the control links between the sidecars of one generation."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from .activity import Activity
from .admission.admission import Arrival, Notice, Straggling, Verdict
from .admission.matching import Match, Post
from .errors import ErrorCode, Raised
from .gang_calls.messages import GangMessage, Relay, Release, Report

NO_SIGN_OF_LIFE = "it gave no sign of life"
"""How the reason begins for which a rank was lost that may live, and not run."""


@dataclass(frozen=True, slots=True)
class Ended:
    """Why a generation is over. `rank` was lost; or, with `lost` False, `rank` has ended it or has failed.

    `code`: of the errors that it brings; None: PEER_LOST or ABORTED. `raised`: with FUNCTION_FAILED.
    """

    rank: int
    lost: bool
    reason: str
    code: ErrorCode | None = None
    raised: Raised | None = None


class GroupLinks(Protocol):
    """One sidecar's control links in one group, of which the first member is the leader.

    `wait` and `wake_lane` are for the group's lane, which reads the links while it is idle. Where a group has no lane,
    a thread that waits for a match does.
    """

    def wait(self, has_work: Callable[[], bool], patience: float = math.inf) -> bool:
        """Waits until there is work, `patience` seconds at most. One thread at a time.

        Returns False when the links are closed; the lane must then wait otherwise.
        """

    def wake_lane(self) -> None:
        """Wakes the lane: it has work, or was closed. Any thread may call it."""

    def admit(self, arrival: Arrival, arrived: Callable[[], None], patience: float) -> Verdict:
        """Sends this rank's arrival to the leader, calls `arrived`, and waits for the verdict.

        One thread at a time. Raises TimeoutError after `patience` seconds without a verdict, and ConnectionError when
        the links are closed.
        """

    def waiting(self) -> Straggling | None:
        """As leader, the members for which the current admission waits; None: for nobody, or it does not lead."""

    def met(self) -> tuple[int, float] | None:
        """As leader, the rank that came last to the last admission, and for how many seconds all others have waited.

        To be asked after `admit`, by the same thread. None: it does not lead.
        """

    def withdraw(self, arrival: Arrival) -> None:
        """Asks the leader to withdraw an arrival; `admit` returns the verdict, WITHDRAWN or another."""

    def post(self, post: Post, answered: Callable[[Match | None], None], *, waits_next: bool = False) -> None:
        """Posts a send or a receive to the leader. Calls `answered`, which must be quick, once with the match.

        Calls it with None when the group or the generation ends here first. `waits_next`: the caller calls `wait` next:
        until then nobody need read the links. Raises ConnectionError when they are closed.
        """

    def recall(self, number: int) -> None:
        """Asks the leader to withdraw a post; `answered` gets the match, WITHDRAWN or another."""

    def command(self, number: int, parts: Sequence[bytes]) -> None:
        """As leader, sends the members their parts of a gang call; the first part is this rank's own.

        Raises ConnectionError on a rank that does not lead. A link that breaks raises nothing: its reader ends the
        generation.
        """

    def report(self, report: Report) -> None:
        """Reports the outcome of this rank's part to the leader. The leader rules at once on a refusal."""

    def refuse(self, operation_id: str, verdict: Verdict) -> None:
        """As leader, refuses an operation for all members, unless it was admitted.

        Raises ConnectionError on a rank that does not lead.
        """

    def release(self, release: Release) -> None:
        """Sends a release to the other members. Does nothing when the links are closed: the generation is over."""

    def relay(self, relay: Relay) -> None:
        """Passes a relay on to its target. Raises OSError when the link is closed."""


class Links(Protocol):
    """One sidecar's control links in one generation. Safe to call from any thread."""

    @property
    def address(self) -> str:
        """The address to which the other sidecars connect: "unix:/path" or "host:port"."""

    def start(
        self,
        addresses: Mapping[int, str],
        secret: bytes,
        ended: Callable[[Ended], None],
        on_message: Callable[[GangMessage], None],
        on_notice: Callable[[str, Sequence[int], Notice], None],
        activity: Callable[[str], Activity],
    ) -> None:
        """Begins to accept links. `addresses`: by rank. `ended`: called once when the generation is over.

        The reader of the links calls `on_message` with the messages of gang calls in a group in the order in which they
        were sent, one at a time, and without a lock that an operation needs. `on_message` must not block. `on_notice`
        gets notices of admissions in groups that this rank leads: the group's name, its ranks in the gang, and the
        notice. It must be quick. `activity` says what this rank does while members of the named group wait for it; it
        takes no lock, and is quick.
        """

    def add_group(self, group: str, ranks: Sequence[int], timeout: float, *, stays: bool = False) -> None:
        """Links this sidecar, a member of the group, with the group's leader, `ranks[0]`. Raises OSError.

        `stays`: the group goes on, for posts, when another member than the leader has left it.
        """

    def remove_group(self, group: str) -> None:
        """Removes a group, and the arrivals that wait for a verdict."""

    def pid_of(self, rank: int) -> int:
        """The process of a rank to which this sidecar is linked, if it is of this host. 0: it is not known."""

    def group(self, name: str) -> GroupLinks:
        """The links of a group. Raises ConnectionError when there are none."""

    def end(self, ended: Ended) -> None:
        """Tells all linked sidecars that the generation is over, and closes the links."""


LinkMaker = Callable[[int, int], Links]
"""Makes the links of a new generation, by its number, for a rank. They listen, and accept none before `start`.

Raises OSError.
"""
