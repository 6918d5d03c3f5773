"""Where a leader receives its members."""

from __future__ import annotations

import pytest

from rankbridge_server.core.admission.admission import Arrival, Notice, Reply, Ruling, Straggling
from rankbridge_server.links.desk import Desk

BARRIER = Arrival(0, "", "barrier", 10.0)


def desk() -> tuple[Desk, list[tuple[int, str, Reply]]]:
    sent: list[tuple[int, str, Reply]] = []
    return Desk(lambda *reply: sent.append(reply), lambda *_: None), sent


def test_replies_go_to_ranks_of_the_gang() -> None:
    it, sent = desk()
    it.lead("tp", [5, 3])
    it.arrive(3, "tp", BARRIER)
    it.arrive(5, "tp", BARRIER)
    assert [(rank, group, reply.verdict.ruling) for rank, group, reply in sent] == [
        (3, "tp", Ruling.GO),
        (5, "tp", Ruling.GO),
    ]


def test_an_arrival_before_its_group_waits_for_it() -> None:
    it, sent = desk()
    it.arrive(3, "tp", BARRIER)
    assert sent == []
    it.lead("tp", [3])
    assert [rank for rank, _, _ in sent] == [3]


def test_a_rank_that_is_no_member_is_refused() -> None:
    it, _ = desk()
    it.lead("tp", [5, 3])
    with pytest.raises(ValueError, match="rank 4 is not a member"):
        it.arrive(4, "tp", BARRIER)


def test_what_is_overdue_is_ruled_on() -> None:
    it, sent = desk()
    it.lead("tp", [0, 1])
    it.lead("dp", [0, 1])
    it.arrive(0, "tp", Arrival(0, "", "barrier", 0.0))
    later = it.arrive(0, "dp", BARRIER)
    assert it.expire() == later
    assert [(group, reply.verdict.ruling) for _, group, reply in sent] == [("tp", Ruling.PEER_MISSING)]


def test_a_group_that_was_left_rules_no_more() -> None:
    it, sent = desk()
    it.lead("tp", [0, 1])
    it.arrive(0, "tp", Arrival(0, "", "barrier", 0.0))
    it.leave("tp")
    assert it.expire() is None
    assert sent == []


def test_who_waits_for_a_group_that_comes_late_is_kept_waiting_from_its_arrival() -> None:
    told: list[tuple[str, tuple[int, ...], Notice]] = []
    it = Desk(
        lambda *_: None,
        lambda *_: None,
        lambda group, ranks, notice: told.append((group, tuple(ranks), notice)),
        patience=0.0,
    )
    early = it.arrive(3, "tp", BARRIER)
    assert early is not None
    due = it.lead("tp", [5, 3])
    assert due is not None
    assert due == pytest.approx(early - BARRIER.timeout)
    assert it.expire() == pytest.approx(early)
    [(group, ranks, notice)] = told
    assert (group, ranks) == ("tp", (5, 3))
    assert isinstance(notice, Straggling)
    assert notice.after == (None, 0.0)
