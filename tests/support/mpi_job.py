"""An MPI job for tests: ranks in processes of their own, which do what they are told, many things at once.

Run as a program it is the job: it forks the ranks as an agent does, and ends them when its standard input is closed.
"""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path
from typing import Any, cast

import torch
from tests.support.mpi_packing import packed, unpacked

from rankbridge_server.agent.child import Child, fork
from rankbridge_server.agent.messages import Line
from rankbridge_server.agent.pmi import Pmi
from rankbridge_server.core.coordinator import GroupDescription
from rankbridge_server.core.errors import BridgeError, Failure

PATIENCE_S = 60.0
"""Bounds hangs and nothing else."""
_ROOT = Path(__file__).parents[2]
_KEY = b"tests"


class MpiRank:
    """One rank's process. It has a `backend`, a `world`, `os`, a `kit`, and whatever calls have kept."""

    def __init__(self, connection: Connection, pid: int) -> None:
        self.pid = pid
        self._connection = connection
        self._lock = threading.Lock()
        self._calls: dict[int, Future[Any]] = {}
        self._begun = 0
        threading.Thread(target=self._read, daemon=True).start()

    def start(self, name: str, method: str, *arguments: object, keep: str = "") -> Future[Any]:
        """Call a method of what has that name there. `keep`: give the result that name, instead of fetching it."""
        future: Future[Any] = Future()
        with self._lock:
            self._begun += 1
            self._calls[self._begun] = future
            self._connection.send_bytes(packed((self._begun, name, method, arguments, keep)))
        return future

    def call(self, name: str, method: str, *arguments: object, keep: str = "") -> Any:
        """The same, and wait for it."""
        return self.start(name, method, *arguments, keep=keep).result(PATIENCE_S)

    def _read(self) -> None:
        while True:
            try:
                number, result, failure = unpacked(self._connection.recv_bytes())
            except (EOFError, OSError):
                break
            future = self._calls.pop(number)
            if failure is None:
                future.set_result(result)
            elif isinstance(failure, Failure):
                future.set_exception(BridgeError(failure))
            else:
                future.set_exception(RuntimeError(failure))
        for future in list(self._calls.values()):
            future.set_exception(EOFError("the rank has ended"))


class MpiMembers:
    """The coordinators of one group, by rank in group; as `tests.support.members.Members`."""

    def __init__(self, ranks: Sequence[MpiRank], name: str) -> None:
        self.ranks = ranks
        self.name = name

    def __len__(self) -> int:
        return len(self.ranks)

    def start(self, method: str, arguments: Iterable[tuple[object, ...]]) -> list[Future[Any]]:
        """Call a method of each coordinator with its own arguments, on all at once."""
        return [
            rank.start(self.name, method, *mine) for rank, mine in zip(self.ranks, arguments, strict=True)
        ]

    def call(self, method: str, arguments: Iterable[tuple[object, ...]]) -> list[Any]:
        """What each gives. Raises the first error in group order."""
        return [future.result(PATIENCE_S) for future in self.start(method, arguments)]

    def close(self) -> None:
        """Close each."""
        self.call("close", [()] * len(self))


class MpiJob:
    """The ranks of one job."""

    def __init__(self, ranks: Sequence[MpiRank]) -> None:
        self.ranks = ranks

    def join(self, name: str, places: Sequence[int], generation: int = 1) -> list[bytes]:
        """The addresses of the members of a group, whose ranks in MPI are `places`."""
        group = GroupDescription(name, tuple(places))
        for at, place in enumerate(places):
            self.ranks[place].call("backend", "join", group, at, generation, keep=f"{name} joining")
        return [self.ranks[place].call(f"{name} joining", "address") for place in places]

    def connect(
        self, name: str, place: int, addresses: Sequence[bytes], timeout: float = PATIENCE_S
    ) -> Future[Any]:
        """Begin to connect one member."""
        return self.ranks[place].start(f"{name} joining", "connect", addresses, timeout, keep=name)

    def group(self, name: str, places: Sequence[int], generation: int = 1) -> MpiMembers:
        """Form a group."""
        addresses = self.join(name, places, generation)
        for it in [self.connect(name, place, addresses) for place in places]:
            it.result(PATIENCE_S)
        return MpiMembers([self.ranks[place] for place in places], name)


