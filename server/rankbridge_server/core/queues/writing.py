"""The writing end of a queue."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from ..errors import BridgeError, ErrorCode, RankDetail, RankState
from ..task import Task
from ..waker import Waker
from .connection import Connection, Message, MessageKind
from .memory import Ring, ValueFile
from .outlets import FarOutlet, NearOutlet, Outlet, WrittenValue
from .posts import Posts
from .view import QueueView
from .waiting import WaitingCall, WaitingLoop, shut_down_here


class WritingEnd(WaitingLoop):
    """Writes each value for all readers or for none. `ranks`: of the group, in the gang.

    After its shutdown it lives until every reader has read everything, or is gone.
    """

    def __init__(
        self,
        view: QueueView,
        ranks: Sequence[int],
        waker: Waker,
        ring: Ring | None,
        near: Mapping[int, Connection],
        far: Sequence[int],
        posts: Posts,
    ) -> None:
        super().__init__(view, waker)
        self._ranks = ranks
        self._ring = ring
        self._near = [NearOutlet(reader, connection) for reader, connection in near.items()]
        self._outlets: list[Outlet] = [
            *self._near,
            *(FarOutlet(reader, posts, self.call_soon) for reader in far),
        ]
        self._written = 0

    def enqueue(self, data: bytes, task: Task) -> None:
        """Writes a value when there is room for it, and answers the task."""
        self.wait(WaitingCall(task, data))

    def shut_down(self) -> None:
        """Shuts down this end."""
        self.call_soon(self._shut_down)

    def interests(self) -> Iterable[int]:
        """The lines of readers on this host."""
        return [it.fileno() for it in self._near if not it.gone]

    def _stalled(self) -> bool:
        return any(it.stalled for it in self._near)

    def look(self) -> None:
        """Reads the readers' notes, writes while there is room, and answers the calls whose time is over."""
        for outlet in self._outlets:
            outlet.advance()
        self._serve()
        self._expire()
        if self._over is not None and all(it.gone or it.closed for it in self._outlets):
            self.finish()

    def dispose(self) -> None:
        """Hang up on all."""
        for outlet in self._outlets:
            outlet.close()
        if self._ring is not None:
            self._ring.close()

    def _shut_down(self) -> None:
        if self._over is None:
            self._end(shut_down_here())
            for outlet in self._outlets:
                outlet.end()

    def _serve(self) -> None:
        while self._calls:
            if closed := [it for it in self._outlets if it.closed]:
                self._fail_waiting(self._closed(closed))
                return
            if self._full():
                return
            call = self._next_call()
            if call is None:
                return
            try:
                self._write(call.data)
            except OSError as error:
                call.task.fail(
                    BridgeError.of(
                        ErrorCode.RESOURCE_EXHAUSTED,
                        f"no shared memory for the value: {error}",
                        got=f"{len(call.data)} bytes",
                    )
                )
            else:
                call.task.commit(lambda: None)

    def _write(self, data: bytes) -> None:
        number, value_file = self._written, None
        message = Message(MessageKind.VALUE, number, len(data))
        near = [written for written in self._near if not written.gone]
        if self._ring is not None and len(data) <= self.view.max_chunk_bytes:
            message = message._replace(checksum=self._ring.write(number, data))
        elif near:
            # Raises before any reader was given anything.
            message, value_file = message._replace(kind=MessageKind.FILE), ValueFile(data, len(near))
        written = WrittenValue(data, message, value_file)
        for outlet in self._outlets:
            if not outlet.gone:
                outlet.give(written)
        self._written += 1

    def _full(self) -> list[Outlet]:
        return [it for it in self._outlets if it.unread >= self.view.max_chunks]

    def _missing(self) -> BridgeError:
        full = self._full()
        return BridgeError.of(
            ErrorCode.PEER_MISSING,
            f"there was no room in time: {self._names(full)} did not read",
            expected=f"fewer than {self.view.max_chunks} unread",
            got=f"{max((it.unread for it in full), default=0)} unread",
            ranks=self._details(full, RankState.MISSING, lambda it: f"{it.unread} unread"),
        )

    def _closed(self, closed: Sequence[Outlet]) -> BridgeError:
        return BridgeError.of(
            ErrorCode.ABORTED,
            f"{self._names(closed)} shut the queue down",
            expected="readers that read",
            got=f"{len(closed)} of {len(self._outlets)} shut down",
            ranks=self._details(closed, RankState.FAILED, lambda _: "it shut the queue down"),
        )

    def _details(
        self, outlets: Sequence[Outlet], state: RankState, detail: Callable[[Outlet], str]
    ) -> tuple[RankDetail, ...]:
        return tuple(
            RankDetail(rank=self._ranks[it.reader], rank_in_group=it.reader, state=state, detail=detail(it))
            for it in sorted(outlets, key=lambda it: self._ranks[it.reader])
        )

    def _names(self, outlets: Sequence[Outlet]) -> str:
        ranks = sorted(self._ranks[it.reader] for it in outlets)
        return ("ranks " if len(ranks) != 1 else "rank ") + (", ".join(map(str, ranks)) or "none")
