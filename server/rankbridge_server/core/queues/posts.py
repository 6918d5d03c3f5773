"""Values between hosts: the posts of one queue, which only match each other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..admission import matching
from ..admission.matching import Side
from ..errors import BridgeError, ErrorCode, Place
from ..operations.operation import Meeting, Transfer
from ..operations.outcome import Outcome, Packed
from ..operations.payloads import as_bytes, as_tensor, bytes_spec
from ..refs.tensors import Tensors
from ..task import Task

STANDING_S = 24 * 3600.0
"""Seconds after which a standing post is posted again."""
FAREWELL_S = 30.0
"""Seconds that a reader's farewell waits for its writer, which may have ended, too."""

_END = b"end"


@dataclass(frozen=True, slots=True)
class Posts:
    """Makes the posts of one queue. `channel`: the queue's globally unique name. `name`: for error texts."""

    name: str
    channel: str
    place: Place
    tensors: Tensors
    begin: Callable[[Transfer, Task], None]
    """Posts a transfer and answers the task. Raises BridgeError when the generation is over."""

    def task(self, timeout: float = STANDING_S) -> Task:
        """A task for a post without a caller."""
        return Task(self.place, timeout, "")

    def give(self, reader: int, data: bytes | None) -> Transfer:
        """The writer's post of a value; None: the end of the queue."""
        tensors = self.tensors

        def run(meeting: Meeting) -> Callable[[], Outcome]:
            if data:
                tensor = as_tensor(tensors, data)
                meeting.coordinator.send(tensor, meeting.peer, meeting.number, meeting.timeout)
            return lambda: None

        payload = _END if data is None else str(len(data)).encode()
        return self._transfer(Side.SEND, reader, run, payload=payload)

    def take(self, writer: int, ended: Callable[[], BridgeError]) -> Transfer:
        """A reader's post for the next value. At the end of the queue raises the error that `ended` returns."""
        tensors = self.tensors

        def run(meeting: Meeting) -> Callable[[], Outcome]:
            if meeting.payload == _END:
                raise ended()
            tensor = tensors.empty(bytes_spec(int(meeting.payload), tensors.device))
            if meeting.payload != b"0":
                meeting.coordinator.recv(tensor, meeting.peer, meeting.number, meeting.timeout)
            data = as_bytes(tensors, tensor)
            return lambda: Packed(data)

        return self._transfer(Side.RECV, writer, run)

    def say_farewell(self, writer: int) -> Transfer:
        """A reader's post that it reads no more."""
        return self._transfer(Side.SEND, writer, _nothing, farewell=True)

    def hear_farewell(self, reader: int) -> Transfer:
        """The writer's post for a reader's farewell."""
        return self._transfer(Side.RECV, reader, _nothing, farewell=True)

    def _transfer(
        self,
        side: Side,
        peer: int,
        run: Callable[[Meeting], Callable[[], Outcome]],
        payload: bytes = b"",
        *,
        farewell: bool = False,
    ) -> Transfer:
        kind = f"the end of queue {self.name!r}" if farewell else f"a value in queue {self.name!r}"
        channel = f"{self.channel}/farewell" if farewell else self.channel
        post = matching.Post(0, side, peer, 0, kind, "", 0.0, payload, channel)
        return Transfer(post, run)


def _nothing(_: Meeting) -> Callable[[], Outcome]:
    return lambda: None


def writer_shut_down(rank: int) -> BridgeError:
    """The error at the end of the queue. `rank`: the writer's, in the gang."""
    return BridgeError.of(
        ErrorCode.ABORTED,
        f"rank {rank}, which writes, has shut the queue down, and all it wrote has been read",
    )
