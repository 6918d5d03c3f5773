"""Sockets under a schedule: stand-ins for what the links take of `socket` and `select`.

A socket that is made by `socketpair` is within one process: what is sent has come. One of a `Network` connects two
processes, each way is a queue, and what is on its way comes when the schedule says so. Connections are independent of
each other. One can be cut, and its ends learn of that as they learn the end of a stream; a process that is killed
closes its ends.
"""

from __future__ import annotations

import select
import socket
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

from tests.model.simulation import Process, SimulatedCondition, Simulation

from rankbridge_server.core.links import LinkMaker, Links
from rankbridge_server.links.heartbeat import Heartbeat
from rankbridge_server.links.sockets import SocketLinks

# No rank of a simulation is lost because it stands still.
NO_BEATS = Heartbeat(interval=float("inf"))

END = b""


class Half:
    """One direction of a connection. `queue`: what is on its way; `open`: the receiver may still read."""

    def __init__(self, sender: Process | None = None, receiver: Process | None = None) -> None:
        self.sender = sender
        self.receiver = receiver
        self.queue: deque[bytes] = deque()
        self.open = True
        self.slow = False
        self.data = bytearray()
        self.ended = False
        self.watchers: dict[Poll, None] = {}

    def __str__(self) -> str:
        return f"{self.sender}->{self.receiver} {[len(it) for it in self.queue]}"

    @property
    def readable(self) -> bool:
        """Whether a read would not wait."""
        return bool(self.data) or self.ended

    def put(self, data: bytes) -> None:
        """Send it."""
        if self.slow:
            self.queue.append(data)
        else:
            self.arrive(data)

    def arrive(self, data: bytes) -> None:
        """Let it come."""
        if self.open:
            self.data += data
            self.ended |= data == END
            for watcher in list(self.watchers):
                watcher.wake()


class Connection:
    """Both directions between who has dialled (`up` is what that sends) and who was. `cut`: nothing gets through."""

    def __init__(self, dialler: Process, listener: Process) -> None:
        self.up = Half(dialler, listener)
        self.down = Half(listener, dialler)
        self.cut = False

    def establish(self) -> None:
        """Both have said who they are; what is sent from now on is on its way for a while."""
        self.up.slow = self.down.slow = True


class SimulatedSocket:
    """One end."""

    # Of another host: no process of this one is behind it.
    family = socket.AF_INET

    def __init__(
        self, files: Files, out: Half, into: Half, on_receive: Callable[[], None] | None = None
    ) -> None:
        self._files = files
        self._on_receive = on_receive
        self._out = out
        self.into = into
        self._said_end = False
        self._fileno = files.add(self)

    def fileno(self) -> int:
        return self._fileno

    def setblocking(self, blocking: bool) -> None:
        """What would wait is a fault of the test."""

    def setsockopt(self, *_: object) -> None:
        """There is always room."""

    def sendall(self, data: bytes) -> None:
        if self._said_end or (self.into.ended and not self._out.open):
            raise BrokenPipeError("the connection has ended")
        self._out.put(bytes(data))

    send = sendall

    def recv(self, size: int, flags: int = 0) -> bytes:
        it = self.into
        if not it.readable:
            assert flags & socket.MSG_DONTWAIT, "it would have to wait"
            raise BlockingIOError("nothing has come")
        data = bytes(it.data[:size])
        del it.data[:size]
        if self._on_receive is not None:
            self._on_receive()
        return data

    def shutdown(self, how: int) -> None:
        if how in (socket.SHUT_RD, socket.SHUT_RDWR):
            self.into.arrive(END)
        if how in (socket.SHUT_WR, socket.SHUT_RDWR) and not self._said_end:
            self._said_end = True
            self._out.put(END)

    def close(self) -> None:
        if self._fileno >= 0:
            self.shutdown(socket.SHUT_RDWR)
            self.into.open = False
            self._files.remove(self._fileno)
            self._fileno = -1
            for watcher in list(self.into.watchers):
                watcher.forget(self)


class _HasFileno(Protocol):
    def fileno(self) -> int: ...


class Poll:
    """As `select.poll`; as `select.epoll` if `seconds`."""

    def __init__(self, files: Files, seconds: bool = False) -> None:
        self._files = files
        self._seconds = seconds
        self._closed = False
        self._watched: dict[int, SimulatedSocket] = {}
        self._changed = SimulatedCondition(simulation=files.simulation, shared=True)

    def register(self, what: int | _HasFileno, events: int = 0) -> None:
        fileno = what if isinstance(what, int) else what.fileno()
        self._check(fileno not in self._watched, FileExistsError)
        it = self._files.find(fileno)
        self._watched[fileno] = it
        it.into.watchers[self] = None

    def unregister(self, what: int | _HasFileno) -> None:
        fileno = what if isinstance(what, int) else what.fileno()
        self._check(fileno in self._watched, FileNotFoundError)
        self.forget(self._watched[fileno])

    def poll(self, timeout: float | None = None) -> list[tuple[int, int]]:
        self._check(True, ValueError)
        seconds = None if timeout is None or timeout < 0 else timeout if self._seconds else timeout / 1000
        with self._changed:
            self._changed.wait_for(lambda: self._closed or bool(self._ready()), seconds)
        return [(fileno, select.POLLIN) for fileno in self._ready()]

    def close(self) -> None:
        self._closed = True
        for it in list(self._watched.values()):
            self.forget(it)

    def wake(self) -> None:
        """Something has come."""
        with self._changed:
            self._changed.notify_all()

    def forget(self, it: SimulatedSocket) -> None:
        """It is not watched any more."""
        it.into.watchers.pop(self, None)
        self._watched = {fileno: known for fileno, known in self._watched.items() if known is not it}

    def _ready(self) -> list[int]:
        return [fileno for fileno, it in self._watched.items() if it.into.readable]

    def _check(self, right: bool, error: type[Exception]) -> None:
        if self._closed:
            raise ValueError("it is closed")
        if not right:
            raise error


