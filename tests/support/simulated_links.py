"""Control links over a simulated network: messages move when the schedule says so.

Every link is a FIFO queue in each direction, as a stream socket is; links are independent of each other. A link can
be cut, and its ends learn of that from a message, as the end of a stream is learnt; a process that is killed closes
its ends. There is a link from every member of a group to its leader, and what a rank does with a message is what it
does in `links.sockets`, with the desk and the waiting room of `links.local`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from tests.model.simulation import Process, SimulatedCondition, Simulation

from rankbridge_server.core.admission.admission import Arrival, Reply, Verdict
from rankbridge_server.core.admission.matching import Answer, Match, Post
from rankbridge_server.core.gang_calls.messages import Command, Letter, Relay, Report
from rankbridge_server.core.links import Ended, LinkMaker, Links, Rest
from rankbridge_server.links.desk import Desk
from rankbridge_server.links.waiting import Waiting


@dataclass(frozen=True, slots=True)
class Arrived:
    """A member tells its leader that it has come."""

    group: str
    arrival: Arrival


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """A member asks its leader to let it leave."""

    group: str
    sequence: int
    operation_id: str


@dataclass(frozen=True, slots=True)
class Ruled:
    """A leader's verdict for a member."""

    group: str
    reply: Reply


@dataclass(frozen=True, slots=True)
class Over:
    """The generation is over."""

    ended: Ended


@dataclass(frozen=True, slots=True)
class Closed:
    """The end of the stream."""


@dataclass(frozen=True, slots=True)
class Posted:
    """A member wants to send or to receive."""

    group: str
    post: Post


@dataclass(frozen=True, slots=True)
class Recalled:
    """A member wants its post back."""

    group: str
    number: int


@dataclass(frozen=True, slots=True)
class Matched:
    """The leader's answer to a post."""

    group: str
    answer: Answer


Message = Arrived | Withdrawn | Ruled | Posted | Recalled | Matched | Letter | Over | Closed


@dataclass(eq=False, slots=True)
class Half:
    """One direction of a link: what is on its way. `open`: the receiver listens."""

    sender: SimulatedLinks
    receiver: SimulatedLinks
    queue: deque[Message] = field(default_factory=deque)
    open: bool = True

    def __str__(self) -> str:
        return f"{self.sender.process}->{self.receiver.process} {[type(it).__name__ for it in self.queue]}"


@dataclass(eq=False, slots=True)
class Connection:
    """A link between a member and the leader of one group. `cut`: nothing gets through any more."""

    up: Half
    down: Half
    cut: bool = False

    def out(self, links: SimulatedLinks) -> Half:
        """The direction in which `links` sends."""
        return self.up if self.up.sender is links else self.down

    def into(self, links: SimulatedLinks) -> Half:
        """The direction in which `links` receives."""
        return self.down if self.up.sender is links else self.up


class Network:
    """All links of one simulation."""

    def __init__(self, simulation: Simulation) -> None:
        self.simulation = simulation
        self.changed = SimulatedCondition(simulation=simulation, shared=True)
        self.connections: list[Connection] = []
        self.faults: list[str] = []
        self._links: dict[tuple[int, int], SimulatedLinks] = {}

    def maker(self, process: Process) -> LinkMaker:
        """Makes the links of one process."""

        def make(generation: int, rank: int) -> Links:
            links = self._links[(generation, rank)] = SimulatedLinks(self, process, generation, rank)
            return links

        return make

    def moving(self) -> list[Half]:
        """The directions in which something is on its way to a rank that runs."""
        halves = [half for connection in self.connections for half in (connection.up, connection.down)]
        return [half for half in halves if half.queue and not half.receiver.process.frozen]

    def deliver(self, half: Half) -> None:
        """Let the oldest message of one direction arrive."""
        message = half.queue.popleft()
        if half.open:
            half.receiver.receive(half, message)

    def live(self) -> list[Connection]:
        """The links that somebody still uses."""
        return [it for it in self.connections if not it.cut and (it.up.open or it.down.open)]

    def cut(self, connection: Connection) -> None:
        """Lose all that is on its way; both ends will read the end of the stream."""
        connection.cut = True
        for half in (connection.up, connection.down):
            half.queue.clear()
            half.queue.append(Closed())

    def kill(self, process: Process, lose: bool) -> None:
        """Close a process's ends; `lose`: what it has sent is lost as well."""
        process.dead = True
        for connection in self.connections:
            for out, back in ((connection.up, connection.down), (connection.down, connection.up)):
                if out.sender.process is process:
                    if lose:
                        out.queue.clear()
                    out.queue.append(Closed())
                    back.queue.clear()
                    back.open = False
        self.wake()

    def wake(self) -> None:
        """Whoever dials may look again."""
        with self.changed:
            self.changed.notify_all()

    def connect(self, member: SimulatedLinks, group: str, leader_rank: int, timeout: float) -> Connection:
        """Dial the leader of a group and wait for its welcome. Raises ConnectionError."""
        end = self.simulation.now + timeout

        def settled() -> bool:
            leader = self._links.get((member.generation, leader_rank))
            if leader is None or leader.process.dead or leader.closed or member.closed:
                return True
            return leader.leads(group) and not leader.process.stopped

        with self.changed:
            if not self.changed.wait_for(settled, end - self.simulation.now):
                raise ConnectionError(f"rank {leader_rank} did not welcome the link")
            leader = self._links.get((member.generation, leader_rank))
            if member.closed or leader is None or leader.process.dead or leader.closed:
                raise ConnectionError(f"no link with rank {leader_rank}")
            if leader.secret != member.secret:
                raise ConnectionError(f"rank {leader_rank} has another secret")
            connection = Connection(Half(member, leader), Half(leader, member))
            self.connections.append(connection)
            leader.adopt(group, member.rank, connection)
            return connection


