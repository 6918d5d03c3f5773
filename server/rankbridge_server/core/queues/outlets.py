"""The ways from a writer to each of its readers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from ..errors import BridgeError, ErrorCode
from ..operations.operation import Transfer
from ..task import Task
from .line import Kind, Line, Note
from .memory import Parcel
from .posts import Posts

WINDOW = 32
"""Notes that are on a line and not answered; a socket has room for so many."""


@dataclass(frozen=True, slots=True)
class Written:
    """A value that was written. `note` and `parcel` announce it to readers on this host."""

    data: bytes
    note: Note
    parcel: Parcel | None


class Outlet(ABC):
    """The way to one reader. Of the writer's thread. `reader`: its rank in the group."""

    def __init__(self, reader: int) -> None:
        self.reader = reader
        self.closed = False
        """The reader has shut the queue down."""
        self.gone = False
        """Nothing reaches the reader any more."""

    @property
    @abstractmethod
    def unread(self) -> int:
        """Values that it was given and has not read."""

    @abstractmethod
    def give(self, written: Written) -> None:
        """Give it a value."""

    @abstractmethod
    def end(self) -> None:
        """There are no more values."""

    @abstractmethod
    def advance(self) -> None:
        """Do what can be done."""

    @abstractmethod
    def close(self) -> None:
        """Let go of everything."""


class NearOutlet(Outlet):
    """To a reader on this host: notes on a line."""

    def __init__(self, reader: int, line: Line) -> None:
        super().__init__(reader)
        self._line = line
        self._backlog: deque[tuple[Note, Parcel | None]] = deque()
        self._given = 0
        self._sent = 0
        self._read = 0

    @property
    def unread(self) -> int:
        """Counts values whose receipt the reader has not confirmed."""
        return self._given - self._read

    @property
    def stalled(self) -> bool:
        """Whether a note found no room that only time can make."""
        return bool(self._backlog) and self._sent - self._read < WINDOW

    def fileno(self) -> int:
        """File descriptor to look at; below zero when it has gone."""
        return -1 if self.gone else self._line.fileno()

    def give(self, written: Written) -> None:
        """Send the note, or keep it until there is room."""
        self._given += 1
        self._put(written.note, written.parcel)

    def end(self) -> None:
        """Send the last note."""
        self._put(Note(Kind.END), None)

    def advance(self) -> None:
        """Hear what has been read, and send what there is room for now."""
        try:
            while not self.gone and (came := self._line.receive()) is not None:
                note, _ = came
                if note.kind is Kind.READ:
                    self._read = note.number
                elif note.kind is Kind.BYE:
                    self.closed = True
            self._flush()
        except EOFError:
            self.close()

    def close(self) -> None:
        """Hang up."""
        if not self.gone:
            self.gone = True
            self._line.close()
            while self._backlog:
                _let_go(self._backlog.popleft()[1])

    def _put(self, note: Note, parcel: Parcel | None) -> None:
        if self.gone:
            _let_go(parcel)
            return
        self._backlog.append((note, parcel))
        self._flush()

    def _flush(self) -> None:
        while self._backlog and not self.gone and self._sent - self._read < WINDOW:
            note, parcel = self._backlog[0]
            try:
                if not self._line.send(note, parcel.fd if parcel else None):
                    return
            except ConnectionError:
                # Its last words are read when the line is looked at.
                return
            self._backlog.popleft()
            self._sent += 1
            _let_go(parcel)


def _let_go(parcel: Parcel | None) -> None:
    if parcel is not None:
        parcel.let_go()


class FarOutlet(Outlet):
    """To a reader on another host: each value is posted, and moved when the reader comes for it.

    `call_soon` queues an action for the writer's thread. Beside the values, one post waits for the reader's farewell.
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
        """Those that it has not come for."""
        return sum(it is not None for it in self._values)

    def give(self, written: Written) -> None:
        """Post it when all before have been read."""
        if not self.gone:
            self._values.append(written.data)
        self.advance()

    def end(self) -> None:
        """Post that there are no more."""
        if not self.gone:
            self._values.append(None)
        self.advance()

    def advance(self) -> None:
        """Post what is to be posted."""
        if self.gone:
            return
        if self._farewell is None:
            self._farewell = self._post(self._posts.hear_farewell(self.reader), self._said_farewell)
        if self._under_way is None and self._values and not self.gone:
            self._under_way = self._post(self._posts.give(self.reader, self._values[0]), self._read)

    def close(self) -> None:
        """Take back what was posted."""
        self.gone = True
        self._values.clear()
        for task in (self._under_way, self._farewell):
            if task is not None:
                task.cancel("the queue has ended")

    def _post(self, transfer: Transfer, answered: Callable[[Task], None]) -> Task | None:
        task = self._posts.task()
        try:
            self._posts.begin(transfer, task)
        except BridgeError:
            # The generation is over, and this queue will be in a moment.
            self.gone = True
            return None
        task.then(lambda done: _ignore(self._call_soon(lambda: answered(done))))
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
        # A post that nobody came for in a day is posted again.
        if error.failure.code is not ErrorCode.PEER_MISSING:
            self.gone = True
        return False


def _ignore(_: bool) -> None:
    """Ignores that the writer's thread has ended."""
