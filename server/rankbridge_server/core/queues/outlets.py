"""How a writer sends values to each of its readers."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from ..errors import BridgeError, ErrorCode
from ..operations.operation import Transfer
from ..task import Task
from .connection import Connection, Message, MessageKind
from .memory import ValueFile
from .posts import Posts

WINDOW = 32
"""Messages on a connection without a receipt; a socket can hold this many."""


@dataclass(frozen=True, slots=True)
class WrittenValue:
    """A written value. `message` and `value_file` announce it to readers on this host."""

    data: bytes
    message: Message
    value_file: ValueFile | None


class _Outlet:
    """The way to one reader. Of the writer's thread. `reader`: its rank in the group."""

    def __init__(self, reader: int) -> None:
        self.reader = reader
        self.closed = False
        """The reader has shut the queue down."""
        self.gone = False
        """The reader cannot be reached any more."""


class NearOutlet(_Outlet):
    """To a reader on this host: notes on a line."""

    def __init__(self, reader: int, connection: Connection) -> None:
        super().__init__(reader)
        self._connection = connection
        self._backlog: deque[tuple[Message, ValueFile | None]] = deque()
        self._given = 0
        self._send_ring = 0
        self._read = 0

    @property
    def unread(self) -> int:
        """Counts the values without a receipt from the reader."""
        return self._given - self._read

    @property
    def stalled(self) -> bool:
        """Whether a message waits for the socket, which no receipt of the reader announces."""
        return bool(self._backlog) and self._send_ring - self._read < WINDOW

    def fileno(self) -> int:
        """The connection's file descriptor; negative when it is closed."""
        return -1 if self.gone else self._connection.fileno()

    def give(self, written: WrittenValue) -> None:
        """Sends the message, or keeps it until the socket can take it."""
        self._given += 1
        self._put(written.message, written.value_file)

    def end(self) -> None:
        """Sends the last message."""
        self._put(Message(MessageKind.END), None)

    def advance(self) -> None:
        """Receives receipts, and sends what the socket can take now."""
        try:
            while not self.gone and (came := self._connection.receive()) is not None:
                message, _ = came
                if message.kind is MessageKind.READ:
                    self._read = message.number
                elif message.kind is MessageKind.BYE:
                    self.closed = True
            self._flush()
        except EOFError:
            self.close()

    def close(self) -> None:
        """Closes the connection."""
        if not self.gone:
            self.gone = True
            self._connection.close()
            while self._backlog:
                _release(self._backlog.popleft()[1])

    def _put(self, message: Message, value_file: ValueFile | None) -> None:
        if self.gone:
            _release(value_file)
            return
        self._backlog.append((message, value_file))
        self._flush()

    def _flush(self) -> None:
        while self._backlog and not self.gone and self._send_ring - self._read < WINDOW:
            message, value_file = self._backlog[0]
            try:
                if not self._connection.send(message, value_file.fd if value_file else None):
                    return
            except ConnectionError:
                # `advance` receives the reader's last messages.
                return
            self._backlog.popleft()
            self._send_ring += 1
            _release(value_file)


def _release(value_file: ValueFile | None) -> None:
    if value_file is not None:
        value_file.release()


class FarOutlet(_Outlet):
    """To a reader on another host: each value is posted, and moved when the reader comes for it.

    `call_soon`: runs an action on the writer's thread. Beside the values, one post waits for the reader's farewell.
    """

    def __init__(self, reader: int, posts: Posts, call_soon: Callable[[Callable[[], None]], bool]) -> None:
        super().__init__(reader)
        self._posts = posts
        self._call_soon = call_soon
        # None: the end.
        self._values: deque[bytes | None] = deque()
        self._under_way: Task | None = None
        self._farewell: Task | None = None

    @property
    def unread(self) -> int:
        """Counts the values that the reader has not received."""
        return sum(it is not None for it in self._values)

    def give(self, written: WrittenValue) -> None:
        """Posts the value after all before it have been read."""
        if not self.gone:
            self._values.append(written.data)
        self.advance()

    def end(self) -> None:
        """Posts the end of the queue after all values."""
        if not self.gone:
            self._values.append(None)
        self.advance()

    def advance(self) -> None:
        """Posts the next value, and the wait for the reader's farewell."""
        if self.gone:
            return
        if self._farewell is None:
            self._farewell = self._post(self._posts.hear_farewell(self.reader), self._said_farewell)
        if self._under_way is None and self._values and not self.gone:
            self._under_way = self._post(self._posts.give(self.reader, self._values[0]), self._read)

    def close(self) -> None:
        """Withdraws the posts."""
        self.gone = True
        self._values.clear()
        for task in (self._under_way, self._farewell):
            if task is not None:
                task.cancel("the queue has ended")

    def _post(self, transfer: Transfer, answered: Callable[[Task], None]) -> Task | None:
        def answered_soon(done: Task) -> None:
            self._call_soon(lambda: answered(done))

        task = self._posts.task()
        try:
            self._posts.begin(transfer, task)
        except BridgeError:
            # The generation is over, and will end this queue.
            self.gone = True
            return None
        task.then(answered_soon)
        return task

    def _read(self, task: Task) -> None:
        self._under_way = None
        if self._went(task) and self._values and self._values.popleft() is None:
            self.close()
        self.advance()

    def _said_farewell(self, task: Task) -> None:
        self._farewell = None
        if self._went(task):
            self.closed = True
            self.close()
        self.advance()

    def _went(self, task: Task) -> bool:
        error = task.error
        if error is None:
            return True
        # A post that has met no other within its timeout of a day is posted again.
        if error.failure.code is not ErrorCode.PEER_MISSING:
            self.gone = True
        return False


Outlet = NearOutlet | FarOutlet
"""Gives its reader values, and then their end; `advance` does what can be done."""
