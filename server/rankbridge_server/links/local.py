"""Control links within one process: what the fake backend's gangs and unit tests use. No sockets."""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from ..core.admission.admission import Arrival, Notice, Reply, Verdict
from ..core.admission.matching import Answer, Match, Post
from ..core.gang_calls.messages import Command, Letter, Relay, Report
from ..core.links import Ended, Links, Rest
from .desk import Desk
from .waiting import Waiting


class LocalHub:
    """Connects the links of all ranks in this process; one thread rules on what is overdue.

    `patience`: seconds that an admission may take before its stragglers are told of.
    """

    def __init__(self, patience: float = math.inf) -> None:
        self.patience = patience
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._links: dict[tuple[int, int], LocalLinks] = {}
        self._due: float | None = None
        self._thread: threading.Thread | None = None
        self._telling = threading.local()

    def __call__(self, generation: int, rank: int) -> Links:
        """Links of one rank in one generation."""
        links = LocalLinks(self, generation, rank)
        with self._lock:
            self._links[(generation, rank)] = links
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="local-links", daemon=True)
                self._thread.start()
        return links

    def peer(self, generation: int, rank: int) -> LocalLinks:
        """The links of another rank. Raises ConnectionError when it has none in this generation."""
        with self._lock:
            links = self._links.get((generation, rank))
        if links is None:
            raise ConnectionError(f"rank {rank} has no links in generation {generation}")
        return links

    def close(self, generation: int, rank: int) -> list[LocalLinks]:
        """Take a rank's links away; returns those of the other ranks of its generation."""
        with self._lock:
            self._links.pop((generation, rank), None)
            return [links for (number, _), links in self._links.items() if number == generation]

    def tell(self, peers: Sequence[LocalLinks], ended: Ended) -> None:
        """Tell ranks that their generation is over. Who is told tells others: those are told when it has returned."""
        told = [(peer, ended) for peer in peers]
        if hasattr(self._telling, "queue"):
            self._telling.queue.extend(told)
            return
        queue = self._telling.queue = deque(told)
        try:
            while queue:
                peer, what = queue.popleft()
                peer.over(what)
        finally:
            del self._telling.queue

    def due(self, deadline: float | None) -> None:
        """Something may expire at `deadline`."""
        if deadline is None:
            return
        with self._changed:
            if self._due is None or deadline < self._due:
                self._due = deadline
                self._changed.notify()

    def _run(self) -> None:
        while True:
            with self._changed:
                wait = None if self._due is None else self._due - time.monotonic()
                if wait is None or wait > 0:
                    self._changed.wait(wait)
                    continue
                self._due = None
                everyone = list(self._links.values())
            for links in everyone:
                self.due(links.desk.expire())


