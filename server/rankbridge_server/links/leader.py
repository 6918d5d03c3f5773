"""The links of a group on its leader, which rules on the group's admissions."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from rankbridge.link.v1 import link_pb2 as pb

from ..core.activity import Activity
from ..core.admission.admission import (
    GO,
    Admission,
    Arrival,
    Failed,
    Notice,
    Reply,
    Straggling,
    Verdict,
    with_activities,
)
from ..core.admission.inquiries import Inquiries, Known
from ..core.admission.matching import Answer, Matching, Post
from ..core.gang_calls.messages import Relay, Release, Report
from . import wire
from .group_links import GroupLinks, Owner
from .link import Link
from .readers import Readers


class Leader(GroupLinks):
    """Has a link from every other member. Its lane polls them all.

    `patience`: seconds that an admission may take before a notice names its stragglers. `stays`: as of `add_group`.
    """

    def __init__(
        self,
        group: str,
        owner: Owner,
        readers: Readers,
        ranks: Sequence[int],
        patience: float,
        *,
        stays: bool = False,
    ) -> None:
        super().__init__(group, owner, readers)
        self.ranks = tuple(ranks)
        self.stays = stays
        self._admission = Admission(len(ranks), patience, self._noticed)
        self._matching = Matching(len(ranks))
        self._inquiries = Inquiries(self._ask, self._is_stopped)
        # A round that has failed without some members: the others hear of it once these have said what they do.
        self._failed: Failed | None = None
        self._members: dict[int, Link] = {}
        self._places: dict[Link, int] = {}
        # This rank's last arrival, as the body of a frame and as it is.
        self._mine: tuple[bytes, Arrival] | None = None
        # An arrival, and the frame that answers it and all equal ones with GO.
        self._go: tuple[Arrival, bytes] | None = None

    def attach(self, link: Link) -> None:
        """Adds a member's link. Raises ValueError for a rank that is no member, or has a link already."""
        place = self.ranks.index(link.rank) if link.rank in self.ranks[1:] else None
        if place is None or place in self._members:
            raise ValueError(f"rank {link.rank} has no place in group {self.group!r} to link for")
        with self.lock:
            self._members[place] = link
            self._places[link] = place
            super().attach(link)
        # A lane that is polling does not poll the new link yet.
        self._wake_lane()

    def expire(self) -> float | None:
        """Rules on the round and the posts that are overdue."""
        with self.lock:
            now = time.monotonic()
            self._inquiries.expire(now)
            self._send_knowing(self._admission.expire(now), now)
            for answer in self._matching.expire(now):
                self._answer_knowing(answer, now)
            return self.due()

    def due(self) -> float | None:
        """When the current round, a post or an inquiry is overdue."""
        round_, post = self._admission.deadline, self._matching.deadline
        due = post if round_ is None else round_ if post is None else min(round_, post)
        inquiry = self._inquiries.deadline
        return due if inquiry is None else inquiry if due is None else min(due, inquiry)

    def waiting(self) -> Straggling | None:
        """The members for which the current round waits."""
        return self._admission.waiting(time.monotonic())

    def met(self) -> tuple[int, float]:
        """The rank that came last to the last round, and the seconds that the others have waited for it."""
        last, waited = self._admission.met
        return self.ranks[last], waited

    def recall(self, number: int) -> None:
        """Withdraws this rank's own post."""
        with self.lock:
            self._answer(self._matching.recall(0, number))
            if not self.turn.is_mine():
                # It may wait for this answer.
                self._wake_lane()

    def withdraw(self, arrival: Arrival) -> None:
        """Withdraws this rank's own arrival."""
        with self.lock:
            self._send(self._admission.withdraw(0, arrival.sequence, arrival.operation_id))

    def command(self, number: int, parts: Sequence[bytes]) -> None:
        """Sends every member its part. Shuts the link of a member that cannot be reached; its reader ends it."""
        packed = before = b""
        for place, part in enumerate(parts[1:], 1):
            link = self._members.get(place)
            if link is None:
                raise ConnectionError(f"rank {self.ranks[place]} has no link with group {self.group!r}")
            if part is not before:
                packed, before = wire.pack_command(number, part), part
            try:
                link.send(packed)
            except OSError:
                link.shut()

    def report(self, report: Report) -> None:
        """Rules on a refusal of this rank's own part."""
        if report.refusal:
            with self.lock:
                self._refused(report)

    def refuse(self, operation_id: str, verdict: Verdict) -> None:
        """Refuses an operation for the members that have come for it, and those that come later."""
        with self.lock:
            self._send(self._admission.refuse(operation_id, verdict))

    def release(self, release: Release) -> None:
        """Sends a release to all other members."""
        self._release_all(release, None)

    def relay(self, relay: Relay) -> None:
        """Sends a relay to its target."""
        if relay.target not in self.ranks[1:]:
            raise ConnectionError(f"rank {relay.target} is no other member of group {self.group!r}")
        link = self._members.get(self.ranks.index(relay.target))
        if link is None:
            raise ConnectionError(f"rank {relay.target} has no link with group {self.group!r}")
        link.send(wire.pack_relay(relay))

    def _noticed(self, notice: Notice) -> None:
        if isinstance(notice, Failed) and notice.verdict.missing:
            self._failed = notice
        else:
            self._owner.deliver_notice(self.group, self.ranks, notice)

    def _send_knowing(self, replies: Sequence[Reply], now: float) -> None:
        """Sends the verdict on a round that is over once its missing members have said what they do, or have not."""
        notice, self._failed = self._failed, None
        if notice is None:
            self._send(replies)
            return

        def answered(known: Known) -> None:
            verdict = notice.verdict.knowing(known)
            self._owner.deliver_notice(self.group, self.ranks, notice._replace(verdict=verdict))
            self._send([it._replace(verdict=verdict) for it in replies])

        self._inquiries.ask(notice.verdict.missing, answered, now)

    def _answer_knowing(self, answer: Answer, now: float) -> None:
        """Answers a post for which nobody came, likewise."""
        match = answer.match

        def answered(known: Known) -> None:
            missing = with_activities(match.missing, known)
            self._answer([answer._replace(match=replace(match, missing=missing))])

        self._inquiries.ask([it.rank_in_group for it in match.missing], answered, now)

    def _ask(self, number: int, place: int) -> Activity | None:
        link = self._members.get(place)
        if link is None:
            return self._owner.activity(self.group) if place == 0 else None
        try:
            link.send(wire.pack_question(number))
        except OSError:
            # Its reader acts on the broken link.
            link.shut()
        return None

    def _is_stopped(self, place: int) -> bool:
        link = self._members.get(place)
        return link is not None and link.other_side_is_stopped()

    def _announce(self, arrival: Arrival) -> None:
        replies = self._admission.arrive(0, arrival, time.monotonic())
        if replies:
            self._send(replies)
        else:
            # Most likely the others send an equal arrival and get GO: both frames are packed meanwhile.
            self._mine = wire.arrival_body(self.group, arrival), arrival
            self._go = arrival, wire.pack_reply(self.group, Reply(0, arrival, GO))

    def _wait(self, end: float) -> None:
        if not self._look_until(end) and self._verdict is None and time.monotonic() >= end:
            raise TimeoutError(f"no verdict on {self._expected}")

    def _idle(self, end: float) -> None:
        self._look_until(end)

    def _look_until(self, end: float) -> bool:
        """Acts on frames, and on what is due when none come before. Returns whether a frame or a wake has come."""
        due = self.due()
        came = self._look((end if due is None else min(end, due)) - time.monotonic())
        if not came:
            self.expire()
        return came

    def _announce_post(self, post: Post) -> None:
        self._post(0, post)

    def _post(self, place: int, post: Post) -> None:
        before = self.due()
        self._answer(self._matching.post(place, post, time.monotonic()))
        due = self.due()
        # The thread that waits for links has a deadline from before this post.
        if due is not None and (before is None or due < before):
            self._owner.wake_before(due)
            if self.turn.lane and not self.turn.is_mine():
                self._wake_lane()

    def _answer(self, answers: Sequence[Answer]) -> None:
        for place, number, match in answers:
            if place == 0:
                self._matched(number, match)
            elif (link := self._members.get(place)) is not None:
                try:
                    link.send(wire.pack_match(number, match))
                except OSError as error:
                    self._broken(link, error)

    def _take(self, link: Link, body: bytes) -> None:
        if self._mine is not None and body == self._mine[0]:
            self._arrive(link, self._mine[1])
        else:
            super()._take(link, body)

    def _arrive(self, link: Link, arrival: Arrival) -> None:
        if replies := self._admission.arrive(self._places[link], arrival, time.monotonic()):
            self._send(replies)

    def _handle(self, link: Link, frame: pb.Frame) -> None:
        kind = frame.WhichOneof("kind")
        if kind == "arrival":
            self._arrive(link, wire.arrival_of(frame.arrival))
        elif kind == "withdrawal":
            withdrawal = frame.withdrawal
            self._send(
                self._admission.withdraw(self._places[link], withdrawal.sequence, withdrawal.operation_id)
            )
        elif kind == "post":
            self._post(self._places[link], wire.post_of(frame.post))
        elif kind == "recall":
            self._answer(self._matching.recall(self._places[link], frame.recall.number))
        elif kind == "report":
            report = wire.report_of(self.group, self._places[link], frame.report)
            if report.refusal:
                self._refused(report)
            self._inbox.append(report)
        elif kind == "answer":
            activity = wire.activity_of(frame.answer.activity)
            self._inquiries.answer(frame.answer.number, self._places[link], activity)
        elif kind == "release":
            release = wire.release_of(self.group, frame.release)
            self._release_all(release, link)
            self._inbox.append(release)
        else:
            super()._handle(link, frame)

    def _has_left(self, link: Link) -> bool:
        if not self.stays or self._closed:
            return False
        with self.lock:
            place = self._places.pop(link)
            del self._members[place]
            self._matching.forget(place)
            self._links.remove(link)
            link.close()
        return True

    def _release_all(self, release: Release, source: Link | None) -> None:
        packed = wire.pack_release(release)
        for link in [it for it in self._members.values() if it is not source]:
            try:
                link.send(packed)
            except OSError:
                link.shut()

    def _refused(self, report: Report) -> None:
        self._send(self._admission.refuse(report.operation_id, report.verdict))

    def _relayed(self, relay: Relay) -> None:
        if relay.target == self.ranks[0]:
            super()._relayed(relay)
            return
        link = self._members.get(self.ranks.index(relay.target)) if relay.target in self.ranks else None
        # A rank that cannot be reached is lost, and ends the generation.
        if link is not None:
            try:
                link.send(wire.pack_relay(relay))
            except OSError as error:
                self._broken(link, error)

    def _send(self, replies: Sequence[Reply]) -> None:
        # The others first: this rank's lane needs no frame.
        for reply in replies:
            link = self._members.get(reply.rank_in_group)
            if link is not None:
                try:
                    link.send(self._pack(reply))
                except OSError as error:
                    self._broken(link, error)
        for reply in replies:
            if reply.rank_in_group == 0:
                arrival = reply.arrival
                settled = self._settle(arrival.sequence, arrival.operation_id, reply.verdict)
                if settled and not self.turn.is_mine():
                    self._wake_lane()

    def _pack(self, reply: Reply) -> bytes:
        if reply.verdict is not GO:
            return wire.pack_reply(self.group, reply)
        # Arrivals that agree are equal, and one frame answers all of them.
        arrival, go = reply.arrival, self._go
        if go is None or (arrival is not go[0] and arrival[:2] != go[0][:2]):
            go = self._go = arrival, wire.pack_reply(self.group, reply)
        return go[1]
