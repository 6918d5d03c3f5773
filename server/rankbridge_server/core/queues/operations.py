"""The operations on queues."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from .. import guests
from ..errors import BridgeError, ErrorCode, Phase, Place, failed_ranks, invalid
from ..operations.operation import Entry, Job, LocalPlan, Plan, Site, Transfer, operation
from ..operations.outcome import Packed
from ..operations.payloads import MAX_OBJECT_BYTES, check_total
from ..refs.refs import MAX_ID_BYTES
from ..task import Task
from ..waker import Waker
from .posts import Posts
from .reading import FarReadingEnd, NearReadingEnd
from .sharing import SharedMemorySetup
from .table import Bystander, End, name_exists
from .view import QueueView
from .writing import WritingEnd

MAX_CHUNKS = 1024
DEFAULT_CHUNKS = 6
DEFAULT_CHUNK_BYTES = 4 * 1024 * 1024
MAX_RING_BYTES = 4 * 1024**3


@dataclass(frozen=True, slots=True)
class NewQueue:
    """Makes a queue. `reader_ranks_in_group`: empty: all but the writer. Sizes of 0: the defaults."""

    name: str
    writer_rank_in_group: int
    reader_ranks_in_group: tuple[int, ...] = ()
    max_chunk_bytes: int = 0
    max_chunks: int = 0


@dataclass(frozen=True, slots=True)
class Enqueue:
    """Writes a value."""

    queue: str
    value: Packed


@dataclass(frozen=True, slots=True)
class Dequeue:
    """Reads the next value."""

    queue: str


@operation()
def new_queue(site: Site, args: NewQueue) -> Plan:
    """Members agree on name, writer, readers and sizes. The name must be free on all members."""
    if not 0 < len(args.name.encode()) <= MAX_ID_BYTES:
        got = f"{len(args.name.encode())} bytes"
        raise invalid("bad queue name", expected=f"1 to {MAX_ID_BYTES} bytes", got=got)
    if args.name in site.membership.queues:
        raise name_exists(args.name)
    if guest := guests.home_of(args.name):
        held = sum(it.name.startswith(guest) for it in site.membership.queues.views())
        guests.check_share(guest, "queues in a group", held, 1, guests.MAX_QUEUES)
    writer = site.member("writer_rank_in_group", args.writer_rank_in_group)
    chunk_bytes, chunks = _sizes(args)
    view = QueueView(args.name, site.group.name, writer, _readers(site, args), (), chunk_bytes, chunks)
    return _NewQueuePlan(site, view)


@operation()
def enqueue(site: Site, args: Enqueue) -> LocalPlan:
    """Called on the queue's writer."""
    end = site.membership.queues.find(args.queue)
    if not isinstance(end, WritingEnd):
        raise _not_for(site, end, "writes into", (end.view.writer,))
    data = args.value.data
    check_total([len(data)])
    return LocalPlan(lambda task: end.enqueue(data, task))


@operation()
def dequeue(site: Site, args: Dequeue) -> LocalPlan:
    """Called on one of the queue's readers."""
    end = site.membership.queues.find(args.queue)
    if not isinstance(end, NearReadingEnd | FarReadingEnd):
        raise _not_for(site, end, "reads from", end.view.readers)
    return LocalPlan(end.dequeue)


