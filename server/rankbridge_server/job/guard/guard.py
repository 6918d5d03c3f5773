"""Guard of one rank: each collective of the job waits until all members have come with the same, or raises."""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from torch._C._distributed_c10d import ProcessGroup
from torch.distributed import is_initialized

from ...backends.gloo.yielding import let_loops_yield
from ...core.admission.admission import Arrival, Ruling, Verdict
from ...core.admission.verdicts import disagreement
from ...core.errors import ErrorCode, Phase, Place
from ...core.links import Ended, GroupLinks
from ...core.task import VERDICT_GRACE
from ..contracts import contract_of
from ..dispatch import count_carried
from ..torch_job import TorchJob
from ..watch.next_call import Done, NextCall
from . import carried_collectives
from .crossings import Crossings, Wait
from .errors import GuardError
from .gone import Gone
from .meeting import Meeting
from .on_gloo import GlooGroups
from .pending import AllPending
from .transfer import Enter
from .transfers import Transfers


class _Member:
    """This rank as a member of a group. `passed`: collectives that were admitted. `lock`: one call at a time."""

    def __init__(self, links: GroupLinks, ranks: Sequence[int]) -> None:
        self.links = links
        self.ranks = ranks
        self.passed = 0
        self.lock = threading.Lock()


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

    def admit(self, call: NextCall, enter: Enter) -> Any:
        """Enters a call when all of its members have come with the same; gives what `enter` gives.

        Gives Done for a small one, which enters nothing. Raises GuardError; then none of them enters it. Does not
        wait for the other end of a send or a receive: its Work does, and raises. What a forked process calls is entered
        at once.
        """
        if len(call.ranks) == 1 or self._was_forked:
            return enter(None)
        world = self._of_now()
        if call.is_post:
            return world.begin(call, enter)
        parts = world.admit(call, contract_of(call), carried_collectives.part_of(call, world.groups))
        if carried_collectives.is_carried(call, parts):
            count_carried(ProcessGroup.unbox(call.argument("process_group")))
            return Done(carried_collectives.give(call, parts))
        world.groups.enters(call)
        return enter(None)

    def admit_as(self, call: NextCall, contract: str) -> None:
        """Waits until all members have come with a call of this contract, whatever its kind. Raises GuardError."""
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
        # What was forked before there was a default group may become a rank itself.
        self._was_forked = self._was_forked or is_initialized()


class _World:
    """The groups of one default group."""

    def __init__(self, job: TorchJob, number: int, timeout: float) -> None:
        self._job = job
        self._default_group = job.default_group
        self._timeout = timeout
        self._members: dict[str, _Member] = {}
        self._making = threading.Lock()
        self._seen: tuple[int, int] = (0, 0)
        self._pending = AllPending()
        self.groups = GlooGroups()
        self._meeting = Meeting(number, timeout, self._ended, self._pending.activity)
        self._gone = Gone(self._meeting.board, self._meeting.rank)
        self._transfers = Transfers(
            self._meeting, self._gone, self._pending, timeout, self._ended, self.groups
        )
        self._crossings = Crossings(
            self._meeting.board, self._meeting.rank, self._meeting.size, self._wait, self._pending.cross
        )

    def is_now(self) -> bool:
        """Whether its default group is that which there is now."""
        return self._job.default_group is self._default_group

    def end(self) -> None:
        """Takes leave of the other ranks: what they call without this one goes on."""
        self._crossings.stop()
        self._gone.leave()
        self._transfers.end()
        for key in list(self._members):
            self._meeting.links.remove_group(key)
        self._meeting.end()

    def begin(self, call: NextCall, enter: Enter) -> Any:
        """Announces a send or a receive; gives its Work, boxed."""
        self._lead()
        return self._transfers.begin(call, enter)

    def admit(self, call: NextCall, contract: str, part: bytes = b"") -> Sequence[bytes]:
        """Waits for a call's members; gives the parts of all, if any member brings one. Raises GuardError."""
        member = self._member(call)
        with member.lock:
            arrival = Arrival(member.passed, "", contract, self._timeout, part, call.site)
            verdict = self._verdict(call, member, arrival)
            if verdict.ruling is Ruling.GO:
                member.passed += 1
                return verdict.payloads
        error = disagreement(verdict, arrival, call.group, call.ranks)
        place = Place(rank=self._meeting.rank, group=call.group, operation=call.kind)
        raise GuardError(error.at(place, Phase.ADMISSION).failure)

    def _verdict(self, call: NextCall, member: _Member, arrival: Arrival) -> Verdict:
        about = call.kind, call.group, call.ranks
        with self._pending.waiting(
            call.kind,
            call.group,
            call.site,
            lambda attempt: _wait_of(call, arrival, attempt),
            lambda: member.links.withdraw(arrival),
        ) as pending:
            try:
                verdict = member.links.admit(arrival, _nothing, self._timeout + VERDICT_GRACE)
            except TimeoutError:
                leader = call.ranks[0]
                text = f"rank {leader}, which rules, does not answer"
                raise GuardError.about(ErrorCode.PEER_MISSING, *about, text, [leader]) from None
            except OSError as error:
                gone = self._gone.error(*about, call.ranks, error)
                # Others that wait hear of it, too.
                self._meeting.links.remove_group(call.key)
                raise gone from None
        if verdict.ruling is Ruling.WITHDRAWN:
            raise GuardError.about(ErrorCode.MISMATCH, *about, pending.crossing, pending.circle)
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
            raise self._gone.error(kind, group, ranks, ranks, error) from None
        return member

    # What the links and the thread that looks for crossings ask.

    def _ended(self, ended: Ended) -> None:
        """Ends the groups of a rank that is lost, and no others: it may have done all that it had to."""

        def end() -> None:
            self._gone.lose(ended)
            for key, member in list(self._members.items()):
                if ended.rank in member.ranks:
                    self._meeting.links.remove_group(key)
            self._transfers.lost(ended.rank)

        threading.Thread(target=end, name="guard:lost", daemon=True).start()

    def _wait(self) -> Wait | None:
        """The one thing for which this rank waits."""
        wait = self._pending.only()
        if wait is None:
            return None
        passed = {key: member.passed for key, member in list(self._members.items())}
        return replace(wait, passed=passed, posted=self._transfers.posted())


def _wait_of(call: NextCall, arrival: Arrival, attempt: int) -> Wait:
    return Wait(
        attempt=attempt,
        group=call.key,
        name=call.group,
        number=arrival.sequence,
        ranks=tuple(call.ranks),
        passed={},
        text=f"{arrival.contract}{f' at {arrival.site}' if arrival.site else ''}",
    )


def _nothing() -> None:
    """Nothing is to be done once the leader knows of an arrival."""