class LocalLinks:
    """One rank's links in one generation."""

    def __init__(self, hub: LocalHub, generation: int, rank: int) -> None:
        self._hub = hub
        self._generation = generation
        self._rank = rank
        self._secret = b""
        self._leaders: dict[str, int] = {}
        self._ranks: dict[str, tuple[int, ...]] = {}
        self._heard: Callable[[Letter], None] | None = None
        self._waiting = Waiting()
        self._lock = threading.Lock()
        self._open = True
        self._ended: Callable[[Ended], None] | None = None
        self._posts: dict[tuple[str, int], Callable[[Match | None], None]] = {}
        self._noticed: Callable[[str, Sequence[int], Notice], None] | None = None
        self.desk = Desk(self._deliver, self._match, self._notice, hub.patience)

    @property
    def address(self) -> str:
        """Names the hub's entry; nothing can be dialled there."""
        return f"local:{self._generation}/{self._rank}"

    def start(self, addresses: Mapping[int, str], secret: bytes, ended: Callable[[Ended], None]) -> None:
        """Begin to tell `ended`."""
        self._secret = secret
        self._ended = ended

    def notice(self, noticed: Callable[[str, Sequence[int], Notice], None]) -> None:
        """Give what is told of admissions to `noticed`."""
        self._noticed = noticed

    def attend(self, heard: Callable[[Letter], None]) -> None:
        """Give letters to `heard`."""
        self._heard = heard

    def rest(self, group: str) -> Rest | None:
        """There is nothing to read."""
        return None

    def command(self, group: str, number: int, parts: Sequence[bytes]) -> None:
        """Give members their parts."""
        for rank, part in zip(self._ranks[group][1:], parts[1:], strict=True):
            # Who has left the generation has ended it.
            with suppress(ConnectionError):
                self._hub.peer(self._generation, rank).heard(Command(group, number, part))

    def report(self, report: Report) -> None:
        """Give the leader what became of this rank's part."""
        ranks = self._ranks.get(report.group, ())
        if self._rank not in ranks:
            return
        report = report._replace(rank_in_group=ranks.index(self._rank))
        with suppress(ConnectionError):
            leader = self._hub.peer(self._generation, ranks[0])
            if report.refusal:
                leader.desk.refuse(report.group, report.operation_id, report.verdict)
            if leader is not self:
                leader.heard(report)

    def refuse(self, group: str, operation_id: str, verdict: Verdict) -> None:
        """Rule at this rank's desk."""
        self.desk.refuse(group, operation_id, verdict)

    def relay(self, relay: Relay) -> None:
        """Give it to whom it is for."""
        self._hub.peer(self._generation, relay.target).heard(relay)

    def heard(self, letter: Letter) -> None:
        """A letter has come."""
        if self._heard is not None:
            self._heard(letter)

    def add_group(self, group: str, ranks: Sequence[int], timeout: float) -> None:
        """Know the leader of a group; lead it if that is this rank."""
        self._leaders[group], self._ranks[group] = ranks[0], tuple(ranks)
        if ranks[0] == self._rank:
            self._hub.due(self.desk.lead(group, ranks))

    def remove_group(self, group: str) -> None:
        """Forget a group."""
        self._leaders.pop(group, None)
        self._ranks.pop(group, None)
        self.desk.leave(group)
        self._waiting.forget(group)
        with self._lock:
            gone = [key for key in self._posts if key[0] == group]
            unanswered = [self._posts.pop(key) for key in gone]
        for answered in unanswered:
            answered(None)

    def admit(self, group: str, arrival: Arrival, arrived: Callable[[], None], patience: float) -> Verdict:
        """Tell the leader's desk, and wait."""
        future = self._waiting.expect(group, arrival)
        if not future.done():
            leader = self._hub.peer(self._generation, self._leaders[group])
            self._hub.due(leader.desk.arrive(self._rank, group, arrival))
        arrived()
        return future.result(patience)

    def withdraw(self, group: str, arrival: Arrival) -> None:
        """Tell the leader's desk."""
        with suppress(ConnectionError):
            leader = self._hub.peer(self._generation, self._leaders[group])
            leader.desk.withdraw(self._rank, group, arrival.sequence, arrival.operation_id)

    def post(self, group: str, post: Post, answered: Callable[[Match | None], None]) -> None:
        """Tell the leader's desk."""
        leader = self._hub.peer(self._generation, self._leaders[group])
        with self._lock:
            if not self._open:
                raise ConnectionError("the generation is over")
            self._posts[(group, post.number)] = answered
        try:
            self._hub.due(leader.desk.post(self._rank, group, post))
        except ConnectionError:
            with self._lock:
                self._posts.pop((group, post.number), None)
            raise

    def recall(self, group: str, number: int) -> None:
        """Tell the leader's desk."""
        with suppress(ConnectionError):
            leader = self._hub.peer(self._generation, self._leaders[group])
            leader.desk.recall(self._rank, group, number)

    def end(self, ended: Ended) -> None:
        """Tell everyone of the generation, and close."""
        with self._lock:
            if not self._open:
                return
            self._open = False
            posts, self._posts = self._posts, {}
        self._waiting.close(ended.reason)
        for answered in posts.values():
            answered(None)
        self._hub.tell(self._hub.close(self._generation, self._rank), ended)

    def over(self, ended: Ended) -> None:
        """Another rank says that the generation is over."""
        if self._ended is not None:
            self._ended(ended)

    def settle(self, group: str, reply: Reply) -> None:
        """A verdict for this rank."""
        self._waiting.settle(group, reply.arrival.sequence, reply.arrival.operation_id, reply.verdict)

    def _deliver(self, rank: int, group: str, reply: Reply) -> None:
        try:
            self._hub.peer(self._generation, rank).settle(group, reply)
        except ConnectionError:
            # The member has left the generation meanwhile; it needs no verdict.
            return

    def _notice(self, group: str, ranks: Sequence[int], notice: Notice) -> None:
        if self._noticed is not None:
            self._noticed(group, ranks, notice)

    def matched(self, group: str, answer: Answer) -> None:
        """The leader's word on a post of this rank."""
        with self._lock:
            answered = self._posts.pop((group, answer.number), None)
        if answered is not None:
            answered(answer.match)

    def _match(self, rank: int, group: str, answer: Answer) -> None:
        # A member that has left the generation meanwhile needs no answer.
        with suppress(ConnectionError):
            self._hub.peer(self._generation, rank).matched(group, answer)
