"""PMI-1, the service that MPI ranks expect from their launcher, served by the agent that forked them.

Each rank has its own socket pair, so that nobody else can take part. A line is a request or an answer, of words
`key=value`; the values here have no spaces. Ranks put what the others must know, wait for each other, and get it.
"""

from __future__ import annotations

import os
import secrets
import selectors
import socket
from collections.abc import Callable, Sequence
from pathlib import Path

_MAXES = "cmd=maxes rc=0 kvsname_max=256 keylen_max=64 vallen_max=1024"
# A rank says no more than this without an end of line.
_LINE_MOST = 4096


class Pmi:
    """The PMI server of one gang on one host, in the process of its agent.

    Make it before the ranks are forked. Each rank calls `enter` before it begins MPI. `ends`: the ranks' ends of the
    socket pairs.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._name = f"rankbridge_{os.getpid()}_{secrets.token_hex(8)}"
        pairs = [socket.socketpair() for _ in range(size)]
        self._ours = [ours for ours, _ in pairs]
        self.ends = [theirs for _, theirs in pairs]
        self._selector = selectors.EpollSelector()
        self._buffers = [b""] * size
        self._values = {"PMI_process_mapping": f"(vector,(0,1,{size}))"}
        self._waiting: set[int] = set()
        self._answers: dict[str, Callable[[dict[str, str]], str]] = {
            "init": lambda _: "cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=1",
            "get_maxes": lambda _: _MAXES,
            "get_appnum": lambda _: "cmd=appnum rc=0 appnum=0",
            "get_universe_size": lambda _: f"cmd=universe_size rc=0 size={size}",
            "get_my_kvsname": lambda _: f"cmd=my_kvsname rc=0 kvsname={self._name}",
            "put": self._put,
            "get": self._get,
            "finalize": lambda _: "cmd=finalize_ack rc=0",
        }
        for rank, end in enumerate(self._ours):
            end.setblocking(False)
            self._selector.register(end, selectors.EVENT_READ, rank)

    def enter(self, rank: int) -> None:
        """In the process of a rank: sets MPI's environment variables for this server."""
        self._selector.close()
        for end in [*self._ours, *self.ends[:rank], *self.ends[rank + 1 :]]:
            end.close()
        # Of a launcher that has started the agent.
        for name in [name for name in os.environ if name.startswith(("PMI_", "PMIX_", "HYDI_", "MPI_LOCAL"))]:
            del os.environ[name]
        fd = str(self.ends[rank].fileno())
        os.environ.update(PMI_FD=fd, PMI_RANK=str(rank), PMI_SIZE=str(self._size))

    def forked(self) -> None:
        """Closes the ranks' ends here, once all ranks are forked."""
        for end in self.ends:
            end.close()

    def fileno(self) -> int:
        """Gives a file descriptor that is readable when a rank has sent a request."""
        return self._selector.fileno()

    def serve(self) -> Sequence[int]:
        """Answers requests; returns the ranks that are gone, or sent a request that PMI-1 does not have."""
        gone: list[int] = []
        for key, _ in self._selector.select(0):
            rank: int = key.data
            if not self._read(rank):
                self._selector.unregister(key.fileobj)
                self._ours[rank].close()
                gone.append(rank)
        return gone

    def close(self) -> None:
        """Releases everything, once all ranks have ended."""
        self._selector.close()
        for end in [*self._ours, *self.ends]:
            end.close()
        # Ranks that ended while they began MPI leave it behind.
        Path(f"/dev/shm/mpich_shm_{_fnv1a(self._name):x}_0").unlink(missing_ok=True)

    def _read(self, rank: int) -> bool:
        try:
            data = self._ours[rank].recv(65536)
        except ConnectionError:
            return False
        *lines, rest = (self._buffers[rank] + data).split(b"\n")
        self._buffers[rank] = rest
        return bool(data) and len(rest) <= _LINE_MOST and all(self._handle(rank, line) for line in lines)

    def _handle(self, rank: int, line: bytes) -> bool:
        """Returns False for an unknown request. MPI ends a rank whose server closes the connection."""
        request = dict(word.partition("=")[::2] for word in line.decode(errors="replace").split())
        command = request.get("cmd", "")
        if command == "barrier_in":
            return self._arrived(rank)
        answer = self._answers.get(command)
        return answer is not None and self._send(rank, answer(request))

    def _arrived(self, rank: int) -> bool:
        self._waiting.add(rank)
        if len(self._waiting) < self._size:
            return True
        self._waiting.clear()
        for other in range(self._size):
            self._send(other, "cmd=barrier_out rc=0")
        return True

    def _put(self, request: dict[str, str]) -> str:
        self._values[request.get("key", "")] = request.get("value", "")
        return "cmd=put_result rc=0 msg=success"

    def _get(self, request: dict[str, str]) -> str:
        value = self._values.get(request.get("key", ""))
        if value is None:
            return "cmd=get_result rc=-1 msg=key_not_found value=unknown"
        return f"cmd=get_result rc=0 msg=success value={value}"

    def _send(self, rank: int, line: str) -> bool:
        try:
            self._ours[rank].sendall(line.encode() + b"\n")
        except OSError:
            # The rank has ended, which its closed end shows, or it does not read.
            return False
        return True


def _fnv1a(text: str) -> int:
    """FNV-1a, in 32 bits, which MPICH makes the name of its shared memory of."""
    digest = 2166136261
    for byte in text.encode():
        digest = (digest ^ byte) * 16777619 % 2**32
    return digest