class Files:
    """The open files of a simulation, and the makers that stand for those of `socket` and `select`."""

    def __init__(self, simulation: Simulation) -> None:
        self.simulation = simulation
        self._open: dict[int, SimulatedSocket] = {}

    def add(self, it: SimulatedSocket) -> int:
        """Gives the lowest number that is free, as an operating system does."""
        fileno = next(number for number in range(len(self._open) + 1) if number not in self._open)
        self._open[fileno] = it
        return fileno

    def find(self, fileno: int) -> SimulatedSocket:
        if fileno not in self._open:
            raise OSError(f"{fileno} is not open")
        return self._open[fileno]

    def remove(self, fileno: int) -> None:
        del self._open[fileno]

    def socketpair(self) -> Any:
        if not self.simulation.driving:
            return socket.socketpair()
        one, other = Half(), Half()
        return SimulatedSocket(self, one, other), SimulatedSocket(self, other, one)

    def poll(self) -> Any:
        return Poll(self) if self.simulation.driving else select.poll()

    def epoll(self) -> Any:
        return Poll(self, seconds=True) if self.simulation.driving else select.epoll()


class Network:
    """All connections of one simulation. `faults`: what a leader refused to hear."""

    def __init__(self, simulation: Simulation) -> None:
        self.simulation = simulation
        self.files = Files(simulation)
        self.connections: list[Connection] = []
        self.faults: list[str] = []
        self._listeners: dict[str, SimulatedListener] = {}

    def maker(self, process: Process) -> LinkMaker:
        """Makes the links of one process."""

        def make(generation: int, rank: int) -> Links:
            listener = SimulatedListener(self, process, f"simulated:{generation}/{rank}")
            self._listeners[listener.address] = listener
            return SocketLinks(generation, rank, listener, NO_BEATS)

        return make

    def moving(self) -> list[Half]:
        """The directions in which something is on its way to a rank that runs."""
        halves = [half for connection in self.connections for half in (connection.up, connection.down)]
        return [half for half in halves if half.queue and half.receiver and not half.receiver.frozen]

    def deliver(self, half: Half) -> None:
        """Let what was sent first in one direction come."""
        half.arrive(half.queue.popleft())

    def live(self) -> list[Connection]:
        """Those that somebody still uses."""
        return [it for it in self.connections if not it.cut and (it.up.open or it.down.open)]

    def cut(self, connection: Connection) -> None:
        """Lose all that is on its way; both ends will read the end of the stream."""
        connection.cut = True
        for half in (connection.up, connection.down):
            half.queue.clear()
            half.queue.append(END)

    def kill(self, process: Process, lose: bool) -> None:
        """Close a process's ends; `lose`: what it has sent is lost as well."""
        process.dead = True
        for connection in self.connections:
            for out, back in ((connection.up, connection.down), (connection.down, connection.up)):
                if out.sender is process:
                    if lose:
                        out.queue.clear()
                    out.put(END)
                    back.queue.clear()
                    back.open = False

    def connect(self, process: Process, address: str) -> SimulatedSocket:
        """Dial. Raises ConnectionError when nobody listens there."""
        listener = self._listeners.get(address)
        if listener is None or listener.closed or listener.process.dead:
            raise ConnectionError(f"nobody listens at {address}")
        connection = Connection(process, listener.process)
        self.connections.append(connection)
        listener.call(SimulatedSocket(self.files, connection.down, connection.up))
        # What comes first is the welcome.
        return SimulatedSocket(self.files, connection.up, connection.down, connection.establish)


class SimulatedListener:
    """Implements `links.listeners.Listener`."""

    def __init__(self, network: Network, process: Process, address: str) -> None:
        self.process = process
        self.address = address
        self.closed = False
        self._network = network
        self._bell, self._rings = network.files.socketpair()
        self._calls: deque[SimulatedSocket] = deque()

    def fileno(self) -> int:
        fileno: int = self._bell.fileno()
        return fileno

    def call(self, it: SimulatedSocket) -> None:
        """Somebody has dialled."""
        self._calls.append(it)
        self._rings.send(b"x")

    def accept(self) -> Any:
        self._bell.recv(1)
        return self._calls.popleft()

    def dial(self, address: str, timeout: float) -> Any:
        return self._network.connect(self.process, address)

    def close(self) -> None:
        self.closed = True
        for it in self._calls:
            it.close()
        self._bell.close()
        self._rings.close()
