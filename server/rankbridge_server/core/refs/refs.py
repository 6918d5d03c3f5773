"""Values that stay on a rank, and the sessions that own them."""

from __future__ import annotations

import secrets
import threading
import time
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice

from ..errors import BridgeError, ErrorCode, exhausted, invalid
from ..guests import LEASE_S, SHARE, Guests, check_share, home_of
from ..limits import MAX_SESSIONS, Limits
from .tensors import TensorSpec

SHARED_SESSION = ""
MAX_ID_BYTES = 128
# A list with fewer released ids is not worth a new one.
_FEW = 64


@dataclass(frozen=True, slots=True)
class Ref:
    """A handle on a tensor, as the controller sees it."""

    id: str
    rank: int
    session_id: str
    spec: TensorSpec


@dataclass(slots=True, eq=False)
class Cell:
    """The storage of a ref's tensor. An operation in place puts another tensor of the same spec into it.

    A queued operation holds the cell, so it runs even if its ref is released meanwhile.
    """

    ref: Ref
    tensor: object


class Refill(Cell):
    """A cell that takes the result of a collective."""

    __slots__ = ()

    def fill(self, tensor: object) -> Ref:
        """Replaces the last result by `tensor`, and returns the same ref."""
        self.tensor = tensor
        return self.ref

    def give_back(self) -> None:
        """Nothing is reserved."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What one session owns."""

    session_id: str
    refs: int
    bytes: int


@dataclass(slots=True)
class _Session:
    """`refs`, `bytes`: with what is reserved. `lease`: seconds; 0: none.

    `made`: ref ids in the order in which they were made. It contains some released refs, never many more than others.
    """

    id: str
    cells: dict[str, Cell] = field(default_factory=dict)
    made: list[str] = field(default_factory=list)
    refs: int = 0
    bytes: int = 0
    lease: float = 0.0
    renewed: float = 0.0
    open: bool = True

    @property
    def due(self) -> float | None:
        return self.renewed + self.lease if self.lease else None

    def keep(self, cell: Cell) -> None:
        self.cells[cell.ref.id] = cell
        self.made.append(cell.ref.id)

    def forget(self, ref_ids: Iterable[str]) -> None:
        for ref_id in ref_ids:
            del self.cells[ref_id]
        if len(self.made) > 2 * len(self.cells) + _FEW:
            self.made = list(self.cells)

    def after(self, number: int) -> Iterator[Ref]:
        """The refs that were made after `number`, oldest first. Finds the first by bisection."""
        start = bisect_right(self.made, number, key=_number)
        for at in range(start, len(self.made)):
            cell = self.cells.get(self.made[at])
            if cell is not None:
                yield cell.ref


class Slot:
    """A reservation for one tensor, of which `nbytes` bytes count so far. Fill it, or give it back."""

    def __init__(self, store: RefStore, session: _Session, spec: TensorSpec, nbytes: int) -> None:
        self._store = store
        self._session = session
        self._spec = spec
        self._nbytes = nbytes
        self._open = True

    def grow(self, nbytes: int) -> None:
        """Reserves more, because so many bytes have come. Raises RESOURCE_EXHAUSTED."""
        self._store._grow(self._session, self._spec, nbytes)
        self._nbytes += nbytes

    def fill(self, tensor: object) -> Ref:
        """Keeps `tensor` and returns its ref. Raises UNKNOWN_SESSION if the session was closed meanwhile."""
        self._open = False
        return self._store._keep(self._session, self._spec, tensor)

    def give_back(self) -> None:
        """Frees the reservation, unless it was filled."""
        if self._open:
            self._open = False
            self._store._give_back(self._session, self._nbytes)


