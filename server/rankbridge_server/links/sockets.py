"""Control links over stream sockets: for each group, a star around its leader."""

from __future__ import annotations

import hmac
import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from rankbridge.link.v1 import link_pb2 as pb

from ..core.activity import Activity
from ..core.admission.admission import Notice
from ..core.gang_calls.messages import GangMessage
from ..core.links import NO_SIGN_OF_LIFE, Ended, Links
from ..core.waker import Waker
from . import wire
from .follower import Follower
from .group_links import GroupLinks
from .heartbeat import Heartbeat
from .leader import Leader
from .link import Link
from .listeners import Listener, SocketListener
from .readers import Readers
from .tls import LinkTls


class SocketLinkMaker:
    """Makes links that listen at `address`: "unix:/dir/links" ("." and generation are added) or "host:port".

    `tls`: for links over TCP. `patience`: seconds that an admission may take before a notice names its stragglers.
    """

    def __init__(
        self,
        address: str,
        advertise: str = "",
        heartbeat: Heartbeat | None = None,
        tls: Callable[[], LinkTls] | None = None,
        patience: float = math.inf,
    ) -> None:
        self._address = address
        self._advertise = advertise
        self._heartbeat = heartbeat or Heartbeat()
        self._tls = tls
        self._patience = patience

    def __call__(self, generation: int, rank: int) -> Links:
        """Makes the links of one generation, with a listener of their own. Raises OSError."""
        address = f"{self._address}.{generation}" if self._address.startswith("unix:") else self._address
        listener = SocketListener(address, self._advertise, self._tls and self._tls())
        return SocketLinks(generation, rank, listener, self._heartbeat, self._patience)

    def sweep(self) -> None:
        """Removes sockets that a killed process with the same address has left behind."""
        if self._address.startswith("unix:"):
            base = Path(self._address.removeprefix("unix:"))
            for left in base.parent.glob(f"{base.name}.*"):
                left.unlink(missing_ok=True)