class SimulatedLinks:
    """One rank's links in one generation; implements `core.links.Links`."""

    def __init__(self, network: Network, process: Process, generation: int, rank: int) -> None:
        self.process = process
        self.generation = generation
        self.rank = rank
        self.secret = b""
        self.closed = False
        self._network = network
        self._leaders: dict[str, int] = {}
        self._ranks: dict[str, tuple[int, ...]] = {}
        self._heard: Callable[[Letter], None] | None = None
        self._connections: dict[tuple[str, int], Connection] = {}
        self._waiting = Waiting()
        self._desk = Desk(self._deliver, self._match)
        self._posts: dict[tuple[str, int], Callable[[Match | None], None]] = {}
        self._ended: Callable[[Ended], None] | None = None
        self._woken = SimulatedCondition(simulation=network.simulation, shared=True)
        self._inbox: deque[tuple[Half, Message]] = deque()
        self._looks_at: float | None = None
        self._look = False

    @property
    def address(self) -> str:
        """Names the network's entry."""
        return f"simulated:{self.generation}/{self.rank}"

    def start(self, addresses: Mapping[int, str], secret: bytes, ended: Callable[[Ended], None]) -> None:
        """Begin to accept links that know the secret."""
        self.secret, self._ended = secret, ended
        self._network.simulation.spawn(self._run, self.process, f"links of {self.process}")

    def notice(self, noticed: object) -> None:
        """Nobody looks at a simulation from outside."""

    def attend(self, heard: Callable[[Letter], None]) -> None:
        """Give letters to `heard`."""
        self._heard = heard

    def rest(self, group: str) -> Rest | None:
        """The links' thread reads what there is to read."""
        return None

    def command(self, group: str, number: int, parts: Sequence[bytes]) -> None:
        """Send members their parts."""
        for rank, part in zip(self._ranks[group][1:], parts[1:], strict=True):
            self._send(group, rank, Command(group, number, part))

    def report(self, report: Report) -> None:
        """Tell the leader, over the link or at the own desk."""
        ranks = self._ranks[report.group]
        report = report._replace(rank_in_group=ranks.index(self.rank))
        if ranks[0] == self.rank:
            if report.refusal:
                self._desk.refuse(report.group, report.operation_id, report.verdict)
        else:
            with suppress(ConnectionError):
                self._send(report.group, ranks[0], report)

    def refuse(self, group: str, operation_id: str, verdict: Verdict) -> None:
        """Rule at the own desk."""
        self._desk.refuse(group, operation_id, verdict)

    def relay(self, relay: Relay) -> None:
        """Send it towards its target, by the leader of all."""
        hub = self._ranks["world"][0]
        self._send("world", relay.target if self.rank == hub else hub, relay)

    def add_group(self, group: str, ranks: Sequence[int], timeout: float) -> None:
        """Lead the group, or link with its leader. Raises ConnectionError."""
        leader = self._leaders[group] = ranks[0]
        self._ranks[group] = tuple(ranks)
        if leader == self.rank:
            self._desk.lead(group, ranks)
            self._network.wake()
        else:
            self._connections[(group, leader)] = self._network.connect(self, group, leader, timeout)

    def leads(self, group: str) -> bool:
        """Whether members of the group are welcome."""
        return self._leaders.get(group) == self.rank

    def adopt(self, group: str, rank: int, connection: Connection) -> None:
        """A member has linked with this leader."""
        self._connections[(group, rank)] = connection

    def remove_group(self, group: str) -> None:
        """Forget a group."""
        self._leaders.pop(group, None)
        self._desk.leave(group)
        self._waiting.forget(group)
        for key in [key for key in self._posts if key[0] == group]:
            self._posts.pop(key)(None)

    def admit(self, group: str, arrival: Arrival, arrived: Callable[[], None], patience: float) -> Verdict:
        """Tell the leader, over the link or at the own desk, and wait for the verdict."""
        future = self._waiting.expect(group, arrival)
        if not future.done():
            leader = self._leaders[group]
            if leader == self.rank:
                self._look_at(self._desk.arrive(self.rank, group, arrival))
            else:
                self._send(group, leader, Arrived(group, arrival))
        arrived()
        return future.result(patience)

    def withdraw(self, group: str, arrival: Arrival) -> None:
        """Ask the leader, over the link or at the own desk."""
        leader = self._leaders.get(group)
        if leader == self.rank:
            self._desk.withdraw(self.rank, group, arrival.sequence, arrival.operation_id)
        elif leader is not None:
            with suppress(ConnectionError):
                self._send(group, leader, Withdrawn(group, arrival.sequence, arrival.operation_id))

    def post(self, group: str, post: Post, answered: Callable[[Match | None], None]) -> None:
        """Tell the leader, over the link or at the own desk."""
        leader = self._leaders.get(group)
        if self.closed or leader is None:
            raise ConnectionError(f"no links of group {group!r}")
        self._posts[(group, post.number)] = answered
        if leader == self.rank:
            self._look_at(self._desk.post(self.rank, group, post))
        else:
            self._send(group, leader, Posted(group, post))

    def recall(self, group: str, number: int) -> None:
        """Ask the leader, over the link or at the own desk."""
        leader = self._leaders.get(group)
        if leader == self.rank:
            self._desk.recall(self.rank, group, number)
        elif leader is not None:
            with suppress(ConnectionError):
                self._send(group, leader, Recalled(group, number))

    def end(self, ended: Ended) -> None:
        """Tell everyone who is linked, and close."""
        if self.closed:
            return
        self.closed = True
        self._waiting.close(ended.reason)
        for key in list(self._posts):
            self._posts.pop(key)(None)
        for connection in self._network.connections:
            if self in (connection.up.sender, connection.up.receiver):
                connection.into(self).open = False
                if not connection.cut:
                    connection.out(self).queue.extend((Over(ended), Closed()))
        self._wake()
        self._network.wake()

    def receive(self, half: Half, message: Message) -> None:
        """A message has come; the links' thread will see it."""
        self._inbox.append((half, message))
        self._wake()

    def _run(self) -> None:
        while not self.closed:
            due = self._desk.expire()
            with self._woken:
                now = self._network.simulation.now
                self._looks_at = due
                self._woken.wait_for(
                    lambda: bool(self._inbox) or self.closed or self._look,
                    None if due is None else max(0.0, due - now),
                )
                self._looks_at, self._look = None, False
                received = self._inbox.popleft() if self._inbox and not self.closed else None
            if received is not None:
                self._handle(*received)

    def _handle(self, half: Half, message: Message) -> None:
        peer = half.sender.rank
        match message:
            case Arrived(group, arrival):
                try:
                    self._desk.arrive(peer, group, arrival)
                except ValueError as error:
                    # No rank of ours may ever say what a leader refuses to hear.
                    self._network.faults.append(str(error))
                    self._over(Ended(peer, True, str(error)))
            case Withdrawn(group, sequence, operation_id):
                self._desk.withdraw(peer, group, sequence, operation_id)
            case Ruled(group, reply):
                self._settle(group, reply)
            case Posted(group, post):
                # A group that has ended here has ended everywhere, or will.
                with suppress(ConnectionError):
                    self._desk.post(peer, group, post)
            case Recalled(group, number):
                self._desk.recall(peer, group, number)
            case Matched(group, answer):
                self._matched(group, answer)
            case Report() if message.refusal:
                self._desk.refuse(message.group, message.operation_id, message.verdict)
                self._hear(message)
            case Relay() if message.target != self.rank:
                with suppress(ConnectionError):
                    self.relay(message)
            case Command() | Report() | Relay():
                self._hear(message)
            case Over(ended):
                self._over(ended)
            case Closed():
                half.open = False
                self._over(Ended(peer, True, "its link was closed"))

    def _hear(self, letter: Letter) -> None:
        if self._heard is not None:
            self._heard(letter)

    def _over(self, ended: Ended) -> None:
        if self._ended is not None and not self.closed:
            self._ended(ended)

    def _settle(self, group: str, reply: Reply) -> None:
        self._waiting.settle(group, reply.arrival.sequence, reply.arrival.operation_id, reply.verdict)

    def _deliver(self, rank: int, group: str, reply: Reply) -> None:
        if rank == self.rank:
            self._settle(group, reply)
        else:
            with suppress(ConnectionError):
                self._send(group, rank, Ruled(group, reply))

    def _matched(self, group: str, answer: Answer) -> None:
        answered = self._posts.pop((group, answer.number), None)
        if answered is not None:
            answered(answer.match)

    def _match(self, rank: int, group: str, answer: Answer) -> None:
        if rank == self.rank:
            self._matched(group, answer)
        else:
            with suppress(ConnectionError):
                self._send(group, rank, Matched(group, answer))

    def _send(self, group: str, rank: int, message: Message) -> None:
        connection = self._connections.get((group, rank))
        if connection is None:
            raise ConnectionError(f"no link of group {group!r} with rank {rank}")
        if not connection.into(self).open:
            self._over(Ended(rank, True, "its link broke"))
        elif not connection.cut:
            connection.out(self).queue.append(message)

    def _look_at(self, deadline: float | None) -> None:
        if deadline is not None and (self._looks_at is None or deadline < self._looks_at):
            self._look = True
            self._wake()

    def _wake(self) -> None:
        with self._woken:
            self._woken.notify_all()