@contextmanager
def mpi_job(size: int, directory: Path) -> Iterator[MpiJob]:
    """Start a job; on leaving, it has ended."""
    path = str(directory / f"job-{size}")
    command = [sys.executable, "-m", "tests.support.mpi_job", str(size), path]
    with ExitStack() as stack:
        listener = stack.enter_context(Listener(path, "AF_UNIX", backlog=size, authkey=_KEY))
        process = stack.enter_context(subprocess.Popen(command, cwd=_ROOT, stdin=subprocess.PIPE))
        assert process.stdin is not None
        stack.callback(process.wait, PATIENCE_S)
        stack.callback(process.stdin.close)
        ranks: dict[int, MpiRank] = {}
        for _ in range(size):
            connection = stack.enter_context(listener.accept())
            number, pid = connection.recv()
            ranks[number] = MpiRank(connection, pid)
        yield MpiJob([ranks[number] for number in range(size)])


class _Kit:
    """What tests need on a rank besides. `named`: what the rank has."""

    def __init__(self, named: dict[str, Any]) -> None:
        self._named = named

    def receive(
        self, name: str, shape: Sequence[int], dtype: object, src: int, tag: int, timeout: float
    ) -> object:
        """What comes to the coordinator of that name, in a new tensor."""
        tensor = torch.empty(tuple(shape), dtype=cast(torch.dtype, dtype))
        self._named[name].recv(tensor, src, tag, timeout)
        return tensor

    def retired(self) -> int:
        """How many communicators of closed groups the backend still has."""
        return len(self._named["backend"].retired)


def _serve(path: str, rank: int, pmi: Pmi, line: Line) -> None:
    from rankbridge_server.backends.mpi import MpiBackend, MpiWorld

    pmi.enter(rank)
    world = MpiWorld.start(one_host=True, timeout=PATIENCE_S)
    named: dict[str, Any] = {"world": world, "backend": MpiBackend(world), "os": os}
    named["kit"] = _Kit(named)
    lock = threading.Lock()
    connection = Client(path, "AF_UNIX", authkey=_KEY)
    connection.send((rank, os.getpid()))

    def do(number: int, name: str, method: str, arguments: tuple[object, ...], keep: str) -> None:
        result: object = None
        failure: object = None
        try:
            found = getattr(named[name], method)
            result = found(*arguments) if callable(found) else found
        except BridgeError as error:
            failure = error.failure
        except Exception as error:
            failure = repr(error)
        if keep:
            named[keep], result = result, None
        with lock:
            connection.send_bytes(packed((number, result, failure)))

    # Threads may be stuck for ever: they are not waited for.
    threads = ThreadPoolExecutor(64)
    with suppress(EOFError, ConnectionError):
        while True:
            threads.submit(do, *unpacked(connection.recv_bytes()))


def _main(size: int, path: str) -> None:
    # So that ranks have them from the start.
    from rankbridge_server.backends import mpi  # noqa: F401

    pmi = Pmi(size)
    children: list[Child] = []
    for rank in range(size):
        children.append(fork(rank, partial(_serve, path, rank, pmi), children))
    pmi.forked()
    with selectors.DefaultSelector() as selector:
        selector.register(0, selectors.EVENT_READ)
        selector.register(pmi, selectors.EVENT_READ)
        while not any(key.fileobj == 0 for key, _ in selector.select()):
            pmi.serve()
    for child in children:
        child.kill(signal.SIGKILL)
        child.reap()
    pmi.close()


if __name__ == "__main__":
    _main(int(sys.argv[1]), sys.argv[2])
