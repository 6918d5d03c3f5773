"""How the ranks of a job find each other for guard: by the store of its default group."""

from __future__ import annotations

import json
import math
import os
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from typing import Any

from ...core.activity import Activity
from ...core.errors import ErrorCode
from ...core.links import Ended, Links
from ...core.queues.host import host_id
from ...links.heartbeat import Heartbeat
from ...links.listeners import HostAndNetworkListener, Listener, SocketListener
from ...links.sockets import SocketLinks
from ...sidecar.runtime_dir import runtime_dir
from ..board import Board
from ..torch_job import TorchJob
from .errors import GuardError
from .network import network_address

# A rank whose process runs is not lost, however long its script keeps Python's lock; a closed link says that it ended.
_HEARTBEAT = Heartbeat(interval=10.0, misses=100_000)
_SILENCE_S = 60.0
"""A rank on another host is lost when the network has acknowledged nothing for so long."""
_PAUSE_S = 0.002


class Meeting:
    """This rank's links with the other ranks of the job's default group; a group's are made when it is used.

    `number`: of the default group, in this process. `timeout`: seconds for another rank to come. `ended`: called when a
    rank is lost. `activity`: what this rank does while others wait for it in a group.
    """

    def __init__(
        self,
        number: int,
        timeout: float,
        ended: Callable[[Ended], None],
        activity: Callable[[str], Activity],
    ) -> None:
        job = TorchJob()
        self.rank, self.size = job.rank, job.size
        self._timeout = timeout
        self._host = host_id()
        prefix = f"rankbridge/guard/{os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}/{number}"
        # Of its own: the script's thread may be waiting in the job's.
        store: Any = job.store
        self.board = Board(store.clone(), prefix, self.rank, self.size, math.inf, threading.Event())
        self._directory = ExitStack()
        path = self._directory.enter_context(runtime_dir())
        self.links: Links = SocketLinks(1, self.rank, _listener(f"unix:{path}/guard", job), _HEARTBEAT)
        # The first rank to come makes it. Who can read the store can also end the job.
        secret = self.board.write_once("secret", secrets.token_hex(32))
        self.links.start(_Addresses(self), secret.encode(), ended, _ignore, _ignore_notice, activity)
        self.board.write_mine("rank", json.dumps([self._host, *self.links.address.split(" ")]))

    def address(self, rank: int) -> str:
        """Where another rank listens. Raises GuardError: it has not come to any collective, or cannot be reached."""
        until = time.monotonic() + self._timeout
        while (entry := self._entry(rank)) is None:
            if time.monotonic() > until:
                raise GuardError.of(
                    ErrorCode.PEER_MISSING, f"rank {rank} has called no collective in {self._timeout:g} s"
                )
            time.sleep(_PAUSE_S)
        host, on_host, *on_network = json.loads(entry)
        if host == self._host:
            return str(on_host)
        if not on_network:
            raise GuardError.of(
                ErrorCode.UNSUPPORTED_OPERATION,
                f"rank {rank} is on another host than rank {self.rank}, and only loopback leads from there to "
                "MASTER_ADDR, or to the interface in GLOO_SOCKET_IFNAME or NCCL_SOCKET_IFNAME",
            )
        return str(on_network[0])

    def _entry(self, rank: int) -> str | None:
        try:
            return self.board.find(f"rank/{rank}")
        except RuntimeError as error:
            raise GuardError.of(ErrorCode.PEER_LOST, f"the job's store has gone: {error}") from error

    def end(self) -> None:
        """Ends the links. The groups have been left before."""
        self.links.end(Ended(self.rank, False, f"rank {self.rank} has left the job"))
        self._directory.close()


def _listener(path: str, job: TorchJob) -> Listener:
    listener = SocketListener(path)
    if network := network_address(job.size, job.store_host):
        return HostAndNetworkListener(listener, SocketListener(f"{network}:0"), _SILENCE_S)
    return listener


class _Addresses(Mapping[int, str]):
    """Addresses by rank, each looked up when it is dialled."""

    def __init__(self, meeting: Meeting) -> None:
        self._meeting = meeting

    def __getitem__(self, rank: int) -> str:
        return self._meeting.address(rank)

    def __iter__(self) -> Iterator[int]:
        return iter(range(self._meeting.size))

    def __len__(self) -> int:
        return self._meeting.size

    def __contains__(self, rank: object) -> bool:
        return isinstance(rank, int) and 0 <= rank < self._meeting.size


def _ignore(_: object) -> None:
    """There are no gang calls."""


def _ignore_notice(_group: str, _ranks: object, _notice: object) -> None:
    """Every member hears of it by its own error."""
