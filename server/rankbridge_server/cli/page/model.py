"""What the page shows of a gang or a job, and what of it has changed since it was asked before."""

from __future__ import annotations

import re
import threading
import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from . import waits
from .batch import Slice, columns, thinned
from .entries import Entries
from .pending import MOST_ROWS, Missing, Pending, joined
from .rates import Rates

if TYPE_CHECKING:
    from rankbridge import RecordedOperation

HISTORY = 20_000
"""The newest operations, which a new browser gets."""
_BACKLOG = 4 * HISTORY
_RATES_EVERY_S = 1.0
_LONG_S = 1.0
"""The graph shows a wait from this age on."""
_CLOCKS_S = 0.25
"""Clocks that differ by less count as equal: the difference may be the time of an answer."""

Row = dict[str, Any]


class Model:
    """The newest state. A source writes into it; what broadcasts reads from it. Thread-safe.

    `name`: of the gang, or the folder. `admits`: its operations are admitted before they enter the backend.
    """

    def __init__(self, name: str, source: str, *, admits: bool) -> None:
        self._name, self._source, self._admits = name, source, admits
        self._lock = threading.Lock()
        self._clear()

    def _clear(self) -> None:
        self._ranks: dict[int, Row] = {}
        self._changed_ranks: set[int] = set()
        self._groups: dict[str, tuple[int, ...]] = {}
        self._entries = Entries()
        self._rates = Rates(time.monotonic())
        self._ended: list[Slice] = []
        self._history: deque[Slice] = deque(maxlen=HISTORY)
        self._pending: dict[int, list[Slice]] = {}
        self._missing: Missing = {}
        self._verdict: Row | None = None
        self._waits: Mapping[int, Iterable[int]] = {}
        self._blamed: tuple[frozenset[int], tuple[int, ...]] = (frozenset(), ())
        self._not_drawn = self._lost = 0
        self._news = {"header", "groups", "pending", "verdict"}
        self._rated = 0.0
        self._ahead: dict[int, float] = {}

    def reset(self) -> None:
        """Forgets all: what comes now is of another time, or another gang."""
        with self._lock:
            self._clear()
            self._news.add("reset")

    # --- what a source writes ----------------------------------------------------------------------------

    def described(self, ranks: Mapping[int, Row], groups: Mapping[str, tuple[int, ...]]) -> None:
        """Takes whole rows of ranks, and the members of the groups."""
        with self._lock:
            for rank, row in ranks.items():
                if self._ranks.get(rank) != row:
                    self._ranks[rank] = row
                    self._changed_ranks.add(rank)
                    self._news.add("header")
            if groups != self._groups:
                self._groups = dict(sorted(groups.items(), key=lambda it: _order(it[0])))
                self._news |= {"groups", "pending"}

    def grew(
        self,
        rank: int,
        ended: Sequence[RecordedOperation],
        pending: Sequence[RecordedOperation],
        *,
        lost: int = 0,
        at: float | None = None,
    ) -> None:
        """What a rank has ended since its last report, and what is pending there. `at`: its clock, now."""
        with self._lock:
            if at is not None:
                self._ahead[rank] = _apart(at - time.time())
            self._lost += lost
            slices = [self._slice(rank, it) for it in ended]
            self._ended += slices
            if len(self._ended) > _BACKLOG:
                self._not_drawn += len(self._ended) - _BACKLOG
                del self._ended[:-_BACKLOG]
            if ended:
                self._rates.ended(time.monotonic(), rank, ((it.group, it.contract) for it in ended))
            if pending or self._pending.get(rank):
                self._pending[rank] = [self._slice(rank, it) for it in pending]
                self._news.add("pending")

    def silent(self, rank: int) -> None:
        """Forgets what is pending on a rank that does not answer."""
        with self._lock:
            if self._pending.pop(rank, None):
                self._news.add("pending")

    def said(self, missing: Missing) -> None:
        """Notes the ranks for which groups wait, as the groups' leaders name them."""
        with self._lock:
            if missing != self._missing:
                self._missing = missing
                self._news.add("pending")

    def judged(
        self,
        verdict: Row,
        waiting: Mapping[int, Iterable[int]],
        culprits: Iterable[int],
        cycle: Sequence[int],
    ) -> None:
        """Takes a verdict, and the ranks that each rank waits for in it."""
        with self._lock:
            self._verdict, self._waits = verdict, waiting
            self._blamed = (frozenset(culprits), tuple(cycle))
            self._news.add("verdict")

    def waits_since(self) -> float | None:
        """When what has been pending for longest was called, by the clock of this host. None: nothing is."""
        with self._lock:
            return min((it.called for those in self._pending.values() for it in those), default=None)

    def is_well(self) -> bool:
        """Whether every rank that was described does what it is there for."""
        with self._lock:
            return all(it["well"] for it in self._ranks.values())

    # --- what browsers are sent --------------------------------------------------------------------------

    def changes(self) -> Row | None:
        """What has changed since it was asked before; None: nothing."""
        with self._lock:
            found: Row = {}
            ended, left_out = thinned(self._ended)
            self._not_drawn += left_out
            self._history.extend(ended)
            self._ended = []
            if ended:
                found["ended"] = columns(ended, ended[0].called)
            news, self._news = self._news, set()
            if self._changed_ranks:
                found["ranks"] = {it: self._ranks[it] for it in sorted(self._changed_ranks)}
                self._changed_ranks = set()
            now = time.monotonic()
            if now - self._rated >= _RATES_EVERY_S:
                self._rated = now
                found["rates"] = self._rated_now(now)
                # A wait that has become long is in the graph.
                news |= {"pending"} if self._pending else set()
            found |= self._of(news)
            if not found:
                return None
            return {"at": time.time(), **found}

    def whole(self) -> Row:
        """Everything that a new browser needs."""
        with self._lock:
            history = list(self._history)
            base = history[0].called if history else 0.0
            return {
                "at": time.time(),
                "reset": True,
                "ranks": dict(sorted(self._ranks.items())),
                "rates": self._rated_now(time.monotonic()),
                **({"ended": columns(history, base)} if history else {}),
                **self._of({"header", "groups", "pending", "verdict"}),
            }

    def _of(self, news: set[str]) -> Row:
        found: Row = {"reset": True} if "reset" in news else {}
        if "header" in news:
            found["header"] = self._header()
        if "groups" in news:
            found["groups"] = [{"name": name, "ranks": list(ranks)} for name, ranks in self._groups.items()]
        if "verdict" in news:
            found["verdict"] = self._verdict
        if news & {"pending", "verdict"}:
            pending = self._joined()
            slices = [it for each in pending for it in each.slices]
            found["pending"] = {
                "rows": [it.as_row() for it in pending[:MOST_ROWS]],
                "more": max(0, len(pending) - MOST_ROWS),
                "slices": columns(slices, slices[0].called if slices else 0.0),
            }
            found["graph"] = self._graph(pending)
        return found

    def _header(self) -> Row:
        rows = self._ranks.values()
        generations = {it["generation"] for it in rows if it["generation"]}
        silent = [rank for rank, it in self._ranks.items() if it["reached"] is False]
        return {
            "name": self._name,
            "source": self._source,
            "size": len(self._ranks),
            "generation": max(generations, default=0),
            "whole": bool(self._ranks) and all(it["well"] for it in rows),
            "silent": silent,
        }

    def _rated_now(self, now: float) -> Row:
        return {
            "groups": self._rates.groups(now),
            "ranks": self._rates.ranks(now),
            "not_drawn": self._not_drawn,
            "lost": self._lost,
        }

    def _joined(self) -> list[Pending]:
        slices = [it for those in self._pending.values() for it in those]
        seen = {it.number: self._entries.of(it.rank, it.operation).ranks for it in slices}
        return joined(slices, seen, self._groups, self._missing, admits=self._admits)

    def _graph(self, pending: Sequence[Pending]) -> Row:
        now = time.time()
        waiting: dict[int, set[int]] = {}
        for it in pending:
            if it.missing and now - it.since >= _LONG_S:
                for each in it.slices:
                    waiting.setdefault(each.rank, set()).update(it.missing)
        for rank, those in self._waits.items():
            # A verdict may be older than what ranks do now.
            if self._pending.get(rank):
                waiting.setdefault(rank, set()).update(those)
        culprits, cycle = self._blamed if waiting else (frozenset(), ())
        return waits.graph(waiting, culprits, cycle)

    def _slice(self, rank: int, it: RecordedOperation) -> Slice:
        entry = self._entries.of(rank, it)
        called = it.called - self._ahead.get(rank, 0.0)
        members = self._groups.get(it.group, ())
        if it.done is not None and it.entered is not None and len(members) > 1:
            entry.came[rank] = called + (it.announced or 0.0)
            if len(entry.came) == len(members):
                self._rates.came(it.group, entry.came)
        return Slice(rank, entry.number, called, it)


def _order(name: str) -> tuple[bool, list[tuple[str, int]]]:
    """The world first, and `tp_2` before `tp_10`."""
    return name != "world", [(text, int(it or 0)) for text, it in re.findall(r"(\D*)(\d*)", name)]


def _apart(seconds: float) -> float:
    return seconds if abs(seconds) >= _CLOCKS_S else 0.0