class SocketLinks:
    """One sidecar's links in one generation.

    A thread accepts links, sends heartbeats, and reads the links of groups whose lanes are busy. A lane that waits
    reads its group's links itself.
    """

    def __init__(
        self,
        generation: int,
        rank: int,
        listener: Listener,
        heartbeat: Heartbeat,
        patience: float = math.inf,
    ) -> None:
        self._generation = generation
        self.rank = rank
        self._listener = listener
        self.address = listener.address
        self._lock = threading.Lock()
        self._closed = False
        self._farewells_said = threading.Event()
        self._secret = b""
        self._addresses: Mapping[int, str] = {}
        # Set by `start`.
        self._ended: Callable[[Ended], None]
        self._on_message: Callable[[GangMessage], None]
        self._on_notice: Callable[[str, Sequence[int], Notice], None]
        self._activity: Callable[[str], Activity]
        self._groups: dict[str, GroupLinks] = {}
        # Links without a hello yet, or of a group that this rank does not lead yet, by file descriptor.
        self._strangers: dict[int, Link] = {}
        self._known: dict[int, tuple[GroupLinks, Link]] = {}
        self._readers = Readers()
        self._waker = Waker()
        self._heartbeat = heartbeat
        self._patience = patience
        self._next_look = 0.0
        self._next_beat = 0.0
        # When a link will have been silent for too long, unless a frame comes before.
        self._next_silence = math.inf
        self._thread: threading.Thread | None = None

    def start(
        self,
        addresses: Mapping[int, str],
        secret: bytes,
        ended: Callable[[Ended], None],
        on_message: Callable[[GangMessage], None],
        on_notice: Callable[[str, Sequence[int], Notice], None],
        activity: Callable[[str], Activity],
    ) -> None:
        """Begins to accept links that know the secret."""
        self._addresses, self._secret = addresses, secret
        self._ended, self._on_message, self._on_notice = ended, on_message, on_notice
        self._activity = activity
        self._readers.add(self._listener.fileno())
        self._readers.add(self._waker.fileno())
        self._thread = threading.Thread(target=self._run, name=f"links:{self._generation}", daemon=True)
        self._thread.start()

    def add_group(self, group: str, ranks: Sequence[int], timeout: float, *, stays: bool = False) -> None:
        """Becomes the leader of a group if this is its first rank, else links with its leader. Raises OSError.

        `stays`: as of `core.links.Links`.
        """
        if ranks[0] == self.rank:
            group_links: GroupLinks = Leader(group, self, self._readers, ranks, self._patience, stays=stays)
        else:
            link = self._dial(group, ranks[0], timeout)
            group_links = Follower(group, self, self._readers)
            group_links.attach(link)
        with self._lock:
            if self._closed:
                group_links.dispose()
                raise ConnectionError("the generation is over")
            self._groups[group] = group_links
            self._known.update({link.fileno(): (group_links, link) for link in group_links.links})
            early = [link for link in self._strangers.values() if link.group == group]
        self._readers.watch(group_links.turn)
        for link in early:
            self._welcome(link)

    def remove_group(self, group: str) -> None:
        """Removes a group and closes its links."""
        with self._lock:
            group_links = self._groups.pop(group, None)
        if group_links is not None:
            group_links.part()

    def pid_of(self, rank: int) -> int:
        """The process of a rank to which this sidecar is linked, if it is of this host. 0: it is not known."""
        for group_links in list(self._groups.values()):
            for link in group_links.links:
                if link.rank == rank and (pid := link.other_pid()):
                    return pid
        return 0

    def group(self, name: str) -> GroupLinks:
        """The links of a group."""
        group_links = self._groups.get(name)
        if group_links is None:
            raise ConnectionError(f"no links of group {name!r}")
        return group_links

    def end(self, ended: Ended) -> None:
        """Tells all linked sidecars that the generation is over, and closes the links."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            groups = list(self._groups.values())
        farewell = wire.pack_abort(self._generation, ended)
        for group_links in groups:
            for link in group_links.links:
                # A rank that is gone needs no farewell.
                with suppress(OSError):
                    link.send(farewell)
            group_links.close(ended.reason)
        self._farewells_said.set()
        if self._thread is None:
            self._close()
        else:
            self._waker.wake()

    # The methods of `Owner`.

    def wake_before(self, due: float | None) -> None:
        """Wakes the thread, unless it wakes before `due` anyway."""
        if due is None or due < self._next_look:
            self._waker.wake()

    def forget(self, link: Link) -> None:
        """Drops a link that has ended."""
        with self._lock:
            self._unwatch(link)

    def generation_ended(self, ended: Ended) -> None:
        """Reports that the generation is over."""
        if not self._closed:
            self._ended(ended)

    def deliver(self, message: GangMessage) -> None:
        """Delivers a message of a gang call."""
        self._on_message(message)

    def deliver_notice(self, group: str, ranks: Sequence[int], notice: Notice) -> None:
        """Delivers a notice of admissions."""
        if not self._closed:
            self._on_notice(group, ranks, notice)

    def activity(self, group: str) -> Activity:
        """What this rank does while members of a group wait for it."""
        return self._activity(group)

    def _dial(self, group: str, leader: int, timeout: float) -> Link:
        deadline = time.monotonic() + timeout
        try:
            link = Link(self._listener.dial(self._addresses[leader], timeout))
        except OSError as error:
            raise ConnectionError(f"no link with rank {leader}: {error}") from error
        try:
            link.send(wire.hello(self._generation, self.rank, self._secret, group))
            frames: list[pb.Frame] = []
            while not frames:
                if not link.wait(deadline - time.monotonic()):
                    raise ConnectionError("it did not answer in time")
                frames = [wire.parse(body) for body in link.receive()]
            # Heartbeats may come before the welcome.
            kinds = [kind for frame in frames if (kind := frame.WhichOneof("kind")) != "beat"]
            if kinds != ["welcome"] or frames[0].welcome.rank != leader:
                raise ConnectionError(f"rank {leader} did not welcome the link: {frames}")
        except (OSError, ValueError) as error:
            link.close()
            raise ConnectionError(f"no link with rank {leader}: {error}") from error
        link.rank, link.group = leader, group
        return link

    def _unwatch(self, link: Link) -> None:
        self._known.pop(link.fileno(), None)
        self._readers.drop(link.fileno())

    def _run(self) -> None:
        while not self._closed:
            due = [
                at for group_links in list(self._groups.values()) if (at := group_links.expire()) is not None
            ]
            self._next_look = min([self._next_beat, self._next_silence, *due])
            for fd in self._readers.wait(self._next_look - time.monotonic()):
                self._look(fd)
            now = time.monotonic()
            if now >= min(self._next_beat, self._next_silence):
                self._look_for_silence(now)
            if now >= self._next_beat:
                self._beat(now)
        # Another thread may have ended the generation, and may still be sending the farewells.
        self._farewells_said.wait()
        self._close()

    def _look(self, fd: int) -> None:
        if fd == self._listener.fileno():
            self._accept()
        elif fd == self._waker.fileno():
            self._waker.clear()
        elif (stranger := self._strangers.get(fd)) is not None:
            self._meet(stranger)
        elif (known := self._known.get(fd)) is not None:
            group_links, link = known
            group_links.receive(link)

    def _look_for_silence(self, now: float) -> None:
        """Ends the generation when a link has been silent for too long."""
        # A thread that is late itself has heartbeats of others still to read.
        late = now - min(self._next_beat, self._next_silence) > self._heartbeat.interval
        self._next_silence = math.inf
        for _, link in self._linked():
            until = link.last_heard + self._heartbeat.patience
            if now < until:
                self._next_silence = min(self._next_silence, until)
            elif not late and now < until + self._heartbeat.doubt and link.other_side_runs():
                self._next_silence = min(self._next_silence, now + self._heartbeat.interval)
            elif not late:
                silent = now - link.last_heard
                self.generation_ended(Ended(link.rank or 0, True, f"{NO_SIGN_OF_LIFE} for {silent:.1f} s"))

    def _linked(self) -> list[tuple[GroupLinks, Link]]:
        """The links on which neither side has said goodbye."""
        known = list(self._known.values())
        return [
            (group_links, it)
            for group_links, it in known
            if self._groups.get(it.group) is group_links and not it.leaving
        ]

    def _beat(self, now: float) -> None:
        self._next_beat = now + self._heartbeat.interval
        for group_links, link in self._linked():
            try:
                link.send(wire.BEAT)
            except OSError:
                group_links.receive(link)
        for link in [it for it in self._strangers.values() if now - it.last_heard > self._heartbeat.patience]:
            self._dismiss(link)

    def _accept(self) -> None:
        try:
            link = Link(self._listener.accept())
        except OSError:
            # The other side has closed the connection before it was accepted, or is another user's.
            return
        link.frames.longest = wire.MAX_HELLO
        with self._lock:
            self._strangers[link.fileno()] = link
        self._readers.add(link.fileno())

    def _meet(self, link: Link) -> None:
        try:
            bodies = link.receive()
            # A step of a TLS handshake counts as a sign of life.
            link.last_heard = time.monotonic()
            for body in bodies:
                frame = wire.parse(body)
                if frame.WhichOneof("kind") != "hello" or link.rank is not None:
                    raise ValueError("the first frame, and no other, is a hello")
                self._greet(link, frame.hello)
        except (OSError, ValueError):
            self._dismiss(link)

    def _greet(self, link: Link, hello: pb.Hello) -> None:
        known = hello.generation == self._generation and hello.rank in self._addresses
        if not known or not hmac.compare_digest(hello.secret, self._secret):
            raise ValueError("the hello is of another generation or does not know the secret")
        link.rank, link.group = hello.rank, hello.group
        link.frames.longest = wire.MAX_FRAME
        self._welcome(link)

    def _welcome(self, link: Link) -> None:
        with self._lock:
            group_links = self._groups.get(link.group)
            if group_links is None or link.fileno() not in self._strangers:
                # The member was faster than its leader in forming: the leader welcomes it when it adds the group.
                return
            self._strangers.pop(link.fileno())
        try:
            if not isinstance(group_links, Leader):
                raise ValueError(f"rank {self.rank} does not lead group {link.group!r}")
            # If the lane waits already, it reads this link, too.
            self._readers.drop(link.fileno())
            with self._lock:
                self._known[link.fileno()] = group_links, link
            group_links.attach(link)
            self._readers.watch(group_links.turn)
            link.send(wire.welcome(self.rank))
        except (OSError, ValueError):
            self._dismiss(link)

    def _dismiss(self, link: Link) -> None:
        with self._lock:
            self._strangers.pop(link.fileno(), None)
            self._unwatch(link)
        link.close()

    def _close(self) -> None:
        self._listener.close()
        for group_links in dict.fromkeys(
            [*(group_links for group_links, _ in self._known.values()), *self._groups.values()]
        ):
            group_links.dispose()
        for link in self._strangers.values():
            link.close()
        self._readers.close()
        self._waker.close()
