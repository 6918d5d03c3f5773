"""Guard's sends and receives: both ends are announced when they are called, and entered once they agree.

Small messages travel with what announces them (`carried`), and enter nothing.

Gloo moves nothing before both ends are there, so that a program sees no difference: `isend` and `irecv` return at once,
and `wait` waits for the other end. Each rank matches what others send to it with what it receives (`core.admission`).
"""

from __future__ import annotations

import itertools
import threading
import time
from _thread import LockType, allocate_lock, get_ident
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ...core.activity import Activity
from ...core.admission.admission import Member, Ruling
from ...core.admission.matching import Match, Post, Side
from ...core.admission.texts import Request, absences, with_sides
from ...core.errors import ErrorCode, RankDetail, RankState
from ...core.links import Ended
from ...core.task import VERDICT_GRACE
from ..watch.next_call import NextCall
from .carried import CarriedWork, content_of, fill, is_carried
from .crossings import PATIENCE_S, Wait, channel_of
from .errors import GuardError
from .gone import Gone
from .meeting import Meeting
from .on_gloo import GlooGroups, is_plain
from .outbox import Outbox, inbox_of, order_of, place_of, rank_at
from .pending import AllPending
from .transfer import PLACE, Enter, Transfer
from .works import work_of

_NO_END_S = 40 * 86400.0
"""Longer than any script waits: a send or receive that nobody waits for has no deadline. The wire has 49 days."""
_LONGEST_PAUSE_S = 0.5
_ASKED_S = 1.0
_QUESTION = "?"
_MOST_CHANNELS = 512


