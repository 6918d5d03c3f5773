"""Links of ranks in one process, and what the leader of a group does for its members over them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import pytest
from tests.support.proc import open_files
from tests.support.waiting import until

from rankbridge_server.core.activity import Activity, Doing
from rankbridge_server.core.admission.admission import GO, Arrival, Notice, Ruling, Straggling, Verdict
from rankbridge_server.core.admission.matching import Match, Post, Side
from rankbridge_server.core.links import Ended, Links
from rankbridge_server.links.pairs import PairLinkMaker
from rankbridge_server.links.sockets import SocketLinks

BARRIER = Arrival(0, "", "barrier", 60.0)
SOON = BARRIER._replace(timeout=0.05)
TIMEOUT_S = 60.0


def idle_for(seconds: float) -> Callable[[str], Activity]:
    return lambda group: Activity(doing=Doing.IDLE, seconds=seconds)


class Ranks:
    """Started links of ranks 0, 1, ... in one generation."""

    def __init__(self, size: int, maker: PairLinkMaker | None = None, generation: int = 1) -> None:
        maker = maker or PairLinkMaker()
        self.links = [maker(generation, rank) for rank in range(size)]
        self.ended: list[tuple[int, Ended]] = []
        self.noticed: list[tuple[str, tuple[int, ...], Notice]] = []
        self._threads = ThreadPoolExecutor(size + 4)
        addresses = {at: to.address for at, to in enumerate(self.links)}
        for rank, it in enumerate(self.links):
            over = self._over(rank, it)
            it.start(addresses, b"secret", over, lambda message: None, self._noticed, idle_for(rank))

    def _noticed(self, group: str, ranks: Sequence[int], notice: Notice) -> None:
        self.noticed.append((group, tuple(ranks), notice))

    def _over(self, rank: int, links: Links) -> Callable[[Ended], None]:
        def over(ended: Ended) -> None:
            # As a rank does that learns of it.
            self.ended.append((rank, ended))
            links.end(ended)

        return over

    def add(self, group: str, ranks: Sequence[int]) -> None:
        joining = [self.begin_to_add(rank, group, ranks) for rank in ranks]
        for it in joining:
            it.result(TIMEOUT_S)

    def begin_to_add(self, rank: int, group: str, ranks: Sequence[int]) -> Future[None]:
        return self._threads.submit(self.links[rank].add_group, group, ranks, TIMEOUT_S)

    def admit(self, rank: int, group: str, arrival: Arrival = BARRIER) -> Future[Verdict]:
        """Come, on a thread of its own; returns once the leader is on its way to know."""
        arrived = threading.Event()
        it = self._threads.submit(self.links[rank].group(group).admit, arrival, arrived.set, TIMEOUT_S)
        assert arrived.wait(TIMEOUT_S)
        return it

    def close(self) -> None:
        for it in self.links:
            it.end(Ended(0, False, "the test is over"))
        self._threads.shutdown()


@pytest.fixture
def four() -> Iterator[Ranks]:
    it = Ranks(4)
    yield it
    it.close()


def rulings(verdicts: Sequence[Future[Verdict]]) -> list[Ruling]:
    return [it.result(TIMEOUT_S).ruling for it in verdicts]


def test_members_are_ruled_on_by_their_place_in_the_group(four: Ranks) -> None:
    four.add("tp", [3, 1])
    four.add("dp", [1, 3, 0])
    verdicts = [four.admit(1, "tp"), four.admit(3, "dp", SOON), four.admit(3, "tp")]
    assert verdicts[0].result(TIMEOUT_S) == verdicts[2].result(TIMEOUT_S) == GO
    missing = verdicts[1].result(TIMEOUT_S)
    assert missing.ruling is Ruling.PEER_MISSING
    assert [(it.rank_in_group, it.arrival is not None) for it in missing.members] == [
        (0, False),
        (1, True),
        (2, False),
    ]


def test_a_member_that_is_quicker_than_its_leader_waits_for_it(four: Ranks) -> None:
    early = four.begin_to_add(3, "tp", [2, 3])
    leader = four.links[2]
    assert isinstance(leader, SocketLinks)
    until(lambda: any(it.group == "tp" for it in list(leader._strangers.values())))
    assert not early.done()
    four.begin_to_add(2, "tp", [2, 3]).result(TIMEOUT_S)
    early.result(TIMEOUT_S)
    assert rulings([four.admit(3, "tp"), four.admit(2, "tp")]) == [Ruling.GO, Ruling.GO]


def test_a_rank_that_is_no_member_is_shown_out(four: Ranks) -> None:
    four.add("tp", [2, 3])
    with pytest.raises(ConnectionError, match="no link with rank 2"):
        four.begin_to_add(1, "tp", [2, 1]).result(TIMEOUT_S)
    assert rulings([four.admit(3, "tp"), four.admit(2, "tp")]) == [Ruling.GO, Ruling.GO]


def test_what_is_overdue_in_one_group_is_nothing_to_another(four: Ranks) -> None:
    four.add("tp", [0, 1])
    four.add("dp", [0, 1])
    patient = four.admit(1, "dp")
    assert rulings([four.admit(1, "tp", SOON)]) == [Ruling.PEER_MISSING]
    assert not patient.done()
    assert rulings([four.admit(0, "dp"), patient]) == [Ruling.GO, Ruling.GO]


@pytest.mark.parametrize("waiting", [0, 1])
@pytest.mark.parametrize("removing", [0, 1])
def test_who_waits_in_a_group_that_is_taken_away_waits_no_longer(
    four: Ranks, waiting: int, removing: int
) -> None:
    four.add("tp", [0, 1])
    verdict = four.admit(waiting, "tp")
    four.links[removing].remove_group("tp")
    with pytest.raises(ConnectionError):
        verdict.result(TIMEOUT_S)
    assert not four.ended
    with pytest.raises(ConnectionError, match="no links of group 'tp'"):
        four.links[removing].group("tp")
    # The other side has heard of it.
    four.links[1 - removing].remove_group("tp")
    four.add("tp", [0, 1])
    assert rulings([four.admit(0, "tp"), four.admit(1, "tp")]) == [Ruling.GO, Ruling.GO]


def test_who_keeps_others_waiting_is_named_by_rank() -> None:
    it = Ranks(4, PairLinkMaker(patience=0.0))
    it.add("tp", [3, 1])
    verdict = it.admit(1, "tp")
    until(lambda: bool(it.noticed))
    assert rulings([it.admit(3, "tp"), verdict]) == [Ruling.GO, Ruling.GO]
    it.close()
    (first, *_) = it.noticed
    group, ranks, notice = first
    assert (group, ranks) == ("tp", (3, 1))
    assert isinstance(notice, Straggling)
    assert notice.after == (None, 0.0)


def test_the_end_of_a_generation_comes_to_each_of_many_ranks() -> None:
    size, maker = 64, PairLinkMaker()
    ranks, others = Ranks(size, maker), Ranks(2, maker, generation=2)
    ranks.add("world", range(size))
    others.add("world", range(2))
    ended = Ended(rank=7, lost=False, reason="it was asked to")
    ranks.links[7].end(ended)
    until(lambda: len(ranks.ended) == size - 1)
    assert {rank for rank, _ in ranks.ended} == set(range(size)) - {7}
    assert {what for _, what in ranks.ended} == {ended}
    assert rulings([others.admit(0, "world"), others.admit(1, "world")]) == [Ruling.GO, Ruling.GO]
    others.close()
    ranks.close()


def test_whose_links_have_ended_cannot_be_dialled_and_leave_nothing_behind() -> None:
    before = set(open_files())
    ranks = Ranks(2)
    dialling = ranks.begin_to_add(1, "tp", [0, 1])
    ranks.links[0].end(Ended(0, False, "early"))
    with pytest.raises(ConnectionError, match="no link with rank 0"):
        dialling.result(TIMEOUT_S)
    with pytest.raises(ConnectionError, match="no link with rank 0"):
        ranks.links[1].add_group("tp", [0, 1], TIMEOUT_S)
    ranks.close()
    until(lambda: not set(open_files()) - before)


def of(number: int, side: Side, peer: int) -> Post:
    """A post of one float32."""
    return Post(number, side, peer, 0, "1 element of float32", "", TIMEOUT_S)


def test_a_thread_that_waits_for_a_match_reads_the_links_itself(four: Ranks) -> None:
    four.add("pair", [0, 1])
    receiver, sender = (four.links[it].group("pair") for it in (0, 1))
    matches: dict[str, Match | None] = {}
    receiver.post(of(1, Side.RECV, 1), lambda it: matches.update(receiver=it), waits_next=True)
    sender.post(of(1, Side.SEND, 0), lambda it: matches.update(sender=it), waits_next=True)
    assert receiver.wait(lambda: "receiver" in matches, TIMEOUT_S)
    assert sender.wait(lambda: "sender" in matches, TIMEOUT_S)
    for match in matches.values():
        assert match is not None
        assert match.ruling is Ruling.GO


def test_a_wait_ends_after_its_patience(four: Ranks) -> None:
    four.add("pair", [0, 1])
    for it in (0, 1):
        assert four.links[it].group("pair").wait(lambda: False, 0.01)


def test_a_leader_that_waits_for_a_match_hears_that_another_thread_withdraws_it(four: Ranks) -> None:
    four.add("pair", [0, 1])
    receiver = four.links[0].group("pair")
    matches: list[Match | None] = []
    receiver.post(of(1, Side.RECV, 1), matches.append, waits_next=True)
    asked = threading.Event()

    def is_over() -> bool:
        asked.set()
        return bool(matches)

    waiting = ThreadPoolExecutor(1)
    over = waiting.submit(receiver.wait, is_over)
    assert asked.wait(TIMEOUT_S)
    receiver.recall(1)
    assert over.result(TIMEOUT_S)
    waiting.shutdown()
    assert matches == [Match(Ruling.WITHDRAWN)]


def test_a_post_is_answered_while_nobody_waits(four: Ranks) -> None:
    four.add("pair", [0, 1])
    receiver, sender = (four.links[it].group("pair") for it in (0, 1))
    answered = [threading.Event(), threading.Event()]
    # Each has waited twice in short order, and so left its links.
    for _ in range(2):
        for it in (receiver, sender):
            it.wait(lambda: True)
    receiver.post(of(1, Side.RECV, 1), lambda _: answered[0].set())
    sender.post(of(1, Side.SEND, 0), lambda _: answered[1].set())
    assert all(it.wait(TIMEOUT_S) for it in answered)
