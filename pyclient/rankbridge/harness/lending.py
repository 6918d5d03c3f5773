"""Gangs that are lent to tests, one after another: each test has a session and a group of its own."""

from __future__ import annotations

import functools
import inspect
import itertools
import signal
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any

from rankbridge import Formed, Gang, Group, Rank, RankBridgeError, RecordedOperation, timeline
from rankbridge.harness.asked import Asked
from rankbridge.harness.faults import send, strike
from rankbridge.harness.gangs import NoGang, Pool, RunningGang, Wanted
from rankbridge.harness.leaks import Holdings, free_shared_refs, warm_up
from rankbridge.harness.operations import DECLARED

FORM_TIMEOUT_S = 30.0
# A test that fails has seldom waited for long. Ranks that have done little yet have 2.5 times as long.
_PATIENCE_S = 0.04
_RECORDED = 8
"""Operations that the report of a test shows."""
_WORDS = {signal.SIGKILL: "kill", signal.SIGSTOP: "stop", signal.SIGCONT: "cont"}


def _takes_group(method: Any) -> bool:
    """Tells whether a method of the client takes a group, world unless it is given."""
    parameters = inspect.signature(method).parameters
    named = parameters.get("group")
    if named is not None:
        return bool(named.default == "world")
    return any("CallOptions" in str(it.annotation) for it in parameters.values())


def _with_group(of: type) -> dict[str, bool]:
    """Gives the methods that take a group, and whether they take refs, too."""
    methods = {
        name: it for name, it in inspect.getmembers(of, inspect.isfunction) if not name.startswith("_")
    }
    return {
        name: not {"refs", "tensors"}.isdisjoint(inspect.signature(it).parameters)
        for name, it in methods.items()
        if _takes_group(it)
    }


_OF_GANG = _with_group(Gang)
_OF_RANK = _with_group(Rank)


def _in_group(method: Any, name: str, group: Group, taking: Mapping[str, bool]) -> Any:
    """Gives a method that means the test's group unless another is given."""
    if name in taking:
        # By its name alone, the client asks the ranks for the group's members; but where refs say who is called, it
        # lets a test leave some out.
        return functools.partial(method, group=group.name if taking[name] else group)
    if name not in ("start", "submit"):
        return method

    def begin(operation: str, *args: Any, **options: Any) -> Any:
        own = {"group": group.name} if operation in DECLARED else {}
        return method(operation, *args, **own | options)

    return begin


class LentRank:
    """One rank of a lent gang: every method of ``rankbridge.Rank``, in the test's group unless another is given."""

    def __init__(self, rank: Rank, group: Group, asked: Asked) -> None:
        """Made by the gang."""
        self._rank = rank
        self._group = group
        self._asked = asked

    def __getattr__(self, name: str) -> Any:
        """Gives the rank's own."""
        found = getattr(self._rank, name)
        if not callable(found):
            return found
        called = _in_group(found, name, self._group, _OF_RANK)
        return self._asked.noting(name, self._rank.rank, called)


class LentGang:
    """A gang for one test: every method of ``rankbridge.Gang``, in the test's group unless another is given.

    Attributes:
        client: The gang as it is.
        own: The test's group, of all ranks in order.
        asked: What the test has asked for.
        failed: Whether the test has failed.
        left: What the test has left behind, in words.
    """

    def __init__(self, running: RunningGang, own: Group) -> None:
        """Made by `Lender`."""
        self.client = running.client
        self.own = own
        self.failed = False
        self.left: list[str] = []
        self.disturbed = False
        self.asked = Asked(running.wanted, own.name)
        self._running = running
        self._events = len(running.reports.events)

    def __len__(self) -> int:
        """Number of ranks."""
        return len(self.client)

    def __getitem__(self, rank: int) -> LentRank:
        """Gives one rank, counted from 0."""
        return LentRank(self.client[rank], self.own, self.asked)

    def __iter__(self) -> Iterator[LentRank]:
        """Gives every rank, in order."""
        return (self[rank] for rank in range(len(self)))

    def __getattr__(self, name: str) -> Any:
        """Gives the gang's own."""
        found = getattr(self.client, name)
        if not callable(found):
            return found
        return self.asked.noting(name, None, _in_group(found, name, self.own, _OF_GANG))

    @property
    def group(self) -> str:
        """Name of the test's group."""
        return self.own.name

    @property
    def pids(self) -> dict[int, int]:
        """Process of each rank."""
        return self._running.pids

    @property
    def events(self) -> list[dict[str, Any]]:
        """What `rankbridge up` has reported since the test began."""
        return list(self._running.reports.events)[self._events :]

    def kill(self, *ranks: int) -> None:
        """Kills the processes of ranks, which are replaced. Not on the backend fake, where all are in one."""
        self._signal(ranks, signal.SIGKILL)

    def stop(self, *ranks: int) -> None:
        """Stops the processes of ranks; they go on with the end of the test, if not before."""
        self._signal(ranks, signal.SIGSTOP)

    def cont(self, *ranks: int) -> None:
        """Lets the processes of ranks go on, unless they have ended by now, as stopped ranks do that were lost."""
        self._signal(ranks, signal.SIGCONT)

    def form(self, *, timeout: float = FORM_TIMEOUT_S) -> Formed:
        """Forms the next generation, with all groups."""
        self.asked.form()
        return self.client.form(timeout=timeout)

    def described(self) -> str:
        """Says how every rank is, what it has not answered yet, and what was reported."""
        lines = [f"{self._running.wanted}, group {self.group}"]
        for rank in self.client:
            try:
                status, pending = rank.status(), rank.pending()
            except RankBridgeError as error:
                lines.append(f"rank {rank.rank}: not reached: {error}")
                continue
            lines.append(
                f"rank {rank.rank}: pid {status.pid}, generation {status.generation} {status.generation_state}"
                + (f": {status.generation_error}" if status.generation_error else "")
            )
            lines += [
                f"  pending: {it.operation} on {it.group}, {it.phase}, for {it.waited * 1000:.0f} ms"
                for it in pending.operations
            ]
            lines += [
                f"  {it.group} waits for ranks {list(it.missing)} in {it.operation}"
                for it in pending.admissions
            ]
        lines += [f"event: {it}" for it in self.events]
        return "\n".join(lines)

    def recorded(self) -> str:
        """Says what the ranks have done last in the test's group, a line for each operation."""
        records: dict[int, list[RecordedOperation]] = {}
        for rank in self.client:
            with suppress(RankBridgeError):
                records[rank.rank] = rank.record(limit=_RECORDED, group=self.group)
        return "\n".join(map(str, timeline(records)[-_RECORDED:])) or "no operation in the test's group"

    def verdict(self) -> str:
        """Says which rank keeps which others waiting, or what has failed last."""
        try:
            return str(self.client.diagnose(patience=_PATIENCE_S))
        except RankBridgeError as error:
            return f"no rank has answered: {error}"

    def _signal(self, ranks: Sequence[int], signum: signal.Signals) -> None:
        if self._running.wanted.backend == "fake":
            raise ValueError("ranks on the backend fake share one process: take gloo")
        self.disturbed = True
        self.asked.fault(_WORDS[signum], ranks)
        strike([self.pids[rank] for rank in ranks], signum)


