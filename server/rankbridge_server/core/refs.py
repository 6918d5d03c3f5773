"""Values that stay on a rank, and the sessions that own them."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice

from .errors import BridgeError, ErrorCode, invalid
from .limits import Limits
from .tensors import TensorSpec

SHARED_SESSION = ""
MAX_ID_BYTES = 128


@dataclass(frozen=True, slots=True)
class Ref:
    """A handle on a tensor, as the controller sees it."""

    id: str
    rank: int
    session_id: str
    spec: TensorSpec


@dataclass(slots=True)
class Cell:
    """Where a ref's tensor is kept. An operation in place puts another tensor of equal spec into it.

    A queued operation holds the cell, so that it runs even when its ref is released meanwhile.
    """

    ref: Ref
    tensor: object


@dataclass(frozen=True, slots=True)
class Usage:
    """What one session owns."""

    session_id: str
    refs: int
    bytes: int


@dataclass(slots=True)
class _Session:
    id: str
    cells: dict[str, Cell] = field(default_factory=dict)
    bytes: int = 0


class Slot:
    """Room that was set aside for one tensor. Fill it, or give it back."""

    def __init__(self, store: RefStore, session_id: str, spec: TensorSpec) -> None:
        self._store = store
        self._session_id = session_id
        self._spec = spec
        self._open = True

    def fill(self, tensor: object) -> Ref:
        """Keep `tensor` and give its ref. Raises UNKNOWN_SESSION if the session was closed meanwhile."""
        self._open = False
        return self._store._keep(self._session_id, self._spec, tensor)

    def give_back(self) -> None:
        """Free the room, unless it was filled."""
        if self._open:
            self._open = False
            self._store._free(1, self._spec.nbytes)


class RefStore:
    """All refs of one rank. Safe to call from any thread."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._lock = threading.Lock()
        self._sessions: dict[str, _Session] = {SHARED_SESSION: _Session(SHARED_SESSION)}
        self._owners: dict[str, _Session] = {}
        self._made = 0
        self._refs = 0
        self._bytes = 0
        # In every id, so that a rank that replaces this one never answers for its refs.
        self._nonce = secrets.token_hex(4)
        self.rank = 0

    def open_session(self, session_id: str) -> str:
        """Open a session, or leave it open. An empty id: one is made up. Returns the id."""
        if len(session_id.encode()) > MAX_ID_BYTES:
            raise invalid("the session id is too long", expected=f"at most {MAX_ID_BYTES} bytes")
        with self._lock:
            session_id = session_id or secrets.token_hex(8)
            self._sessions.setdefault(session_id, _Session(session_id))
            return session_id

    def close_session(self, session_id: str) -> int:
        """Close a session and free its refs; returns how many they were."""
        if session_id == SHARED_SESSION:
            raise invalid(
                "the shared session cannot be closed", expected="the id of an open session", got="''"
            )
        with self._lock:
            session = self._session(session_id)
            del self._sessions[session_id]
            for ref_id in session.cells:
                del self._owners[ref_id]
            self._refs -= len(session.cells)
            self._bytes -= session.bytes
            return len(session.cells)

    def reserve(self, session_id: str, spec: TensorSpec) -> Slot:
        """Set room aside for one tensor. Raises UNKNOWN_SESSION or RESOURCE_EXHAUSTED."""
        with self._lock:
            self._session(session_id)
            if self._refs + 1 > self._limits.max_refs:
                raise BridgeError.of(
                    ErrorCode.RESOURCE_EXHAUSTED,
                    "too many refs on this rank",
                    expected=f"at most {self._limits.max_refs} refs",
                    got=f"{self._refs} and one more",
                )
            if self._bytes + spec.nbytes > self._limits.max_bytes:
                raise BridgeError.of(
                    ErrorCode.RESOURCE_EXHAUSTED,
                    f"no room for {spec} on this rank",
                    expected=f"at most {self._limits.max_bytes} bytes of tensors",
                    got=f"{self._bytes} bytes held and {spec.nbytes} more",
                )
            self._refs += 1
            self._bytes += spec.nbytes
        return Slot(self, session_id, spec)

    @contextmanager
    def reserved(self, session_id: str, spec: TensorSpec) -> Iterator[Slot]:
        """A slot that is given back unless it was filled."""
        slot = self.reserve(session_id, spec)
        try:
            yield slot
        finally:
            slot.give_back()

    def find(self, session_id: str, ref_id: str) -> Cell:
        """The cell of a ref. Raises UNKNOWN_REF, RELEASED_REF, WRONG_SESSION or UNKNOWN_SESSION."""
        with self._lock:
            return self._find(session_id, ref_id)

    def release(self, session_id: str, ref_ids: Iterable[str]) -> int:
        """Free refs, all or none; returns how many they were. Raises as `find` does."""
        with self._lock:
            session = self._session(session_id)
            cells = {ref_id: self._find(session_id, ref_id) for ref_id in ref_ids}
            for ref_id, cell in cells.items():
                del session.cells[ref_id]
                del self._owners[ref_id]
                session.bytes -= cell.ref.spec.nbytes
                self._bytes -= cell.ref.spec.nbytes
            self._refs -= len(cells)
            return len(cells)

    def page(self, session_id: str, after: str, size: int) -> Sequence[Ref]:
        """At most `size` refs of a session, oldest first, those made after the ref `after` (empty: all)."""
        with self._lock:
            cells = self._session(session_id).cells.values()
            start = self._number(after) if after else 0
            later = (cell.ref for cell in cells if self._number(cell.ref.id) > start)
            return list(islice(later, size))

    def usage(self) -> Sequence[Usage]:
        """What each session owns, the shared session first."""
        with self._lock:
            return [Usage(s.id, len(s.cells), s.bytes) for s in self._sessions.values()]

    def _keep(self, session_id: str, spec: TensorSpec, tensor: object) -> Ref:
        with self._lock:
            session = self._sessions.get(session_id)
            if session is None:
                self._refs -= 1
                self._bytes -= spec.nbytes
                raise self._unknown_session(session_id)
            self._made += 1
            ref = Ref(f"{self.rank}.{self._nonce}.{self._made}", self.rank, session_id, spec)
            session.cells[ref.id] = Cell(ref, tensor)
            session.bytes += spec.nbytes
            self._owners[ref.id] = session
            return ref

    def _free(self, refs: int, nbytes: int) -> None:
        with self._lock:
            self._refs -= refs
            self._bytes -= nbytes

    def _session(self, session_id: str) -> _Session:
        session = self._sessions.get(session_id)
        if session is None:
            raise self._unknown_session(session_id)
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

    def _number(self, ref_id: str) -> int:
        if not self._was_made_here(ref_id):
            raise BridgeError.of(ErrorCode.UNKNOWN_REF, f"no ref {ref_id!r} on this rank")
        return int(ref_id.rsplit(".", 1)[1])

    @staticmethod
    def _unknown_session(session_id: str) -> BridgeError:
        return BridgeError.of(ErrorCode.UNKNOWN_SESSION, f"no open session {session_id!r} on this rank")
