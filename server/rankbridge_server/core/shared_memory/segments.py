"""Segments: pieces of shared memory, their holders and sizes."""

from __future__ import annotations

import ctypes
import secrets
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum, auto

from ..errors import BridgeError, ErrorCode, exhausted, invalid
from ..guests import SHARE, check_share, home_of
from .memory import SharedMemory, make_shared_memory

MAX_SEGMENTS = 256
"""Segments of one rank; each takes a file descriptor."""

MAX_ADOPTED = 4
"""Segments of a session that may be memory of tensors at a time. With more, puts would need new segments, which takes
longer than copying out of a used one."""


class Holder(Enum):
    """The holder of a segment: the caller, a call, a tensor, or the rank, which reuses it."""

    CALLER = auto()
    CALL = auto()
    TENSOR = auto()
    RANK = auto()


@dataclass(slots=True, eq=False)
class Segment:
    """Shared memory of one session. `lent`: how often it has become memory of a tensor."""

    id: str
    session_id: str
    file: SharedMemory
    holder: Holder = Holder.CALLER
    open: bool = True
    lent: int = 0

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return self.file.nbytes


class Use:
    """A segment during a call that names it."""

    def __init__(
        self, segment: Segment, nbytes: int, may_lend: bool, loan_ended: Callable[[_Loan], None]
    ) -> None:
        self._segment = segment
        self._nbytes = nbytes
        self._loan_ended = loan_ended
        self.may_lend = may_lend
        self.kept = False

    @property
    def memory(self) -> memoryview:
        """The bytes that the call has asked for."""
        return memoryview(self._segment.file.map)[: self._nbytes]

    def lend(self) -> memoryview:
        """The same bytes, for a tensor: after `keep` the tensor holds the segment as long as the view lives."""
        segment = self._segment
        segment.lent += 1
        memory = (ctypes.c_uint8 * self._nbytes).from_buffer(segment.file.map)
        memory._rankbridge_loan = _Loan(segment, self._loan_ended)  # type: ignore[attr-defined]
        return memoryview(memory).cast("B")

    def keep(self) -> None:
        """Passes the segment from the caller to a tensor."""
        self.kept = True


class _Loan:
    """Ends with the last view of the memory, and calls `ended` then: on any thread, whatever locks it holds."""

    def __init__(self, segment: Segment, ended: Callable[[_Loan], None]) -> None:
        self.segment = segment
        self.number = segment.lent
        self._ended = ended

    def __del__(self) -> None:
        self._ended(self)


