"""Guard of one rank: each collective of the job waits until all members have come with the same, or raises."""

from __future__ import annotations

import atexit
import json
import os
import threading
import time
from collections.abc import Sequence
from contextlib import suppress

from ...backends.gloo.yielding import let_loops_yield
from ...core.activity import Activity, Doing
from ...core.admission.admission import Arrival, Ruling, Verdict
from ...core.admission.verdicts import disagreement
from ...core.errors import ErrorCode, Phase, Place, RankDetail, RankState
from ...core.functions.raised import place_of
from ...core.links import Ended, GroupLinks
from ...core.task import VERDICT_GRACE
from ..contracts import contract_of
from ..torch_job import TorchJob
from ..watch.next_call import NextCall
from .crossings import PATIENCE_S, Crossings, Wait
from .errors import GuardError
from .meeting import Meeting

_POINT_TO_POINT = ("send", "recv")
_GONE_S = 0.5
"""How long a rank whose links have ended waits for somebody to say which rank has gone."""
_PAUSE_S = 0.005
_OWN_THREADS = ("guard:", "links:")


class _Member:
    """This rank as a member of a group. `passed`: collectives that were admitted. `lock`: one call at a time."""

    def __init__(self, links: GroupLinks, ranks: Sequence[int]) -> None:
        self.links = links
        self.ranks = ranks
        self.passed = 0
        self.lock = threading.Lock()


class _Waiting:
    """A call that waits to be admitted."""

    def __init__(self, attempt: int, call: NextCall, arrival: Arrival, member: _Member) -> None:
        self.attempt = attempt
        self.call = call
        self.arrival = arrival
        self.member = member
        self.since = time.monotonic()
        self.crossing = ""
        self.circle: Sequence[int] = ()


class Guard:
    """Admits the collectives of this process. `timeout`: seconds that ranks wait for each other."""

    def __init__(self, timeout: float) -> None:
        self._timeout = timeout
        self._was_forked = False
        self._lock = threading.Lock()
        self._world: _World | None = None
        self._worlds = 0
        atexit.register(self._end)
        os.register_at_fork(after_in_child=self._in_child)

    def admit(self, call: NextCall) -> None:
        """Waits until all members have come with the same call. Raises GuardError; then none of them enters it.

        Sends and receives are not admitted: either may wait for the other, or not. Nor is what a forked process calls.
        """
        if call.kind not in _POINT_TO_POINT:
            self.admit_as(call, contract_of(call))

    def admit_as(self, call: NextCall, contract: str) -> None:
        """The same of a call with this contract, whatever its kind."""
        if len(call.ranks) > 1 and not self._was_forked:
            self._of_now().admit(call, contract)

    def _of_now(self) -> _World:
        """What belongs to the default group that there is now."""
        world = self._world
        if world is not None and world.is_now():
            return world
        with self._lock:
            if self._world is None or not self._world.is_now():
                self._end()
                self._worlds += 1
                self._world = _World(TorchJob(), self._worlds, self._timeout)
            return self._world

    def _end(self) -> None:
        if self._world is not None and not self._was_forked:
            self._world.end()
            self._world = None

    def _in_child(self) -> None:
        self._was_forked = True


