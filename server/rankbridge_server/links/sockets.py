"""Control links over stream sockets: a star to the leader of each group."""

from __future__ import annotations

import hmac
import os
import selectors
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path

from rankbridge.link.v1 import link_pb2 as pb

from ..core.admission import Arrival, Reply, Verdict
from ..core.links import Ended, Links
from . import wire
from .desk import Desk
from .heartbeat import Heartbeat
from .link import Link, dial, listen
from .waiting import Waiting


class SocketLinkMaker:
    """Makes links that listen at `address`: "unix:/dir/links" ("." and generation are added) or "host:port"."""

    def __init__(self, address: str, advertise: str = "", heartbeat: Heartbeat | None = None) -> None:
        self._address = address
        self._advertise = advertise
        self._heartbeat = heartbeat or Heartbeat()

    def __call__(self, generation: int, rank: int) -> Links:
        """Links of one generation, on a listener of their own. Raises OSError."""
        address = f"{self._address}.{generation}" if self._address.startswith("unix:") else self._address
        return SocketLinks(generation, rank, address, self._advertise, self._heartbeat)

    def sweep(self) -> None:
        """Remove sockets that a killed process with the same address left behind."""
        if self._address.startswith("unix:"):
            base = Path(self._address.removeprefix("unix:"))
            for left in base.parent.glob(f"{base.name}.*"):
                left.unlink(missing_ok=True)