class _NewQueuePlan:
    """Members exchange their hosts, set up shared memory between writer and readers, and make their ends."""

    def __init__(self, site: Site, view: QueueView) -> None:
        self._site = site
        self._view = view
        self._setup: SharedMemorySetup | None = None
        self._waker: Waker | None = None
        self._trouble = ""
        self.terms = (
            f"name={view.name} writer_rank_in_group={view.writer} reader_ranks_in_group={list(view.readers)} "
            f"max_chunk_bytes={view.max_chunk_bytes} max_chunks={view.max_chunks}"
        )

    def payload(self) -> bytes:
        """This rank's host, and why it cannot have the queue: the name is taken, or it has no file descriptors."""
        try:
            self._waker = Waker()
        except OSError as error:
            self._trouble = str(error)
        taken = self._view.name in self._site.membership.queues
        members = {"host": self._site.host_id, "taken": taken, "trouble": self._trouble}
        return json.dumps(members).encode()

    def run(self, entry: Entry) -> Callable[[], QueueView]:
        """Sets up shared memory."""
        view = self._view
        members = [json.loads(payload) for payload in entry.payloads]
        if any(it["taken"] for it in members):
            raise self._failed(
                name_exists(view.name), [it["taken"] and "it has such a queue" for it in members]
            )
        if any(it["trouble"] for it in members):
            error = BridgeError.of(ErrorCode.RESOURCE_EXHAUSTED, "a rank has no room for another queue")
            raise self._failed(error, [it["trouble"] for it in members])
        near = tuple(
            place for place in view.readers if members[place]["host"] == members[view.writer]["host"]
        )
        me = self._site.membership.rank_in_group
        self._setup = setup = SharedMemorySetup(view, me, near)
        setup.meet(entry.agree, entry.timeout)
        return lambda: self._install(setup)

    def abandon(self) -> None:
        if self._setup is not None:
            self._setup.close()
        if self._waker is not None:
            self._waker.close()

    def _install(self, setup: SharedMemorySetup) -> QueueView:
        view = replace(self._view, shared_memory=setup.shared)
        waker = self._waker
        if waker is None:
            raise RuntimeError("payload was not called")
        end = self._end(view, waker, setup)
        self._site.membership.queues.add(end)
        if isinstance(end, WritingEnd | NearReadingEnd):
            setup.take()
            self._waker = None
            end.start()
        return view

    def _end(self, view: QueueView, waker: Waker, setup: SharedMemorySetup) -> End:
        site = self._site
        me, ranks = site.membership.rank_in_group, site.group.description.ranks
        posts = _posts(site, view, setup.channel)
        if me == view.writer:
            far = [place for place in view.readers if place not in view.shared_memory]
            return WritingEnd(view, ranks, waker, setup.ring, setup.connections, far, posts)
        if me not in view.readers:
            return Bystander(view)
        if setup.ring is None:
            return FarReadingEnd(view, ranks[view.writer], posts)
        connection = setup.connections[view.writer]
        return NearReadingEnd(view, ranks[view.writer], waker, connection, setup.ring)

    def _failed(self, error: BridgeError, troubles: Sequence[str]) -> BridgeError:
        details = failed_ranks(self._site.group.description.ranks, troubles)
        return BridgeError(replace(error.failure, phase=Phase.ADMISSION, ranks=details))


def _posts(site: Site, view: QueueView, channel: str) -> Posts:
    group, membership, groups = site.group, site.membership, site.generation

    def begin(transfer: Transfer, task: Task) -> None:
        groups.exchange(Job(group, membership, "queue", task), transfer)

    place = Place(
        rank=site.generation.rank, group=group.name, operation="queue", generation=site.generation.number
    )
    return Posts(view.name, channel, place, site.backend.tensors, begin)


def _sizes(args: NewQueue) -> tuple[int, int]:
    chunk_bytes, chunks = args.max_chunk_bytes or DEFAULT_CHUNK_BYTES, args.max_chunks or DEFAULT_CHUNKS
    for name, size, most in (
        ("max_chunks", chunks, MAX_CHUNKS),
        ("max_chunk_bytes", chunk_bytes, MAX_OBJECT_BYTES),
        ("max_chunk_bytes * max_chunks", chunk_bytes * chunks, MAX_RING_BYTES),
    ):
        if not 0 < size <= most:
            raise invalid(f"{name} is too large", expected=f"at most {most}", got=str(size))
    return chunk_bytes, chunks


def _readers(site: Site, args: NewQueue) -> tuple[int, ...]:
    writer, named = args.writer_rank_in_group, args.reader_ranks_in_group
    if not named:
        return tuple(place for place in range(site.size) if place != writer)
    for place in named:
        site.member("reader_ranks_in_group", place)
    if writer in named:
        got = f"{list(named)} with writer {writer}"
        raise invalid("the writer cannot read", expected="other ranks in the group", got=got)
    if len(set(named)) != len(named):
        raise invalid("a reader is named twice", expected="each once", got=str(list(named)))
    return tuple(sorted(named))


def _not_for(site: Site, end: End, what: str, places: tuple[int, ...]) -> BridgeError:
    return invalid(
        f"this rank is not one that {what} queue {end.view.name!r}",
        expected="rank_in_group " + (" or ".join(map(str, places)) or "none"),
        got=f"rank_in_group {site.membership.rank_in_group}",
    )