class _World:
    """The groups of one default group."""

    def __init__(self, job: TorchJob, number: int, timeout: float) -> None:
        self._job = job
        self._default_group = job.default_group
        self._timeout = timeout
        self._members: dict[str, _Member] = {}
        self._making = threading.Lock()
        self._seen: tuple[int, int] = (0, 0)
        self._waiting: dict[int, _Waiting] = {}
        self._attempts = 0
        self._idle_since = time.monotonic()
        self._lost: Ended | None = None
        self._meeting = Meeting(number, timeout, self._ended, self._activity)
        self._crossings = Crossings(
            self._meeting.board, self._meeting.rank, self._meeting.size, self._wait, self._cross
        )

    def is_now(self) -> bool:
        """Whether its default group is that which there is now."""
        return self._job.default_group is self._default_group

    def end(self) -> None:
        """Takes leave of the other ranks: what they call without this one goes on."""
        self._crossings.stop()
        # The store may have gone, with the job.
        with suppress(RuntimeError):
            self._write_gone(self._meeting.rank, lost=False, reason="it has left the job")
        for key in list(self._members):
            self._meeting.links.remove_group(key)
        self._meeting.end()

    def admit(self, call: NextCall, contract: str) -> None:
        """Waits for a call's members. Raises GuardError."""
        member = self._member(call)
        with member.lock:
            arrival = Arrival(member.passed, "", contract, self._timeout, b"", call.site)
            verdict = self._verdict(call, member, arrival)
            if verdict.ruling is Ruling.GO:
                member.passed += 1
                return
        error = disagreement(verdict, arrival, call.group, call.ranks)
        place = Place(rank=self._meeting.rank, group=call.group, operation=call.kind)
        raise GuardError(error.at(place, Phase.ADMISSION).failure)

    def _verdict(self, call: NextCall, member: _Member, arrival: Arrival) -> Verdict:
        self._attempts += 1
        thread = threading.get_ident()
        waiting = self._waiting[thread] = _Waiting(self._attempts, call, arrival, member)
        try:
            verdict = member.links.admit(arrival, _nothing, self._timeout + VERDICT_GRACE)
        except TimeoutError:
            leader = call.ranks[0]
            raise _error(
                ErrorCode.PEER_MISSING,
                call.kind,
                call.group,
                call.ranks,
                f"rank {leader}, which rules, does not answer",
                [leader],
            ) from None
        except OSError as error:
            gone = self._gone(call.kind, call.group, call.ranks, error)
            # Others that wait hear of it, too.
            self._meeting.links.remove_group(call.key)
            raise gone from None
        finally:
            del self._waiting[thread]
            self._idle_since = time.monotonic()
        if verdict.ruling is Ruling.WITHDRAWN:
            raise _error(
                ErrorCode.MISMATCH, call.kind, call.group, call.ranks, waiting.crossing, waiting.circle
            )
        return verdict

    def _member(self, call: NextCall) -> _Member:
        """This rank's links in a group, made at its first call. Raises GuardError."""
        self._lead()
        member = self._members.get(call.key)
        if member is not None:
            return member
        with self._making:
            member = self._members.get(call.key)
            return member if member is not None else self._made(call.key, call.ranks, call.kind, call.group)

    def _lead(self) -> None:
        """Takes the links of the groups that this rank leads before it waits in any of them."""
        job = self._job
        mark = job.mark()
        if mark == self._seen:
            return
        # A new group has new threads. Those of Gloo would hold up who is about to be admitted.
        let_loops_yield()
        with self._making:
            self._seen = mark
            groups = job.ranks_by_key()
            for key in self._members.keys() - groups.keys():
                del self._members[key]
                self._meeting.links.remove_group(key)
            for key, ranks in groups.items():
                if key not in self._members and len(ranks) > 1 and ranks[0] == job.rank:
                    self._made(key, ranks, "a collective", key)

    def _made(self, key: str, ranks: Sequence[int], kind: str, group: str) -> _Member:
        try:
            self._meeting.links.add_group(key, ranks, self._timeout)
            member = self._members[key] = _Member(self._meeting.links.group(key), ranks)
        except OSError as error:
            raise self._gone(kind, group, ranks, error) from None
        return member

    # What the links and the thread that looks for crossings ask.

    def _ended(self, ended: Ended) -> None:
        """Ends the groups of a rank that is lost, and no others: it may have done all that it had to."""
        self._lost = ended

        def end() -> None:
            with suppress(RuntimeError):
                self._write_gone(ended.rank, lost=True, reason=ended.reason)
            for key, member in list(self._members.items()):
                if ended.rank in member.ranks:
                    self._meeting.links.remove_group(key)

        threading.Thread(target=end, name="guard:lost", daemon=True).start()

    def _activity(self, _group: str) -> Activity:
        for waiting in list(self._waiting.values()):
            return Activity(
                doing=Doing.WAITING,
                seconds=time.monotonic() - waiting.since,
                group=waiting.call.group,
                operation=waiting.call.kind,
                site=waiting.arrival.site,
            )
        seconds = time.monotonic() - self._idle_since
        return Activity(doing=Doing.IDLE, seconds=seconds, where=place_of(threading.main_thread().ident or 0))

    def _wait(self) -> Wait | None:
        """The one thing for which this rank waits. With another thread, it may yet come to what others wait for."""
        all_of_them = list(self._waiting.items())
        if len(all_of_them) != 1:
            return None
        ((thread, waiting),) = all_of_them
        if time.monotonic() - waiting.since < PATIENCE_S or not _is_alone(thread):
            return None
        call, arrival = waiting.call, waiting.arrival
        return Wait(
            attempt=waiting.attempt,
            group=call.key,
            name=call.group,
            number=arrival.sequence,
            ranks=tuple(call.ranks),
            passed={key: member.passed for key, member in list(self._members.items())},
            text=f"{arrival.contract}{f' at {arrival.site}' if arrival.site else ''}",
        )

    def _cross(self, wait: Wait, circle: Sequence[int], text: str) -> None:
        for waiting in list(self._waiting.values()):
            if waiting.attempt == wait.attempt:
                waiting.circle, waiting.crossing = circle, text
                waiting.member.links.withdraw(waiting.arrival)

    # Ranks that have gone.

    def _write_gone(self, rank: int, *, lost: bool, reason: str) -> None:
        board = self._meeting.board
        if board.find(f"gone/{rank}") is None:
            # The clocks of several hosts differ: the store counts who has gone.
            board.write_once(f"gone/{rank}", json.dumps([board.count("gone"), lost, reason]))

    def _gone(self, kind: str, group: str, ranks: Sequence[int], error: OSError) -> GuardError:
        """The error for links that have ended: which of a group's ranks has left the job, or is lost.

        Who hears of it from this rank finds it written. Of several the first is named: others have gone because of it.
        """
        until = time.monotonic() + _GONE_S
        while time.monotonic() < until:
            lost = self._lost
            if lost is not None and lost.rank in ranks:
                # The store may have gone, with the rank that kept it.
                with suppress(RuntimeError):
                    self._write_gone(lost.rank, lost=True, reason=lost.reason)
            try:
                entries = [
                    (*json.loads(found), rank)
                    for rank in ranks
                    if rank != self._meeting.rank and (found := self._meeting.board.find(f"gone/{rank}"))
                ]
            except RuntimeError:
                entries = []
            if entries:
                _, was_lost, reason, rank = min(entries)
                return _gone_error(was_lost, kind, group, ranks, rank, reason)
            if lost is not None and lost.rank in ranks:
                return _gone_error(True, kind, group, ranks, lost.rank, lost.reason)
            time.sleep(_PAUSE_S)
        return _error(ErrorCode.PEER_MISSING, kind, group, ranks, str(error), [])


def _gone_error(
    lost: bool, kind: str, group: str, members: Sequence[int], rank: int, reason: str
) -> GuardError:
    code = ErrorCode.PEER_LOST if lost else ErrorCode.PEER_MISSING
    return _error(code, kind, group, members, f"rank {rank} has gone: {reason}", [rank])


def _error(
    code: ErrorCode, kind: str, group: str, members: Sequence[int], reason: str, ranks: Sequence[int]
) -> GuardError:
    """The error about some ranks. One that is no member of the group has -1 as its rank there."""
    state = {ErrorCode.PEER_LOST: RankState.LOST, ErrorCode.PEER_MISSING: RankState.MISSING}.get(
        code, RankState.DISAGREES
    )
    details = tuple(
        RankDetail(rank=it, rank_in_group=members.index(it) if it in members else -1, state=state)
        for it in ranks
    )
    return GuardError.of(code, f"{code.name} in {kind} on {group}: {reason}", details)


def _is_alone(thread: int) -> bool:
    """Whether no other thread runs Python in this process, but guard's own."""
    return all(it.ident == thread or it.name.startswith(_OWN_THREADS) for it in threading.enumerate())


def _nothing() -> None:
    """Nothing is to be done once the leader knows of an arrival."""