class SocketLinks:
    """One sidecar's links in one generation. One thread accepts and receives; any thread sends."""

    def __init__(
        self, generation: int, rank: int, address: str, advertise: str, heartbeat: Heartbeat
    ) -> None:
        self._generation = generation
        self._rank = rank
        self._listener, bound = listen(address)
        self._unlink = bound.removeprefix("unix:") if bound.startswith("unix:") else ""
        self.address = f"{advertise}:{bound.rpartition(':')[2]}" if advertise and not self._unlink else bound
        self._lock = threading.Lock()
        self._closed = False
        self._secret = b""
        self._addresses: Mapping[int, str] = {}
        self._ended: Callable[[Ended], None] | None = None
        self._links: dict[int, Link] = {}
        self._leaders: dict[str, int] = {}
        self._waiting = Waiting()
        self._desk = Desk(self._deliver)
        self._selector = selectors.DefaultSelector()
        self._wake_out, self._wake_in = socket.socketpair()
        self._heartbeat = heartbeat
        self._next_look = 0.0
        self._next_beat = 0.0
        self._thread: threading.Thread | None = None

    def start(self, addresses: Mapping[int, str], secret: bytes, ended: Callable[[Ended], None]) -> None:
        """Begin to accept links that know the secret."""
        self._addresses, self._secret, self._ended = addresses, secret, ended
        self._listener.setblocking(False)
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._selector.register(self._wake_out, selectors.EVENT_READ)
        self._thread = threading.Thread(target=self._run, name=f"links:{self._generation}", daemon=True)
        self._thread.start()

    def add_group(self, group: str, ranks: Sequence[int], timeout: float) -> None:
        """Lead the group if this is its first rank, else link with its leader. Raises OSError."""
        leader = ranks[0]
        self._leaders[group] = leader
        if leader == self._rank:
            self._desk.lead(group, ranks)
            return
        with self._lock:
            if leader in self._links:
                return
        self._dial(leader, timeout)

    def remove_group(self, group: str) -> None:
        """Forget a group. Its link stays: other groups may use it."""
        self._leaders.pop(group, None)
        self._desk.leave(group)
        self._waiting.forget(group)

    def arrive(self, group: str, arrival: Arrival) -> Future[Verdict]:
        """Tell the leader, over the link or at the own desk."""
        future = self._waiting.expect(group, arrival)
        if future.done():
            return future
        leader = self._leaders[group]
        if leader == self._rank:
            self._look_at(self._desk.arrive(self._rank, group, arrival))
        else:
            self._send(leader, wire.pack_arrival(group, arrival))
        return future

    def withdraw(self, group: str, arrival: Arrival) -> None:
        """Ask the leader, over the link or at the own desk."""
        leader = self._leaders.get(group)
        if leader == self._rank:
            self._desk.withdraw(self._rank, group, arrival.sequence, arrival.operation_id)
        elif leader is not None:
            with suppress(ConnectionError):
                self._send(leader, wire.pack_withdrawal(group, arrival))

    def end(self, ended: Ended) -> None:
        """Tell all linked sidecars, and close."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            links = list(self._links.values())
        self._waiting.close(ended.reason)
        farewell = wire.pack_abort(self._generation, ended)
        for link in links:
            try:
                link.send(farewell)
            except OSError:
                # It is gone itself; whoever is linked with it sees that.
                continue
        if self._thread is None:
            self._close()
        else:
            self._wake()

    def _dial(self, leader: int, timeout: float) -> None:
        deadline = time.monotonic() + timeout
        link = Link(dial(self._addresses[leader], timeout))
        try:
            link.send(wire.hello(self._generation, self._rank, self._secret))
            link.socket.settimeout(max(0.001, deadline - time.monotonic()))
            for frame in self._first(link):
                if frame.WhichOneof("kind") != "welcome" or frame.welcome.rank != leader:
                    raise ConnectionError(f"rank {leader} did not welcome the link: {frame}")
            link.socket.settimeout(None)
        except (OSError, ValueError) as error:
            link.close()
            raise ConnectionError(f"no link with rank {leader}: {error}") from error
        self._adopt(leader, link)

    @staticmethod
    def _first(link: Link) -> list[pb.Frame]:
        while True:
            data = link.receive()
            if not data:
                raise ConnectionError("it was closed")
            if frames := list(link.frames.feed(data)):
                return frames

    def _adopt(self, rank: int, link: Link) -> None:
        link.rank = rank
        with self._lock:
            if self._closed:
                link.close()
                raise ConnectionError("the generation is over")
            self._links[rank] = link
            self._selector.register(link.socket, selectors.EVENT_READ, link)
        self._wake()

    def _send(self, rank: int, data: bytes) -> None:
        with self._lock:
            link = self._links.get(rank)
        if link is None:
            raise ConnectionError(f"no link with rank {rank}")
        try:
            link.send(data)
        except OSError as error:
            self._over(Ended(rank, True, f"its link broke: {error}"))

    def _deliver(self, rank: int, group: str, reply: Reply) -> None:
        if rank == self._rank:
            self._waiting.settle(group, reply.arrival.sequence, reply.arrival.operation_id, reply.verdict)
        else:
            try:
                self._send(rank, wire.pack_reply(group, reply))
            except ConnectionError:
                # Its link is gone, which ends the generation by itself.
                return

    def _look_at(self, deadline: float | None) -> None:
        if deadline is not None and deadline < self._next_look:
            self._wake()

    def _wake(self) -> None:
        try:
            self._wake_in.send(b"x")
        except OSError:
            # The thread has ended, and with it the need to wake it.
            return

    def _over(self, ended: Ended) -> None:
        if self._ended is not None and not self._closed:
            self._ended(ended)

    def _run(self) -> None:
        while not self._closed:
            due = self._desk.expire()
            now = time.monotonic()
            self._next_look = min(self._next_beat, due if due is not None else self._next_beat)
            for key, _ in self._selector.select(max(0.0, self._next_look - now)):
                if key.fileobj is self._listener:
                    self._accept()
                elif key.fileobj is self._wake_out:
                    self._wake_out.recv(4096)
                else:
                    self._receive(key.data)
            if time.monotonic() >= self._next_beat:
                self._beat()
        self._close()

    def _beat(self) -> None:
        now = time.monotonic()
        late = now - self._next_beat > self._heartbeat.interval
        self._next_beat = now + self._heartbeat.interval
        for link in [key.data for key in self._selector.get_map().values() if isinstance(key.data, Link)]:
            # Who was late himself has signs of life of others waiting to be read.
            if not late and now - link.heard > self._heartbeat.patience:
                self._drop(link, f"it gave no sign of life for {now - link.heard:.1f} s")
            elif link.rank is not None:
                try:
                    link.send(wire.BEAT)
                except OSError as error:
                    self._drop(link, str(error))

    def _accept(self) -> None:
        try:
            sock, _ = self._listener.accept()
        except OSError:
            # The caller hung up before it was accepted.
            return
        link = Link(sock)
        self._selector.register(sock, selectors.EVENT_READ, link)

    def _receive(self, link: Link) -> None:
        try:
            data = link.receive()
            if not data:
                raise ConnectionError("its link was closed")
            for frame in link.frames.feed(data):
                self._handle(link, frame)
        except (OSError, ValueError) as error:
            self._drop(link, str(error))

    def _handle(self, link: Link, frame: pb.Frame) -> None:
        kind = frame.WhichOneof("kind")
        if link.rank is None:
            if kind != "hello":
                raise ValueError("the first frame is not a hello")
            self._welcome(link, frame.hello)
        elif kind == "arrival":
            arrival = wire.arrival_of(frame.arrival)
            self._desk.arrive(link.rank, frame.arrival.group, arrival)
        elif kind == "withdrawal":
            left = frame.withdrawal
            self._desk.withdraw(link.rank, left.group, left.sequence, left.operation_id)
        elif kind == "beat":
            return
        elif kind == "verdict":
            it = frame.verdict
            self._waiting.settle(it.group, it.sequence, it.operation_id, wire.verdict_of(it))
        elif kind == "abort":
            self._over(wire.ended_of(frame.abort))
        else:
            raise ValueError(f"a frame of kind {kind} at the wrong time")

    def _welcome(self, link: Link, hello: pb.Hello) -> None:
        known = hello.generation == self._generation and hello.rank in self._addresses
        if not known or not hmac.compare_digest(hello.secret, self._secret):
            raise ValueError("the hello is of another generation or does not know the secret")
        link.rank = hello.rank
        with self._lock:
            # Two sidecars that lead groups of each other have two links; replies go by the one dialled here.
            self._links.setdefault(hello.rank, link)
        link.send(wire.welcome(self._rank))

    def _drop(self, link: Link, reason: str) -> None:
        self._selector.unregister(link.socket)
        link.close()
        if link.rank is not None:
            self._over(Ended(link.rank, True, reason))

    def _close(self) -> None:
        self._listener.close()
        for key in list(self._selector.get_map().values()):
            if isinstance(key.data, Link):
                key.data.close()
        self._selector.close()
        self._wake_out.close()
        self._wake_in.close()
        if self._unlink:
            os.unlink(self._unlink)