class RefStore:
    """All refs of one rank. Safe to call from any thread."""

    def __init__(self, limits: Limits, guests: Guests | None = None) -> None:
        self._limits = limits
        self._guests = guests or Guests()
        self._lock = threading.Lock()
        self._sessions: dict[str, _Session] = {SHARED_SESSION: _Session(SHARED_SESSION)}
        self._owners: dict[str, _Session] = {}
        self._made = 0
        self._refs = 0
        self._bytes = 0
        # Part of every id, so that a replacement of this rank never accepts this one's refs.
        self._nonce = secrets.token_hex(4)
        self.rank = 0

    def open_session(self, session_id: str, lease: float = 0.0) -> str:
        """Opens a session, or keeps it open. `lease`: seconds; 0: none. For an empty id, makes a new one.

        Returns the id. Raises RESOURCE_EXHAUSTED.
        """
        if len(session_id.encode()) > MAX_ID_BYTES:
            raise invalid("the session id is too long", expected=f"at most {MAX_ID_BYTES} bytes")
        if session_id == SHARED_SESSION:
            session_id = secrets.token_hex(8)
        guest = home_of(session_id)
        if guest:
            lease = min(lease or LEASE_S, LEASE_S)
        with self._lock:
            if session_id not in self._sessions:
                if len(self._sessions) > MAX_SESSIONS:
                    raise exhausted("too many sessions of this rank", most=str(MAX_SESSIONS), got="one more")
                if guest:
                    check_share(guest, "sessions", len(self._of(guest)), 1, MAX_SESSIONS // SHARE)
            session = self._sessions.setdefault(session_id, _Session(session_id))
            session.lease = lease
            session.renewed = time.monotonic()
            return session_id

    def renew_session(self, session_id: str) -> float:
        """Renews a session's lease, as every call of the session does. Returns the lease in seconds, 0 for none."""
        with self._lock:
            return self._session(session_id).lease

    def close_session(self, session_id: str) -> int:
        """Closes a session and frees its refs. Returns the number of refs."""
        if session_id == SHARED_SESSION:
            raise invalid(
                "the shared session cannot be closed", expected="the id of an open session", got="''"
            )
        with self._lock:
            freed = self._close(self._session(session_id))
        # Freeing much memory takes long, so it happens without the lock.
        return len(freed)

    def expire(self) -> tuple[list[str], float | None]:
        """Closes sessions whose lease has ended. Returns them, and when the next lease ends, if there is one."""
        now = time.monotonic()
        with self._lock:
            for session in self._sessions.values():
                if guest := home_of(session.id):
                    session.renewed = max(session.renewed, self._guests.last_seen(guest))
            over = [it for it in self._sessions.values() if it.due is not None and it.due <= now]
            freed = [self._close(session) for session in over]
            due = min((it.due for it in self._sessions.values() if it.due is not None), default=None)
        del freed
        return [session.id for session in over], due

    def reserve(self, session_id: str, spec: TensorSpec, nbytes: int | None = None) -> Slot:
        """Reserves memory for one tensor. `nbytes`: bytes that count at once; None: all; the rest, as the slot grows.

        Raises UNKNOWN_SESSION or RESOURCE_EXHAUSTED.
        """
        counted = spec.nbytes if nbytes is None else nbytes
        with self._lock:
            session = self._session(session_id)
            self._check(session, spec, 1, spec.nbytes)
            self._count(session, 1, counted)
        return Slot(self, session, spec, counted)

    @contextmanager
    def reserved(self, session_id: str, spec: TensorSpec, nbytes: int | None = None) -> Iterator[Slot]:
        """A slot that is given back at the end unless it was filled. See `reserve`."""
        slot = self.reserve(session_id, spec, nbytes)
        try:
            yield slot
        finally:
            slot.give_back()

    def find(self, session_id: str, ref_id: str) -> Cell:
        """The cell of a ref. Raises UNKNOWN_REF, RELEASED_REF, WRONG_SESSION or UNKNOWN_SESSION."""
        with self._lock:
            return self._find(session_id, ref_id)

    def release(self, session_id: str, ref_ids: Iterable[str]) -> int:
        """Frees refs, all or none. Returns the number of refs. Raises as `find` does."""
        with self._lock:
            session = self._session(session_id)
            cells = {ref_id: self._find(session_id, ref_id) for ref_id in ref_ids}
            for ref_id in cells:
                del self._owners[ref_id]
            session.forget(cells)
            self._count(session, -len(cells), -sum(cell.ref.spec.nbytes for cell in cells.values()))
            return len(cells)

    def page(self, session_id: str, after: str, size: int) -> Sequence[Ref]:
        """At most `size` refs of a session, oldest first, those made after the ref `after` (empty: all)."""
        with self._lock:
            session = self._session(session_id)
            return list(islice(session.after(self._checked_number(after) if after else 0), size))

    def usage(self) -> Sequence[Usage]:
        """What each session owns, the shared session first."""
        with self._lock:
            return [Usage(it.id, it.refs, it.bytes) for it in self._sessions.values()]

    def _keep(self, session: _Session, spec: TensorSpec, tensor: object) -> Ref:
        with self._lock:
            if not session.open:
                raise self._unknown_session(session.id)
            self._made += 1
            ref = Ref(f"{self.rank}.{self._nonce}.{self._made}", self.rank, session.id, spec)
            session.keep(Cell(ref, tensor))
            self._owners[ref.id] = session
            return ref

    def _give_back(self, session: _Session, nbytes: int) -> None:
        with self._lock:
            if session.open:
                self._count(session, -1, -nbytes)

    def _grow(self, session: _Session, spec: TensorSpec, nbytes: int) -> None:
        with self._lock:
            if session.open:
                self._check(session, spec, 0, nbytes)
                self._count(session, 0, nbytes)

    def _check(self, session: _Session, spec: TensorSpec, refs: int, nbytes: int) -> None:
        limits = self._limits
        _check_limit("refs on this rank", limits.max_refs, self._refs, refs, spec)
        _check_limit("bytes of tensors on this rank", limits.max_bytes, self._bytes, nbytes, spec)
        _check_limit("refs in this session", limits.max_session_refs, session.refs, refs, spec)
        _check_limit(
            "bytes of tensors in this session", limits.max_session_bytes, session.bytes, nbytes, spec
        )
        if guest := home_of(session.id):
            held = self._of(guest)
            check_share(guest, "refs", sum(it.refs for it in held), refs, limits.max_refs // SHARE)
            most = limits.max_bytes // SHARE
            check_share(guest, "bytes of tensors", sum(it.bytes for it in held), nbytes, most)

    def _count(self, session: _Session, refs: int, nbytes: int) -> None:
        session.refs += refs
        session.bytes += nbytes
        self._refs += refs
        self._bytes += nbytes

    def _close(self, session: _Session) -> dict[str, Cell]:
        for ref_id in session.cells:
            del self._owners[ref_id]
        # Reservations end with their session: the holder of a slot finds the session closed.
        self._count(session, -session.refs, -session.bytes)
        cells, session.cells, session.made = session.cells, {}, []
        session.open = False
        del self._sessions[session.id]
        return cells

    def _of(self, guest: str) -> Sequence[_Session]:
        return [it for it in self._sessions.values() if it.id.startswith(guest)]

    def _session(self, session_id: str) -> _Session:
        session = self._sessions.get(session_id)
        if session is None:
            raise self._unknown_session(session_id)
        session.renewed = time.monotonic()
        return session

    def _find(self, session_id: str, ref_id: str) -> Cell:
        cell = self._session(session_id).cells.get(ref_id)
        if cell is not None:
            return cell
        owner = self._owners.get(ref_id)
        if owner is not None:
            raise BridgeError.of(
                ErrorCode.WRONG_SESSION,
                f"ref {ref_id!r} belongs to another session",
                expected=f"session {owner.id!r}",
                got=f"session {session_id!r}",
            )
        if self._was_made_here(ref_id):
            raise BridgeError.of(ErrorCode.RELEASED_REF, f"ref {ref_id!r} was released")
        raise BridgeError.of(ErrorCode.UNKNOWN_REF, f"no ref {ref_id!r} on this rank")

    def _was_made_here(self, ref_id: str) -> bool:
        parts = ref_id.split(".")
        if len(parts) != 3 or parts[1] != self._nonce or not parts[2].isdecimal():
            return False
        return 0 < int(parts[2]) <= self._made

    def _checked_number(self, ref_id: str) -> int:
        if not self._was_made_here(ref_id):
            raise BridgeError.of(ErrorCode.UNKNOWN_REF, f"no ref {ref_id!r} on this rank")
        return _number(ref_id)

    @staticmethod
    def _unknown_session(session_id: str) -> BridgeError:
        return BridgeError.of(ErrorCode.UNKNOWN_SESSION, f"no open session {session_id!r} on this rank")


def _number(ref_id: str) -> int:
    """The number in a ref's id, which counts the refs of its rank."""
    return int(ref_id.rsplit(".", 1)[1])


def _check_limit(what: str, limit: int, held: int, more: int, spec: TensorSpec) -> None:
    if limit and held + more > limit:
        got = f"{held} held and {more} more"
        raise exhausted(f"no room for {spec}: too many {what}", most=f"{limit} {what}", got=got)
