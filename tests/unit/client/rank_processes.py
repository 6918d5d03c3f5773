"""Real ranks on Gloo, each a process that can be killed and started again at the same endpoints.

As a program, it does for tests what an agent does for a job: it imports torch once, and forks a rank for each line
"RANK SIZE PORT" of its standard input (port 0: a new one, which it holds from then on). The rank serves at
DIRECTORY/rank-RANK and at the port, and its line of output is "RANK PID PORT". When standard input is closed, all end.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

_PR_SET_PDEATHSIG = 1


@dataclass
class RankProcesses:
    """The ranks that a test runs, and how to reach them.

    Attributes:
        size: Ranks in the gang.
        unix: Each rank's unix socket as a gRPC target.
        tcp: Each rank's target on loopback.
        pids: Each rank's process id.
        dead: Ranks that were killed and not replaced.
    """

    commands: IO[str]
    answers: IO[str]
    directory: Path
    size: int
    unix: list[str]
    tcp: list[str]
    pids: list[int]
    dead: set[int] = field(default_factory=set)

    def kill(self, rank: int) -> None:
        """Kills a rank, and returns when it is gone from its port."""
        self.dead.add(rank)
        gone = os.pidfd_open(self.pids[rank])
        try:
            os.kill(self.pids[rank], signal.SIGKILL)
            _until_readable(gone)
        finally:
            os.close(gone)

    def start(self, rank: int, port: int = 0) -> None:
        """Starts a rank, and returns when it serves."""
        print(rank, self.size, port, file=self.commands, flush=True)
        reported, pid, port = map(int, self.answers.readline().split())
        assert reported == rank
        self.dead.discard(rank)
        self.pids[rank] = pid
        self.tcp[rank] = f"127.0.0.1:{port}"

    def replace(self, rank: int) -> None:
        """Starts a rank at the endpoints that it had before."""
        self.start(rank, int(self.tcp[rank].rpartition(":")[2]))


@contextlib.contextmanager
def rank_processes(directory: Path, size: int) -> Iterator[RankProcesses]:
    """Starts ranks, of which no generation is formed yet; on leaving, they have ended."""
    command = [sys.executable, __file__, str(directory)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            unix = [f"unix:{directory}/rank-{rank}" for rank in range(size)]
            ranks = RankProcesses(
                process.stdin, process.stdout, directory, size, unix, [""] * size, [0] * size
            )
            for rank in range(size):
                ranks.start(rank)
            yield ranks
        finally:
            process.stdin.close()
            process.wait(60)


def _until_readable(pidfd: int) -> None:
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    assert poll.poll(20_000), "the rank has not ended"


def _main(directory: str) -> None:
    import rankbridge_server.backends.gloo
    import rankbridge_server.sidecar.sidecar  # noqa: F401
    from rankbridge_server.agent.ports import HeldPort

    # Nobody else gets a port while its rank is dead.
    held: list[HeldPort] = []

    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for line in sys.stdin:
        rank, size, port = map(int, line.split())
        if port == 0:
            held.append(HeldPort())
            port = held[-1].address.port or 0
        if os.fork() == 0:
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            _serve(directory, rank, size, port)
    # The ranks die with their parent.
    os._exit(0)


def _serve(directory: str, rank: int, size: int, port: int) -> None:
    from rankbridge_server.backends.gloo import GlooBackend
    from rankbridge_server.core.limits import Limits
    from rankbridge_server.core.rank import Identity
    from rankbridge_server.links.heartbeat import Heartbeat
    from rankbridge_server.links.sockets import SocketLinkMaker
    from rankbridge_server.sidecar.settings import RankSettings
    from rankbridge_server.sidecar.sidecar import Sidecar

    links = f"unix:{directory}/links-{rank}-{os.getpid()}"
    settings = RankSettings(
        listen=(f"unix:{directory}/rank-{rank}", f"127.0.0.1:{port}"),
        links=links,
        limits=Limits(),
        # A loaded machine is not to lose ranks by itself. One that is killed is lost at once.
        heartbeat=Heartbeat(misses=300),
    )
    sidecar = Sidecar(
        Identity(rank=rank, world_size=size, local_rank=rank), GlooBackend(), SocketLinkMaker(links), settings
    )
    print(rank, os.getpid(), sidecar.endpoints[1].rpartition(":")[2], flush=True)
    while True:
        signal.pause()


if __name__ == "__main__":
    _main(sys.argv[1])
