"""The state of a gang, from its ranks: how their records grow, what they are, and a verdict while somebody waits."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import threading
import time
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from rankbridge._plan.record import SCRIPT, track_of_calls

from ...core.printable import lines, printable
from ..gang_verdicts import in_doctors_words
from .holdings import tensors_of
from .model import Model, Row
from .pending import Missing
from .source import Tensors
from .verdicts import as_shown

if TYPE_CHECKING:
    from rankbridge import AsyncGang, AsyncRank, RankPending, RankStatus, RecordedOperation

PATIENCE_S = 2.0
_INTERVAL_S = 0.25
_AGAIN_S = 1.0
_VERDICT_EVERY_S = 2.0
_FIRST = 20_000
"""Operations of all ranks together that come first."""
_STOP_S = 10.0


class GangSource:
    """Asks the ranks of a gang, from a thread of its own. `connect`: reaches the gang anew."""

    def __init__(self, model: Model, connect: Callable[[], Coroutine[Any, Any, AsyncGang]]) -> None:
        self._model = model
        self._connect = connect
        self._thread: threading.Thread | None = None
        self._end: Callable[[], object] = lambda: None
        self._asked = threading.Event()
        self._gang: AsyncGang | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        # Groups in which the user's own code calls.
        self._called_in: set[str] = set()

    def start(self) -> None:
        """Begins to look."""
        begun = threading.Event()
        self._asked.set()
        self._model.reset()

        async def run() -> None:
            task = asyncio.current_task()
            assert task
            loop = self._loop = asyncio.get_running_loop()
            self._end = lambda: loop.call_soon_threadsafe(task.cancel)
            begun.set()
            await self._watch()

        def main() -> None:
            with contextlib.suppress(asyncio.CancelledError):
                asyncio.run(run())

        self._thread = threading.Thread(target=main, name="page-source", daemon=True)
        self._thread.start()
        begun.wait()

    def stop(self) -> None:
        """Ends it; asks no rank any more."""
        with contextlib.suppress(RuntimeError):
            # Its loop may have ended.
            self._end()
        if self._thread is not None:
            self._thread.join(_STOP_S)
            self._thread = self._gang = self._loop = None

    def ask(self) -> None:
        """Asks for a verdict soon."""
        self._asked.set()

    def tensors(self, rank: int) -> Tensors:
        """What a rank holds, as it says now."""
        gang, loop = self._gang, self._loop
        if gang is None or loop is None or rank >= len(gang):
            return {"tensors": [], "why": f"rank {rank} is not reached"}
        asked = asyncio.run_coroutine_threadsafe(tensors_of(gang[rank]), loop)
        try:
            return asked.result(_STOP_S)
        except (concurrent.futures.CancelledError, TimeoutError):
            return {"tensors": [], "why": f"rank {rank} does not answer"}

    async def _watch(self) -> None:
        from rankbridge import RankBridgeError

        size = 0
        while True:
            try:
                async with await self._connect() as gang:
                    if size not in (0, len(gang)):
                        self._model.reset()
                    size, self._gang = len(gang), gang
                    await self._look(gang)
            except (OSError, ValueError, RankBridgeError) as error:
                self._model.described({0: _unreached(0, error)}, {})
            await asyncio.sleep(_AGAIN_S)

    async def _look(self, gang: AsyncGang) -> None:
        """Looks at the gang until none of its ranks can be reached any more: others may serve under its name."""
        async with asyncio.TaskGroup() as tasks:
            rest = [tasks.create_task(self._follow(gang[rank], len(gang))) for rank in range(len(gang))]
            rest.append(tasks.create_task(self._judge(gang)))
            await self._describe(gang)
            for it in rest:
                it.cancel()

    async def _follow(self, rank: AsyncRank, size: int) -> None:
        """Follows the record of one rank, and of the process that replaces it."""
        from rankbridge import Position, RankBridgeError

        position: Position | None = None
        while True:
            try:
                first = max(20, _FIRST // size)
                watch = await rank.watch_record(after=position, last=first, interval=_INTERVAL_S)
                async with watch:
                    async for it in watch:
                        position = it.position
                        ended, pending = self._in_lanes(it.operations), self._in_lanes(it.pending)
                        self._model.grew(rank.rank, ended, pending, lost=it.lost, at=it.time)
            except RankBridgeError:
                # What it is instead, its description says.
                pass
            self._model.silent(rank.rank)
            await asyncio.sleep(_AGAIN_S)

    def _in_lanes(self, operations: Iterable[RecordedOperation]) -> list[RecordedOperation]:
        """Puts what the user's own code calls into lanes of its own: it overlaps with operations of the same group."""
        return [self._in_its_lane(it) if it.caller == SCRIPT else it for it in operations]

    def _in_its_lane(self, call: RecordedOperation) -> RecordedOperation:
        self._called_in.add(call.group)
        return replace(call, group=track_of_calls(call.group))

    async def _describe(self, gang: AsyncGang) -> None:
        """Describes all ranks again and again; while something waits, notes which ranks are missing."""
        from rankbridge import RankBridgeError

        ranks = [gang[rank] for rank in range(len(gang))]
        unreached = 0
        while unreached < 3:
            given = await asyncio.gather(*(it.status() for it in ranks), return_exceptions=True)
            rows: dict[int, Row] = {}
            groups: dict[str, tuple[int, ...]] = {}
            for rank, it in enumerate(given):
                if isinstance(it, RankBridgeError):
                    rows[rank] = _unreached(rank, it)
                elif isinstance(it, BaseException):
                    raise it
                else:
                    rows[rank] = _described(it)
                    groups |= {group.name: group.ranks for group in it.groups}
            groups |= {track_of_calls(it): groups[it] for it in self._called_in & groups.keys()}
            self._model.described(rows, dict(sorted(groups.items())))
            self._model.said(await self._missing(ranks) if self._waits_for(_AGAIN_S) else {})
            unreached = 0 if any(it["reached"] for it in rows.values()) else unreached + 1
            # A thousand descriptions a second would be felt.
            await asyncio.sleep(max(_AGAIN_S, len(ranks) / 128))

    async def _missing(self, ranks: list[AsyncRank]) -> Missing:
        given: list[RankPending | BaseException] = await asyncio.gather(
            *(it.pending() for it in ranks), return_exceptions=True
        )
        return {
            (it.group, it.operation, it.operation_id): it.missing
            for pending in given
            if not isinstance(pending, BaseException)
            for it in pending.admissions
        }

    async def _judge(self, gang: AsyncGang) -> None:
        """Finds a verdict when it is asked for, while something waits for long or is not well, and once after."""
        from rankbridge import RankBridgeError

        trouble, due = False, 0.0
        while True:
            trouble = trouble or self._waits_for(PATIENCE_S) or not self._model.is_well()
            began = time.monotonic()
            if self._asked.is_set() or (trouble and began >= due):
                self._asked.clear()
                try:
                    found = await gang.diagnose(patience=PATIENCE_S)
                except RankBridgeError as error:
                    self._model.judged(_no_verdict(error), {}, (), ())
                    trouble = True
                else:
                    trouble = not found.is_healthy
                    waiting = {it.rank: it.waits_for for it in found.waits}
                    culprits = [it.rank for it in found.culprits]
                    shown = as_shown(in_doctors_words(found), time.time())
                    self._model.judged(shown, waiting, culprits, found.cycle)
                # Evidence of many ranks is much: it is asked for a sixth of the time at most.
                due = time.monotonic() + max(_VERDICT_EVERY_S, 5 * (time.monotonic() - began))
            await asyncio.sleep(_INTERVAL_S)

    def _waits_for(self, seconds: float) -> bool:
        since = self._model.waits_since()
        return since is not None and time.time() - since > seconds


def _described(it: RankStatus) -> Row:
    error = it.generation_error
    return {
        "host": printable(it.host),
        "pid": it.pid,
        "backend": printable(it.backend),
        "state": it.generation_state,
        "why": "" if error is None else lines(str(error)),
        "since": it.generation_since,
        "generation": it.generation,
        "refs": sum(each.refs for each in it.sessions),
        "bytes": sum(each.bytes for each in it.sessions),
        "sessions": [asdict(each) for each in it.sessions if each.refs],
        "reached": True,
        "well": it.generation_state == "formed",
    }


def _unreached(rank: int, error: Exception) -> Row:
    return {
        **dict.fromkeys(("host", "backend"), ""),
        **dict.fromkeys(("pid", "since", "generation", "refs", "bytes"), 0),
        "sessions": [],
        "state": "not reached",
        "why": lines(str(error)),
        "reached": False,
        "well": False,
    }


def _no_verdict(error: Exception) -> Row:
    return {
        "at": time.time(),
        "kind": "unknown",
        "calm": False,
        "summary": f"the ranks cannot be asked: {lines(str(error))}",
        "confidence": 0.0,
        "culprits": [],
        "sides": [],
        "advice": "",
        "page": "",
    }
