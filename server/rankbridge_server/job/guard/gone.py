"""Which ranks have gone, and why: each rank that knows of one writes it down for all."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from contextlib import suppress

from ...core.errors import ErrorCode
from ...core.links import Ended
from ..board import Board
from .errors import GuardError

_GONE_S = 0.5
"""How long a rank whose links have ended waits for somebody to say which rank has gone."""
_PAUSE_S = 0.005


class Gone:
    """Ranks that have left the job, or are lost. `rank`: this one."""

    def __init__(self, board: Board, rank: int) -> None:
        self._board = board
        self._rank = rank
        self._lost: Ended | None = None

    def leave(self) -> None:
        """Writes that this rank has left the job."""
        self._write(self._rank, lost=False, reason="it has left the job")

    def lose(self, ended: Ended) -> None:
        """Writes that a rank is lost."""
        self._lost = ended
        self._write(ended.rank, lost=True, reason=ended.reason)

    def has(self, rank: int) -> bool:
        """Whether a rank has gone, as far as is known."""
        if self._lost is not None and self._lost.rank == rank:
            return True
        try:
            return self._board.find(f"gone/{rank}") is not None
        except RuntimeError:
            # The store has gone, with the rank that kept it.
            return False

    def error(
        self, kind: str, group: str, members: Sequence[int], among: Sequence[int], error: OSError
    ) -> GuardError:
        """The error for links that have ended: which of some ranks has left the job, or is lost.

        Who hears of it from this rank finds it written. Of several the first is named: others have gone because of it.
        """
        until = time.monotonic() + _GONE_S
        while time.monotonic() < until:
            lost = self._lost
            if lost is not None and lost.rank in among:
                self._write(lost.rank, lost=True, reason=lost.reason)
            try:
                entries = [
                    (*json.loads(found), rank)
                    for rank in among
                    if rank != self._rank and (found := self._board.find(f"gone/{rank}"))
                ]
            except RuntimeError:
                entries = []
            if not entries and lost is not None and lost.rank in among:
                entries = [(0, True, lost.reason, lost.rank)]
            if entries:
                _, was_lost, reason, rank = min(entries)
                code = ErrorCode.PEER_LOST if was_lost else ErrorCode.PEER_MISSING
                text = f"rank {rank} has gone: {reason}"
                return GuardError.about(code, kind, group, members, text, [rank])
            time.sleep(_PAUSE_S)
        return GuardError.about(ErrorCode.PEER_MISSING, kind, group, members, str(error), [])

    def _write(self, rank: int, *, lost: bool, reason: str) -> None:
        # The store may have gone, with the job or the rank that kept it.
        with suppress(RuntimeError):
            if self._board.find(f"gone/{rank}") is None:
                # The clocks of several hosts differ: the store counts who has gone.
                entry = [self._board.count("gone"), lost, reason]
                self._board.write_once(f"gone/{rank}", json.dumps(entry))
