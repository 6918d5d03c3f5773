"""How a leader brings sends and receives together."""

from __future__ import annotations

import pytest

from rankbridge_server.core.admission.admission import Member, Ruling
from rankbridge_server.core.admission.matching import Answer, Match, Matching, Post, Side


def send(number: int, dst: int, tag: int = 0, spec: str = "float32[2]", timeout: float = 10.0) -> Post:
    return Post(number, Side.SEND, dst, tag, "tensor", spec, timeout, b"manifest")


def recv(number: int, src: int | None, tag: int = 0, spec: str = "", timeout: float = 10.0) -> Post:
    return Post(number, Side.RECV, src, tag, "tensor", spec, timeout)


def met(answers: list[Answer]) -> list[tuple[int, int, Ruling, int, int]]:
    return [(place, number, match.ruling, match.transfer, match.peer) for place, number, match in answers]


GO = Ruling.GO


def test_either_end_may_come_first_and_both_get_one_number() -> None:
    it = Matching(2)
    assert it.post(0, send(1, 1), 0) == []
    first = it.post(1, recv(1, 0), 0)
    assert met(first) == [(0, 1, GO, 0, 1), (1, 1, GO, 0, 0)]
    assert [match.payload for _, _, match in first] == [b"", b"manifest"]
    assert it.post(1, recv(2, None), 0) == []
    assert met(it.post(0, send(2, 1), 0)) == [(0, 2, GO, 1, 1), (1, 2, GO, 1, 0)]
    assert it.deadline is None


def test_the_earliest_that_fits_is_met() -> None:
    it = Matching(3)
    for place, post in [(0, send(1, 2, tag=5)), (0, send(2, 2)), (1, send(1, 2)), (0, send(3, 2))]:
        assert it.post(place, post, 0) == []
    assert met(it.post(2, recv(1, 1), 0))[0][:2] == (1, 1)
    assert met(it.post(2, recv(2, None), 0))[0][:2] == (0, 2)
    assert met(it.post(2, recv(3, 0), 0))[0][:2] == (0, 3)
    assert it.post(2, recv(4, 0), 0) == []
    assert met(it.post(2, recv(5, None, tag=5), 0))[0][:2] == (0, 1)


def test_others_messages_are_not_touched() -> None:
    it = Matching(3)
    it.post(0, send(1, 1), 0)
    assert it.post(2, recv(1, 0), 0) == []
    assert it.post(1, recv(1, 2), 0) == []


def test_two_that_differ_fail_together_and_nobody_else() -> None:
    it = Matching(2)
    it.post(0, send(1, 1), 0)
    it.post(0, send(2, 1), 0)
    answers = it.post(1, recv(1, 0, spec="float32[3]"), 0)
    assert [(place, match.ruling) for place, _, match in answers] == [
        (0, Ruling.MISMATCH),
        (1, Ruling.MISMATCH),
    ]
    assert answers[0].match.theirs == "receive of tensor float32[3] from rank_in_group 0 tag=0"
    assert answers[1].match.theirs == "send of tensor float32[2] to rank_in_group 1 tag=0"
    assert met(it.post(1, recv(2, 0, spec="float32[2]"), 0))[0][:3] == (0, 2, GO)


def test_each_waits_for_its_own_time() -> None:
    it = Matching(2)
    it.post(0, send(1, 1, timeout=5), 0)
    it.post(0, send(2, 1, timeout=2), 1)
    assert it.deadline == 3
    assert it.expire(2.9) == []
    assert it.expire(3) == [Answer(0, 2, Match(Ruling.PEER_MISSING, missing=(Member(1, None),)))]
    assert it.deadline == 5
    assert met(it.post(1, recv(1, 0), 4))[0][:2] == (0, 1)


def test_who_may_have_been_the_other_end_is_named() -> None:
    it = Matching(4)
    it.post(1, recv(1, None, tag=7, timeout=1), 0)
    it.post(1, recv(2, 3, timeout=1), 0)
    # It has come, for something else.
    it.post(0, send(1, 1, tag=8), 0)
    assert [[member.rank_in_group for member in match.missing] for _, _, match in it.expire(1)] == [
        [0, 2, 3],
        [3],
    ]


def test_a_post_is_recalled_once_and_only_before_it_met() -> None:
    it = Matching(2)
    it.post(0, send(1, 1), 0)
    assert it.recall(1, 1) == []
    assert it.recall(0, 1) == [Answer(0, 1, Match(Ruling.WITHDRAWN))]
    assert it.recall(0, 1) == []
    it.post(0, send(2, 1), 0)
    it.post(1, recv(1, 0), 0)
    assert it.recall(0, 2) == []


@pytest.mark.parametrize(
    ("place", "post"), [(2, send(1, 0)), (0, send(1, 0)), (-1, recv(1, 0)), (1, recv(1, 1))]
)
def test_what_no_member_can_want_is_refused(place: int, post: Post) -> None:
    with pytest.raises(ValueError, match="rank_in_group"):
        Matching(2).post(place, post, 0)


def test_who_has_left_meets_nobody() -> None:
    matching = Matching(3)
    assert matching.post(1, send(1, dst=0), 0.0) == []
    assert matching.post(2, send(1, dst=0), 0.0) == []
    matching.forget(1)
    assert met(matching.post(0, recv(1, None), 1.0))[0][0] == 2
    assert matching.post(0, recv(2, 1), 1.0) == []
