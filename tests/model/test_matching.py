"""The matching of sends and receives under random posts, recalls and clocks: what must hold whatever comes."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from tests.model.settings import PURE

from rankbridge_server.core.admission.admission import Ruling
from rankbridge_server.core.admission.matching import Answer, Matching, Post, Side

SIZE = 3
PLACES = st.integers(0, SIZE - 1)
SPECS = st.sampled_from(["", "float32[2]", "float32[3]"])


@dataclass(frozen=True)
class Waiting:
    """A post that has no answer yet."""

    place: int
    post: Post
    due: float


def fit(one: Waiting, other: Waiting) -> bool:
    """Whether one is the other end of the other, whatever it carries."""
    send, recv = (one, other) if one.post.side is Side.SEND else (other, one)
    return (
        (send.post.side, recv.post.side) == (Side.SEND, Side.RECV)
        and send.post.peer == recv.place
        and recv.post.peer in (None, send.place)
        and (send.post.tag, send.post.channel) == (recv.post.tag, recv.post.channel)
    )


class MatchingMachine(RuleBasedStateMachine):
    """One group's matching, and what its members know of it."""

    def __init__(self) -> None:
        super().__init__()
        self.matching = Matching(SIZE)
        self.waiting: list[Waiting] = []
        self.now = 0.0
        self.number = 0
        self.transfers: set[int] = set()

    @rule(
        place=PLACES,
        peer=st.none() | PLACES,
        send=st.booleans(),
        tag=st.integers(0, 1),
        channel=st.sampled_from(["", "queue"]),
        spec=SPECS,
        timeout=st.sampled_from([1.0, 3.0, 100.0]),
    )
    def post(
        self, place: int, peer: int | None, send: bool, tag: int, channel: str, spec: str, timeout: float
    ) -> None:
        """Somebody wants to send or to receive; whoever fits and came first is met."""
        if peer == place or (send and peer is None):
            return
        self.number += 1
        side = Side.SEND if send else Side.RECV
        payload = b"%d" % self.number if send else b""
        post = Post(self.number, side, peer, tag, "tensor", spec, timeout, payload, channel)
        mine = Waiting(place, post, self.now + timeout)
        answers = self.matching.post(place, post, self.now)
        others = [other for other in self.waiting if fit(mine, other)]
        if not others:
            assert answers == []
            self.waiting.append(mine)
            return
        self.waiting.remove(others[0])
        self._met(mine, others[0], answers)

    def _met(self, mine: Waiting, other: Waiting, answers: list[Answer]) -> None:
        send, recv = (mine, other) if mine.post.side is Side.SEND else (other, mine)
        assert [answer[:2] for answer in answers] == [
            (send.place, send.post.number),
            (recv.place, recv.post.number),
        ]
        here, there = (answer.match for answer in answers)
        assert (here.peer, there.peer) == (recv.place, send.place)
        assert here.ruling is there.ruling
        if recv.post.spec in ("", send.post.spec):
            assert (here.ruling, here.transfer) == (Ruling.GO, there.transfer)
            assert here.transfer not in self.transfers
            self.transfers.add(here.transfer)
            assert there.payload == send.post.payload
            assert here.theirs == there.theirs == ""
        else:
            assert (here.theirs, there.theirs) == (str(recv.post), str(send.post))
            assert here.ruling is Ruling.MISMATCH

    @rule(data=st.data())
    def recall(self, data: st.DataObject) -> None:
        """Somebody wants a post back that waits, or that was answered, or that is another's."""
        place, number = data.draw(PLACES), data.draw(st.integers(0, self.number))
        mine = [it for it in self.waiting if (it.place, it.post.number) == (place, number)]
        answers = self.matching.recall(place, number)
        assert [(*answer[:2], answer.match.ruling) for answer in answers] == [
            (it.place, it.post.number, Ruling.WITHDRAWN) for it in mine
        ]
        self.waiting = [it for it in self.waiting if it not in mine]

    @rule(seconds=st.sampled_from([0.0, 0.5, 1.0, 2.0, 50.0]))
    def wait(self, seconds: float) -> None:
        """Time passes."""
        self.now += seconds
        over = [it for it in self.waiting if it.due <= self.now]
        answers = self.matching.expire(self.now)
        assert [(*answer[:2], answer.match.ruling) for answer in answers] == [
            (it.place, it.post.number, Ruling.PEER_MISSING) for it in over
        ]
        self.waiting = [it for it in self.waiting if it not in over]

    @invariant()
    def deadline_is_the_earliest(self) -> None:
        """Whoever drives it wakes in time, and never for nothing."""
        assert self.matching.deadline == min((it.due for it in self.waiting), default=None)


TestMatching = MatchingMachine.TestCase
TestMatching.settings = PURE
