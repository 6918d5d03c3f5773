"""The reading ends of a queue."""

from __future__ import annotations

import threading
from collections.abc import Iterable

from ..errors import BridgeError, ErrorCode, RankDetail, RankState
from ..operations.outcome import Packed
from ..task import Task
from ..waker import Waker
from .connection import Connection, Message, MessageKind
from .memory import Ring, close_all, read_value_file
from .posts import FAREWELL_S, Posts, writer_shut_down
from .view import QueueView
from .waiting import WaitingCall, WaitingLoop, shut_down_here


class NearReadingEnd(WaitingLoop):
    """On the writer's host: values lie in shared memory. `writer`: its rank in the gang."""

    def __init__(
        self, view: QueueView, writer: int, waker: Waker, connection: Connection, ring: Ring
    ) -> None:
        super().__init__(view, waker)
        self._writer = writer
        self._connection = connection
        self._ring = ring
        # A note that came and that nobody has waited for yet.
        self._held: tuple[Message, int | None] | None = None
        self._read = 0
        self._confirmed = 0
        self._hears = True

    def dequeue(self, task: Task) -> None:
        """Answers the task with the next value when there is one."""
        self.wait(WaitingCall(task))

    def shut_down(self) -> None:
        """Ends the thread, and informs the writer."""

        def leave() -> None:
            self._end(shut_down_here())
            self._say(Message(MessageKind.BYE))

        self.call_soon(leave)

    def interests(self) -> Iterable[int]:
        """The line, when somebody waits for what comes on it."""
        return [self._connection.fileno()] if self._hears and self._calls and self._held is None else []

    def _stalled(self) -> bool:
        return self._confirmed < self._read and self._hears

    def look(self) -> None:
        """Gives out the values that have come, and answers the calls whose time is over."""
        while self._calls and (message := self._next()) is not None:
            if message.kind is MessageKind.END:
                self._end(writer_shut_down(self._writer))
            elif (call := self._next_call()) is not None:
                self._give(call.task)
        self._expire()
        if self._confirmed < self._read and self._say(Message(MessageKind.READ, self._read)):
            self._confirmed = self._read

    def dispose(self) -> None:
        """Closes the connection."""
        if self._held is not None:
            self._drop(self._held)
        self._connection.close()
        self._ring.close()

    def _next(self) -> Message | None:
        if self._held is None and self._hears:
            try:
                self._held = self._connection.receive()
            except EOFError:
                # The writer's process or generation has ended; the links report that to this rank.
                self._hears = False
        return self._held[0] if self._held else None

    def _give(self, task: Task) -> None:
        assert self._held is not None
        held, self._held = self._held, None
        try:
            data = self._data(*held)
        except (OSError, ValueError) as error:
            # A later value is not the next one.
            lost = BridgeError.of(ErrorCode.ABORTED, f"a value was lost, and the queue with it: {error}")
            task.fail(lost)
            self._end(lost)
            self._say(Message(MessageKind.BYE))
            return
        finally:
            self._drop(held)
        self._read += 1
        task.commit(lambda: Packed(data))

    def _data(self, message: Message, fd: int | None) -> bytes:
        if message.number != self._read:
            raise ValueError(f"value {self._read} was due, and {message.number} came")
        if message.kind is MessageKind.VALUE:
            return self._ring.read(message.number, message.length, message.checksum)
        if fd is None:
            raise OSError("too many open files")
        return read_value_file(fd, message.length)

    @staticmethod
    def _drop(held: tuple[Message, int | None]) -> None:
        close_all([] if held[1] is None else [held[1]])

    def _say(self, message: Message) -> bool:
        try:
            return self._connection.send(message)
        except ConnectionError:
            # The writer has gone.
            return True

    def _end(self, error: BridgeError) -> None:
        super()._end(error)
        self.finish()

    def _missing(self) -> BridgeError:
        return BridgeError.of(
            ErrorCode.PEER_MISSING,
            f"rank {self._writer} wrote nothing in time",
            expected=f"a value in queue {self.view.name!r}",
            got="nothing",
            ranks=(RankDetail(rank=self._writer, rank_in_group=self.view.writer, state=RankState.MISSING),),
        )


class FarReadingEnd:
    """On another host than the writer: each call is a post, and the group's leader rules on it. Thread-safe."""

    def __init__(self, view: QueueView, writer: int, posts: Posts) -> None:
        self.view = view
        self._writer = writer
        self._posts = posts
        self._lock = threading.Lock()
        self._tasks: set[Task] = set()
        self._over: BridgeError | None = None

    @property
    def finished(self) -> bool:
        """Whether the end was shut down or closed."""
        return self._over is not None

    def dequeue(self, task: Task) -> None:
        """Posts a receive for the next value."""
        with self._lock:
            over = self._over
            if over is None:
                self._tasks.add(task)
        if over is not None:
            task.fail(over)
            return
        task.then(self._tasks.discard)
        self._posts.begin(self._posts.take(self.view.writer, self._ended), task)

    def shut_down(self) -> None:
        """Answers the waiting calls, and informs the writer."""
        if self._end(shut_down_here()):
            self._farewell()

    def close(self, error: BridgeError) -> None:
        """Answers the waiting calls."""
        self._end(error)

    def _farewell(self) -> None:
        try:
            self._posts.begin(self._posts.say_farewell(self.view.writer), self._posts.task(FAREWELL_S))
        except BridgeError:
            # The generation is over, also for the writer.
            return

    def _ended(self) -> BridgeError:
        error = writer_shut_down(self._writer)
        self._end(error)
        return error

    def _end(self, error: BridgeError) -> bool:
        with self._lock:
            first = self._over is None
            self._over = self._over or error
            tasks = list(self._tasks)
        for task in tasks:
            task.abort(error)
        return first