class Lender:
    """Lends gangs of a pool."""

    def __init__(self) -> None:
        """Has none yet."""
        self._pool = Pool()
        self._count = itertools.count(1)
        self._warm: set[int] = set()
        self._holdings = Holdings()
        self._aside = ThreadPoolExecutor(1, "lending")

    @contextmanager
    def lent(self, size: int, backend: str, timeout: float, load: tuple[str, ...] = ()) -> Iterator[LentGang]:
        """Lends a gang. Afterwards it is as before: formed again if it has to be, or another one takes its place.

        Args:
            size: Its ranks.
            backend: What moves its data.
            timeout: Of each call, in seconds.
            load: Modules with functions, as `load_paths` gives them. What they keep is no other test's.

        Raises:
            NoGang: It did not start.
        """
        running = self._pool.gang(Wanted(size, backend, (), load))
        client = running.client
        client.timeout = timeout
        name = f"test-{next(self._count)}"
        if running.process.pid not in self._warm:
            self._warm.add(running.process.pid)
            warm_up(client)
        try:
            with client.session():
                lent = LentGang(running, client.new_group(name, range(size), timeout=FORM_TIMEOUT_S))
                self._holdings.look(lent.pids.values())
                try:
                    yield lent
                finally:
                    send(list(lent.pids.values()), signal.SIGCONT)
                # A module's functions may keep what they like.
                looked_at = {} if lent.failed or load else lent.pids
                growing = self._aside.submit(self._holdings.grown, looked_at)
            # Beside the closing of the session: both wait, for other things.
            self._clean(lent, growing)
            if load:
                self._pool.drop(running)
        except (RankBridgeError, NoGang):
            self._pool.drop(running)
            raise

    def close(self) -> None:
        """Ends all gangs."""
        self._aside.shutdown()
        self._pool.close()

    def _clean(self, lent: LentGang, growing: Future[list[str]]) -> None:
        """Takes away what is left, and notes it unless the test has failed anyhow. `growing`: what ranks hold more."""
        client = lent.client
        try:
            statuses = client.status()
            if lent.failed or lent.disturbed or any(it.pending_operations for it in statuses):
                client.form(timeout=FORM_TIMEOUT_S)
                statuses = client.status()
            # A rank that is no member of a group may not know that it has ended.
            mine = (group for it in statuses for group in it.groups if it.rank in group.ranks)
            groups = sorted({it.name for it in mine} - {"world"})
            more = growing.result()
            if lent.group in groups:
                client.destroy_group(lent.own, timeout=FORM_TIMEOUT_S)
                groups.remove(lent.group)
            if groups:
                client.destroy_groups(groups, timeout=FORM_TIMEOUT_S)
            lent.left = [f"group {it!r}" for it in groups]
            lent.left += free_shared_refs(client, statuses)
            # Of a group that was left, nothing is said twice.
            lent.left = lent.left or more
        except RankBridgeError:
            # Nothing is lost by it: another gang takes its place.
            self._pool.drop(lent._running)
        if lent.failed:
            lent.left = []