class Transfers:
    """The sends and receives of this rank, in all groups of one default group."""

    def __init__(
        self,
        meeting: Meeting,
        gone: Gone,
        pending: AllPending,
        timeout: float,
        ended: Callable[[Ended], None],
        groups: GlooGroups,
    ) -> None:
        self._groups = groups
        self._meeting = meeting
        self._gone = gone
        self._pending = pending
        self._timeout = timeout
        self._ended = ended
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._posted: Counter[str] = Counter()
        self._withdrawn: Counter[str] = Counter()
        self._outboxes: dict[int, Outbox] = {}
        # By thread, until it has come to the script.
        self._held: dict[int, Any] = {}
        # By rank that receives: held by the thread that reads the links.
        self._reading: defaultdict[int, LockType] = defaultdict(allocate_lock)
        inbox = inbox_of(meeting.rank)
        meeting.links.add_group(inbox, order_of(meeting.rank, meeting.size), timeout, stays=True)
        self._inbox = meeting.links.group(inbox)

    def begin(self, call: NextCall, enter: Enter) -> Any:
        """Announces a call; gives torch's Work, boxed. What is not Gloo's, or wrong in itself, is entered at once."""
        self._groups.enters(call)
        peer_at = call.argument("dst" if call.kind == "send" else "src")
        tensors, tag = call.argument("tensors"), call.argument("tag")
        is_whole = len(tensors) == 1 and is_plain(tensors[0]) and 0 <= tag < 1 << 31
        is_there = peer_at is None or 0 <= peer_at < len(call.ranks)
        peer = call.ranks[peer_at] if peer_at is not None and is_there else None
        if not is_whole or not is_there or peer == self._meeting.rank or not self._groups.have(call):
            return enter(None)
        transfer = self._made(call, peer, tag, tensors[0])
        transfer.enter = enter
        work = self._held[get_ident()] = work_of(transfer)
        if transfer.post.side is Side.SEND:
            assert peer is not None
            self._outbox(peer).post(transfer.post, transfer.settle, waits_next=call.is_blocking)
        else:
            try:
                self._inbox.post(transfer.post, transfer.settle, waits_next=call.is_blocking)
            except ConnectionError:
                transfer.settle(None)
        return work.boxed()

    def enter(self, transfer: Transfer, match: Match) -> Any:
        """Moves a message that is carried, or enters the backend; gives its work."""
        from torch._C._distributed_c10d import Work

        call, enter, peer = transfer.call, transfer.enter, transfer.peer
        assert enter is not None
        if peer is None:
            peer = rank_at(match.peer, self._meeting.rank)
            with self._lock:
                self._posted[transfer.channel] -= 1
                self._posted[channel_of(call.key, peer, self._meeting.rank, transfer.post.tag)] += 1
        if transfer.carried is None:
            return Work.unbox(enter(list(call.ranks).index(peer) if transfer.peer is None else None))
        if transfer.post.side is Side.SEND:
            return CarriedWork(None)
        fill(transfer.carried, match.payload)
        return CarriedWork(list(call.ranks).index(peer))

    def wait(self, transfer: Transfer, limit: float) -> None:
        """Waits until a transfer is settled; withdraws it when its time is over, or its peer has gone."""
        operation = f"{transfer.call.kind} {_direction(transfer)}"
        patience = min(self._timeout, limit)
        call = transfer.call
        with self._pending.waiting(
            operation,
            call.group,
            call.site,
            lambda attempt: self._wait_of(transfer, attempt),
            lambda: self._withdraw(transfer),
        ) as pending:
            end = time.monotonic() + patience
            pause = PATIENCE_S
            while not self._is_settled(transfer, min(pause, end - time.monotonic())):
                if time.monotonic() >= end:
                    transfer.failure = self._missing(transfer, patience)
                    break
                if self._peers_have_gone(transfer):
                    self._withdraw(transfer)
                    if transfer.is_settled(VERDICT_GRACE) and transfer.entered is not None:
                        return
                    transfer.failure = self._gone_error(transfer, ConnectionError("its link has ended"))
                    break
                if transfer.peer is not None:
                    # Linked with it, this rank hears of its end.
                    self._outbox(transfer.peer)
                pause = min(1.5 * pause, _LONGEST_PAUSE_S)
            if pending.crossing and transfer.entered is None:
                transfer.failure = GuardError.about(
                    ErrorCode.MISMATCH, call.kind, call.group, call.ranks, pending.crossing, pending.circle
                )

    def error_of(self, transfer: Transfer) -> Exception:
        """Why a transfer that was answered was not entered."""
        match = transfer.match
        if match is None:
            outbox = self._outboxes.get(transfer.peer) if transfer.peer is not None else None
            if outbox is not None and outbox.error is not None:
                return outbox.error
            return self._gone_error(transfer, ConnectionError("its link has ended"))
        peer = rank_at(match.peer, self._receiver(transfer))
        # Only the sender is another than the receiver's text names by its place.
        theirs = PLACE.sub(lambda _: f"rank {self._meeting.rank}", match.theirs)
        mine = Request(transfer.text, transfer.post.site)
        own = self._detail(transfer, self._meeting.rank, RankState.ARRIVED, mine)
        other = self._detail(transfer, peer, RankState.DISAGREES, Request(theirs, match.site))
        headline = f"MISMATCH in {transfer.call.kind} on {transfer.call.group}"
        sides = {mine: [self._meeting.rank], Request(theirs, match.site): [peer]}
        return GuardError.of(ErrorCode.MISMATCH, with_sides(headline, sides), (own, other))

    def posted(self) -> dict[str, int] | None:
        """How many sends and receives this rank has asked for, by channel; None: in too many channels."""
        with self._lock:
            return dict(self._posted) if len(self._posted) <= _MOST_CHANNELS else None

    def lost(self, rank: int) -> None:
        """Ends what waits for a rank that has gone."""
        with self._lock:
            outbox = self._outboxes.get(rank)
        if outbox is not None:
            outbox.close()

    def end(self) -> None:
        """Takes leave of the other ranks."""
        with self._lock:
            outboxes = list(self._outboxes.values())
        for outbox in outboxes:
            outbox.close()
        self._meeting.links.remove_group(inbox_of(self._meeting.rank))

    def _is_settled(self, transfer: Transfer, seconds: float) -> bool:
        """Whether a transfer is settled in `seconds`. Reads its links meanwhile, unless another thread does."""
        end = time.monotonic() + seconds
        receiver = self._receiver(transfer)
        links = self._inbox if receiver == self._meeting.rank else self._outbox(receiver).links
        reading = self._reading[receiver]
        if links is not None and reading.acquire(blocking=False):
            try:
                links.wait(transfer.is_settled, seconds)
            finally:
                reading.release()
        return transfer.is_settled(end - time.monotonic())

    def _made(self, call: NextCall, peer: int | None, tag: int, tensor: Any) -> Transfer:
        me = self._meeting.rank
        is_send = call.kind == "send"
        source, destination = (me, peer) if is_send else (peer, me)
        assert destination is not None
        place = None if peer is None else 0 if is_send else place_of(peer, me)
        channel = channel_of(call.key, source, destination, tag)
        with self._lock:
            self._posted[channel] += 1
            number = self._posted[channel]
        carried = tensor if is_carried(tensor) else None
        post = Post(
            next(self._numbers),
            Side.SEND if is_send else Side.RECV,
            place,
            tag,
            _elements(tensor),
            "",
            _NO_END_S,
            content_of(tensor) if is_send and carried is not None else b"",
            channel=call.key,
            site=call.site,
        )
        return Transfer(self, call, post, peer, channel, number, carried)

    def _outbox(self, rank: int) -> Outbox:
        outbox = self._outboxes.get(rank)
        if outbox is None:
            with self._lock:
                outbox = self._outboxes.get(rank)
                if outbox is None:
                    outbox = self._outboxes[rank] = Outbox(self._meeting, rank, self._ended)
        return outbox

    def _receiver(self, transfer: Transfer) -> int:
        if transfer.post.side is Side.SEND:
            assert transfer.peer is not None
            return transfer.peer
        return self._meeting.rank

    def _withdraw(self, transfer: Transfer) -> None:
        if transfer.post.side is Side.SEND:
            assert transfer.peer is not None
            self._outbox(transfer.peer).recall(transfer.post.number)
        else:
            self._inbox.recall(transfer.post.number)
        with self._lock:
            self._withdrawn[transfer.channel] += 1

    def _wait_of(self, transfer: Transfer, attempt: int) -> Wait | None:
        if transfer.peer is None:
            return None
        call = transfer.call
        with self._lock:
            withdrawn = self._withdrawn[transfer.channel]
        return Wait(
            attempt=attempt,
            group=call.key,
            name=call.group,
            number=transfer.number - withdrawn,
            ranks=(transfer.peer,),
            passed={},
            text=f"{transfer.text}{f' at {call.site}' if call.site else ''}",
            channel=transfer.channel,
        )

    def _peers_have_gone(self, transfer: Transfer) -> bool:
        me, peer = self._meeting.rank, transfer.peer
        return all(self._gone.has(it) for it in (transfer.call.ranks if peer is None else [peer]) if it != me)

    def _gone_error(self, transfer: Transfer, error: OSError) -> GuardError:
        call = transfer.call
        among = call.ranks if transfer.peer is None else [transfer.peer]
        return self._gone.error(call.kind, call.group, call.ranks, among, error)

    def _missing(self, transfer: Transfer, patience: float) -> GuardError | None:
        """The error for a transfer whose other end has not come; None: it has, at the last moment."""
        self._withdraw(transfer)
        call, me = transfer.call, self._meeting.rank
        if not transfer.is_settled(VERDICT_GRACE):
            # Whoever receives does not answer: the script may use its tensor again.
            transfer.enter = None
        elif transfer.match is None or transfer.match.ruling is not Ruling.WITHDRAWN:
            return None
        headline = f"PEER_MISSING in {call.kind} on {call.group}: "
        mine = Request(transfer.text, transfer.post.site)
        peers = [it for it in call.ranks if it != me] if transfer.peer is None else [transfer.peer]
        members = {it: Member(0, None, activity=self._activity_of(it)) for it in peers}
        who = f"rank {transfer.peer} has not come" if transfer.peer is not None else "nobody has come"
        sides = {mine: [me], **absences(members)}
        details = [self._detail(transfer, it, RankState.MISSING, Request("")) for it in peers]
        details = [replace(it, activity=members[it.rank].activity) for it in details]
        own = self._detail(transfer, me, RankState.ARRIVED, mine)
        text = with_sides(f"{headline}{who} in {patience:g} s", sides)
        return GuardError.of(ErrorCode.PEER_MISSING, text, (own, *details))

    def _activity_of(self, rank: int) -> Activity | None:
        """What another rank does; None: it has not come to anything that is guarded, or does not answer."""
        outbox = self._outbox(rank)
        answered = allocate_lock()
        answered.acquire()
        answers: list[Match | None] = []

        def take(match: Match | None) -> None:
            answers.append(match)
            answered.release()

        # Nobody receives it: the answer says what the other does instead.
        outbox.post(Post(next(self._numbers), Side.SEND, 0, 0, "", "", 0.001, channel=_QUESTION), take)
        answered.acquire(timeout=_ASKED_S)
        match = answers[0] if answers else None
        return match.missing[0].activity if match is not None and match.missing else None

    def _detail(self, transfer: Transfer, rank: int, state: RankState, what: Request) -> RankDetail:
        ranks = list(transfer.call.ranks)
        place = ranks.index(rank) if rank in ranks else -1
        return RankDetail(rank=rank, rank_in_group=place, state=state, detail=what.text, site=what.site)


def _direction(transfer: Transfer) -> str:
    other = "any" if transfer.peer is None else f"rank {transfer.peer}"
    return f"{'to' if transfer.post.side is Side.SEND else 'from'} {other} tag={transfer.post.tag}"


def _elements(tensor: Any) -> str:
    count = tensor.numel()
    return f"{count} element{'s' if count != 1 else ''} of {str(tensor.dtype).removeprefix('torch.')}"