class Segments:
    """All segments of one rank. Safe to call from any thread.

    `max_bytes`: size of all segments together; 0: no segments. `renew`: called with the session of every call; raises
    UNKNOWN_SESSION.
    """

    def __init__(
        self,
        max_bytes: int,
        renew: Callable[[str], object],
        make: Callable[[int], SharedMemory] = make_shared_memory,
    ) -> None:
        self._max_bytes = max_bytes
        self._renew = renew
        self._make = make
        self._lock = threading.Lock()
        self._segments: dict[str, Segment] = {}
        self._returned: deque[_Loan] = deque()
        self._bytes = 0
        self._count = 0

    @property
    def nbytes(self) -> int:
        """Size of all segments, with closed ones that a tensor or a call still holds."""
        with self._lock:
            self._collect_loans()
            return self._bytes

    def open(self, session_id: str, nbytes: int) -> Segment:
        """Opens a segment for the caller.

        Raises UNSUPPORTED_OPERATION, INVALID_ARGUMENT, UNKNOWN_SESSION or RESOURCE_EXHAUSTED.
        """
        if not self._max_bytes:
            raise BridgeError.of(ErrorCode.UNSUPPORTED_OPERATION, "this rank shares no memory")
        if not session_id:
            raise invalid("the shared session has no shared memory", expected="an open session", got="''")
        if nbytes < 1:
            raise invalid("shared memory of no size", expected="1 byte or more", got=str(nbytes))
        self._renew(session_id)
        with self._lock:
            self._collect_loans()
            segment = self._find_idle(session_id, nbytes)
            if segment is not None:
                segment.holder = Holder.CALLER
                return segment
            self._check_share(home_of(session_id), nbytes)
            self._evict(nbytes)
            self._bytes += nbytes
            self._count += 1
        try:
            file = self._make(nbytes)
        except (OSError, ValueError) as error:
            with self._lock:
                self._bytes -= nbytes
                self._count -= 1
            raise BridgeError.of(
                ErrorCode.RESOURCE_EXHAUSTED, f"no room for shared memory: {error}"
            ) from error
        with self._lock:
            self._bytes += file.nbytes - nbytes
            # Nobody can guess it: who knows a session's id and a segment's can have its bytes.
            segment = Segment(secrets.token_hex(16), session_id, file)
            self._segments[segment.id] = segment
        try:
            # The session may have been closed meanwhile.
            self._renew(session_id)
        except BridgeError:
            self.forget(session_id)
            raise
        return segment

    def close(self, session_id: str, ids: Iterable[str]) -> int:
        """Closes segments, all or none. Returns how many were open. Raises UNKNOWN_SESSION or WRONG_SESSION."""
        self._renew(session_id)
        with self._lock:
            self._collect_loans()
            named = {it: self._segments[it] for it in ids if it in self._segments}
            for segment in named.values():
                self._check_owner(segment, session_id)
            held = [it for it in named.values() if it.holder in (Holder.CALLER, Holder.CALL)]
            for segment in held:
                self._drop(segment)
            return len(held)

    @contextmanager
    def using(self, session_id: str, segment_id: str, nbytes: int) -> Iterator[Use]:
        """Passes a segment to a call that needs `nbytes` bytes of it.

        Raises UNKNOWN_SESSION, WRONG_SESSION, UNKNOWN_SHARED_MEMORY, or INVALID_ARGUMENT: it is too small, or another
        call has it.
        """
        self._renew(session_id)
        with self._lock:
            self._collect_loans()
            segment = self._find(session_id, segment_id, nbytes)
            segment.holder = Holder.CALL
            adopted = sum(
                it.holder is Holder.TENSOR for it in self._segments.values() if it.session_id == session_id
            )
        use = Use(segment, nbytes, adopted < MAX_ADOPTED, self._loan_ended)
        try:
            yield use
        finally:
            with self._lock:
                segment.holder = Holder.TENSOR if use.kept else Holder.CALLER
                if not segment.open and not use.kept:
                    self._forget_bytes(segment)
                self._collect_loans()

    def forget(self, session_id: str) -> None:
        """Closes all segments of a session."""
        with self._lock:
            self._collect_loans()
            for segment in [it for it in self._segments.values() if it.session_id == session_id]:
                self._drop(segment)

    def close_all(self) -> None:
        """Closes all segments, because the rank stops."""
        with self._lock:
            self._max_bytes = 0
            for segment in self._segments.values():
                segment.file.close()
            self._segments.clear()

    def _find_idle(self, session_id: str, nbytes: int) -> Segment | None:
        """The smallest idle segment of the session that fits."""
        fit = (
            it
            for it in self._segments.values()
            if it.holder is Holder.RANK and it.session_id == session_id and nbytes <= it.nbytes <= 2 * nbytes
        )
        return min(fit, key=lambda it: it.nbytes, default=None)

    def _check_share(self, guest: str, nbytes: int) -> None:
        if guest:
            held = [it for it in self._segments.values() if it.session_id.startswith(guest)]
            check_share(guest, "pieces of shared memory", len(held), 1, MAX_SEGMENTS // SHARE)
            held_bytes = sum(it.nbytes for it in held)
            check_share(guest, "bytes of shared memory", held_bytes, nbytes, self._max_bytes // SHARE)

    def _evict(self, nbytes: int) -> None:
        for segment in [it for it in self._segments.values() if it.holder is Holder.RANK]:
            if self._bytes + nbytes <= self._max_bytes and self._count < MAX_SEGMENTS:
                return
            self._drop(segment)
        if self._bytes + nbytes > self._max_bytes:
            raise _exhausted("bytes of shared memory", self._max_bytes, self._bytes, nbytes)
        if self._count >= MAX_SEGMENTS:
            raise _exhausted("pieces of shared memory", MAX_SEGMENTS, self._count, 1)

    def _find(self, session_id: str, segment_id: str, nbytes: int) -> Segment:
        segment = self._segments.get(segment_id)
        if segment is not None:
            self._check_owner(segment, session_id)
        if segment is None or segment.holder in (Holder.TENSOR, Holder.RANK):
            raise BridgeError.of(
                ErrorCode.UNKNOWN_SHARED_MEMORY, f"no shared memory {segment_id!r} on this rank"
            )
        if segment.holder is Holder.CALL:
            raise invalid(f"another call uses shared memory {segment_id!r}")
        if nbytes > segment.nbytes:
            raise invalid(
                f"shared memory {segment_id!r} is too small",
                expected=f"{nbytes} bytes or more",
                got=f"{segment.nbytes} bytes",
            )
        return segment

    @staticmethod
    def _check_owner(segment: Segment, session_id: str) -> None:
        if segment.session_id != session_id:
            raise BridgeError.of(
                ErrorCode.WRONG_SESSION,
                f"shared memory {segment.id!r} belongs to another session",
                got=f"session {session_id!r}",
            )

    def _loan_ended(self, loan: _Loan) -> None:
        """Acts on it at once, unless a thread, perhaps this one, has the lock: then the next call does."""
        self._returned.append(loan)
        if self._lock.acquire(blocking=False):
            try:
                self._collect_loans()
            finally:
                self._lock.release()

    def _collect_loans(self) -> None:
        for _ in range(len(self._returned)):
            loan = self._returned.popleft()
            segment = loan.segment
            if loan.number != segment.lent:
                continue
            if segment.holder is Holder.CALL:
                # The call may still keep it.
                self._returned.append(loan)
            elif segment.holder is Holder.TENSOR:
                segment.holder = Holder.RANK
                if segment.open:
                    self._trim_idle(segment.session_id)
                else:
                    self._forget_bytes(segment)

    def _trim_idle(self, session_id: str) -> None:
        """Drops the oldest idle segments of the session, above the number that its tensors may hold."""
        idle = [
            it for it in self._segments.values() if it.holder is Holder.RANK and it.session_id == session_id
        ]
        for segment in idle[:-MAX_ADOPTED]:
            self._drop(segment)

    def _drop(self, segment: Segment) -> None:
        del self._segments[segment.id]
        segment.open = False
        segment.file.close()
        if segment.holder in (Holder.CALLER, Holder.RANK):
            self._forget_bytes(segment)

    def _forget_bytes(self, segment: Segment) -> None:
        self._bytes -= segment.nbytes
        self._count -= 1


def _exhausted(what: str, limit: int, held: int, more: int) -> BridgeError:
    got = f"{held} held and {more} more"
    return exhausted(f"too many {what} on this rank", most=f"{limit} {what}", got=got)
