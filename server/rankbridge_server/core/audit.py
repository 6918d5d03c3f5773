"""The audit: a file with a line for each caller that is let in or refused, and each generation that begins or ends."""

from __future__ import annotations

import json
import os
import threading
from collections import OrderedDict
from datetime import UTC, datetime
from pathlib import Path

from .events import Event, Kind
from .rate import Rate

MAX_LINES_PER_S = 100
"""Lines that a rank writes in a second: a stranger must not fill the disk. The next line says how many are left out."""
_REMEMBERED = 4096


class Audit:
    """Appends to a file that its owner alone can read. Thread-safe. Ranks of one host may share the file."""

    def __init__(self, path: Path, rank: int) -> None:
        """Raises OSError when the file cannot be written."""
        self._path = path
        self._rank = rank
        self._lock = threading.Lock()
        self._admitted: OrderedDict[tuple[str, str], None] = OrderedDict()
        self._rate = Rate(MAX_LINES_PER_S)
        self._append("")

    def admitted(self, peer: str, caller: str, role: str) -> None:
        """Notes a caller, once for each connection. `peer`: its address, as gRPC writes it."""
        with self._lock:
            known = (peer, caller) in self._admitted
            self._admitted[peer, caller] = None
            self._admitted.move_to_end((peer, caller))
            if len(self._admitted) > _REMEMBERED:
                self._admitted.popitem(last=False)
        if not known:
            self._write("admitted", peer=peer, caller=caller, role=role)

    def refused(self, peer: str, call: str, reason: str) -> None:
        """Notes a call that was not let in."""
        self._write("refused", peer=peer, call=call, reason=reason)

    def happened(self, event: Event) -> None:
        """Notes that a generation was formed or is over; other events are not for the audit."""
        if event.kind in (Kind.FORMED, Kind.OVER):
            reason = "" if event.kind is Kind.FORMED else str(event.detail)
            self._write(event.kind.name.lower(), generation=event.generation, reason=reason)

    def _write(self, what: str, **more: str | int) -> None:
        left_out = self._rate.lets_through()
        if left_out is None:
            return
        line = {"time": datetime.now(UTC).isoformat(), "rank": self._rank, "event": what}
        self._append(json.dumps({**line, **more, **({"left_out": left_out} if left_out else {})}) + "\n")

    def _append(self, line: str) -> None:
        # Opened for each line: the file may be moved away at any time.
        fd = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        try:
            os.write(fd, line.encode())
        finally:
            os.close(fd)
