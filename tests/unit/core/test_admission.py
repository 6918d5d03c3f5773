"""The leader's rulings."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from rankbridge_server.core.admission.admission import (
    REMEMBERED_FAILURES,
    Admission,
    Arrival,
    Failed,
    Member,
    Notice,
    Reply,
    Ruling,
    Straggling,
    Verdict,
)


def arrival(
    contract: str = "barrier", sequence: int = 0, operation_id: str = "", payload: bytes = b""
) -> Arrival:
    return Arrival(sequence, operation_id, contract, 10.0, payload)


def rulings(replies: list[Reply]) -> dict[int, Ruling]:
    return {reply.rank_in_group: reply.verdict.ruling for reply in replies}


def test_nobody_goes_before_all_have_come() -> None:
    admission = Admission(3)
    assert admission.arrive(1, arrival(), now=0) == []
    assert admission.arrive(0, arrival(), now=0) == []
    assert rulings(admission.arrive(2, arrival(), now=0)) == dict.fromkeys(range(3), Ruling.GO)


def test_a_group_of_one_goes_at_once() -> None:
    assert rulings(Admission(1).arrive(0, arrival(), now=0)) == {0: Ruling.GO}


def test_go_carries_everyones_payload_in_group_order() -> None:
    admission = Admission(2)
    admission.arrive(1, arrival(payload=b"one"), now=0)
    replies = admission.arrive(0, arrival(payload=b"zero"), now=0)
    assert [reply.verdict.payloads for reply in replies] == [(b"zero", b"one")] * 2


def test_go_without_payloads_carries_none() -> None:
    assert Admission(1).arrive(0, arrival(), now=0)[0].verdict.payloads == ()


@pytest.mark.parametrize(
    "other",
    [
        arrival("all_reduce op=max"),
        arrival("barrier", sequence=1),
        arrival("barrier", operation_id="b"),
    ],
    ids=["contract", "sequence", "operation id"],
)
def test_members_that_differ_all_get_mismatch_with_every_side(other: Arrival) -> None:
    admission = Admission(3)
    mine = arrival("barrier", operation_id="a")
    admission.arrive(0, mine, now=0)
    admission.arrive(1, mine, now=0)
    replies = admission.arrive(2, other, now=0)
    assert rulings(replies) == dict.fromkeys(range(3), Ruling.MISMATCH)
    assert [member.arrival for member in replies[0].verdict.members] == [str(mine), str(mine), str(other)]


def test_an_arrival_without_id_agrees_with_any_id() -> None:
    admission = Admission(2)
    admission.arrive(0, arrival(operation_id="a"), now=0)
    assert rulings(admission.arrive(1, arrival(), now=0)) == {0: Ruling.GO, 1: Ruling.GO}


def test_those_who_came_learn_at_the_earliest_timeout_who_did_not() -> None:
    admission = Admission(3)
    admission.arrive(0, Arrival(0, "", "barrier", 5.0), now=100)
    admission.arrive(2, Arrival(0, "", "barrier", 1.0), now=101)
    assert admission.deadline == 102
    assert admission.expire(101.9) == []
    replies = admission.expire(102)
    assert rulings(replies) == {0: Ruling.PEER_MISSING, 2: Ruling.PEER_MISSING}
    assert [member.rank_in_group for member in replies[0].verdict.members if member.arrival is None] == [1]
    assert admission.deadline is None


def test_members_that_differ_while_another_is_missing_get_mismatch() -> None:
    admission = Admission(3)
    admission.arrive(0, arrival("barrier"), now=0)
    admission.arrive(1, arrival("gather"), now=0)
    assert rulings(admission.expire(10)) == {0: Ruling.MISMATCH, 1: Ruling.MISMATCH}


def test_a_late_member_gets_the_verdict_of_the_round_it_missed() -> None:
    admission = Admission(2)
    admission.arrive(0, arrival(operation_id="a"), now=0)
    admission.expire(10)
    assert rulings(admission.arrive(1, arrival(operation_id="a"), now=11)) == {1: Ruling.PEER_MISSING}
    admission.arrive(0, arrival(operation_id="b"), now=12)
    assert rulings(admission.arrive(1, arrival(operation_id="b"), now=12)) == {0: Ruling.GO, 1: Ruling.GO}


def test_failures_are_remembered_for_a_bounded_number_of_operations() -> None:
    admission = Admission(2)
    for number in range(REMEMBERED_FAILURES + 1):
        admission.arrive(0, arrival(operation_id=str(number)), now=0)
        admission.expire(10)
    assert admission.arrive(1, arrival(operation_id="0"), now=11) == []


def test_a_member_that_comes_twice_is_refused() -> None:
    admission = Admission(2)
    admission.arrive(0, arrival(), now=0)
    with pytest.raises(ValueError, match="came twice"):
        admission.arrive(0, arrival(), now=0)


@pytest.mark.parametrize("rank_in_group", [-1, 2])
def test_a_stranger_is_refused(rank_in_group: int) -> None:
    with pytest.raises(ValueError, match="not in a group of 2"):
        Admission(2).arrive(rank_in_group, arrival(), now=0)


@given(
    order=st.permutations(range(4)),
    contracts=st.lists(st.sampled_from(["a", "b"]), min_size=4, max_size=4),
    came=st.integers(1, 4),
)
def test_every_arrival_is_answered_once_and_all_alike(
    order: list[int], contracts: list[str], came: int
) -> None:
    admission = Admission(4)
    replies: list[Reply] = []
    for rank in order[:came]:
        assert not replies
        replies = admission.arrive(rank, arrival(contracts[rank]), now=0)
    replies = replies or admission.expire(10)
    arrived = {contracts[rank] for rank in order[:came]}
    expected = Ruling.MISMATCH if len(arrived) > 1 else Ruling.GO if came == 4 else Ruling.PEER_MISSING
    assert rulings(replies) == dict.fromkeys(order[:came], expected)
    assert admission.expire(1000) == []


def test_stragglers_are_told_of_while_they_are_missing_and_once_more_when_they_come() -> None:
    notices: list[Notice] = []
    admission = Admission(3, 2.0, notices.append)
    first = arrival("all_reduce sum", operation_id="")
    admission.arrive(1, first, now=1)
    admission.arrive(0, arrival("all_reduce sum", operation_id="a"), now=1.5)
    assert admission.deadline == 3
    assert admission.expire(2.5) == []
    assert len(notices) == 0
    assert admission.expire(3) == []
    assert notices == [Straggling(first, "a", (0.5, 0, None), 2)]
    assert admission.deadline == 11
    assert admission.expire(5) == []
    assert len(notices) == 1
    assert rulings(admission.arrive(2, arrival("all_reduce sum"), now=6)) == dict.fromkeys(
        range(3), Ruling.GO
    )
    assert notices[1:] == [Straggling(first, "a", (0.5, 0, 5), 5)]


def test_each_round_has_stragglers_of_its_own() -> None:
    notices: list[Notice] = []
    admission = Admission(2, 2.0, notices.append)
    for start in (0, 100):
        admission.arrive(0, arrival(), now=start)
        admission.expire(start + 2)
        admission.arrive(1, arrival(), now=start + 3)
    admission.arrive(0, arrival(), now=200)
    admission.arrive(1, arrival(), now=201)
    assert [isinstance(it, Straggling) and it.after for it in notices] == [(0, None), (0, 3)] * 2


def test_who_leaves_is_no_longer_kept_waiting() -> None:
    notices: list[Notice] = []
    admission = Admission(3, 2.0, notices.append)
    admission.arrive(0, arrival(), now=0)
    admission.arrive(1, arrival(), now=1)
    admission.withdraw(0, 0, "")
    since_the_second = admission.deadline
    admission.withdraw(1, 0, "")
    assert (since_the_second, admission.deadline) == (3, None)
    assert notices == []


def test_a_round_that_fails_is_told_once_with_the_first_member_who_came() -> None:
    notices: list[Notice] = []
    admission = Admission(3, on_notice=notices.append)
    admission.arrive(2, arrival(operation_id="a"), now=0)
    admission.arrive(1, arrival(), now=1)
    admission.expire(10)
    admission.arrive(0, arrival(operation_id="a"), now=11)
    [failed] = notices
    assert isinstance(failed, Failed)
    assert (failed.rank_in_group, failed.arrival, failed.operation_id) == (1, arrival(), "a")
    assert failed.verdict.ruling is Ruling.PEER_MISSING


REFUSED = Verdict(Ruling.REFUSED, (Member(1, "no ref"),), refusal="UNKNOWN_REF")


def test_what_is_refused_is_told_to_who_came_and_to_who_comes_and_nobody_else() -> None:
    admission = Admission(4)
    admission.arrive(0, arrival(operation_id="a"), now=0)
    admission.arrive(2, arrival(operation_id="b"), now=1)
    assert [(it.rank_in_group, it.verdict) for it in admission.refuse("a", REFUSED)] == [(0, REFUSED)]
    assert admission.deadline == 11
    assert [it.verdict for it in admission.arrive(3, arrival(operation_id="a"), now=2)] == [REFUSED]
    assert [it.verdict for it in admission.arrive(0, arrival(operation_id="a"), now=2)] == [REFUSED]
    assert rulings(admission.expire(11)) == {2: Ruling.PEER_MISSING}


def test_the_first_verdict_on_an_operation_stays() -> None:
    admission = Admission(2)
    admission.arrive(0, arrival(operation_id="a"), now=0)
    assert rulings(admission.expire(10)) == {0: Ruling.PEER_MISSING}
    assert admission.refuse("a", REFUSED) == []
    assert rulings(admission.arrive(1, arrival(operation_id="a"), now=11)) == {1: Ruling.PEER_MISSING}


def test_what_goes_cannot_be_refused_also_in_another_round_of_its_own() -> None:
    admission = Admission(2)
    for number in range(2):
        admission.arrive(0, arrival(sequence=number, operation_id="a"), now=0)
        assert admission.refuse("b", REFUSED) == []
        replies = admission.arrive(1, arrival(sequence=number, operation_id="a"), now=0)
        assert rulings(replies) == dict.fromkeys(range(2), Ruling.GO)
        assert admission.refuse("a", REFUSED) == []


def refused_by(place: int) -> Verdict:
    return Verdict(Ruling.REFUSED, (Member(place, "no ref"),), refusal="UNKNOWN_REF")


def test_a_refusal_without_an_id_is_nobodys() -> None:
    admission = Admission(2)
    admission.arrive(0, arrival(), now=0)
    assert admission.refuse("", REFUSED) == []
    assert rulings(admission.arrive(1, arrival(), now=0)) == dict.fromkeys(range(2), Ruling.GO)


def test_who_refused_and_comes_before_the_others_has_mended_it() -> None:
    admission = Admission(3)
    assert admission.refuse("a", refused_by(1)) == []
    assert [admission.arrive(place, arrival(operation_id="a"), now=1) for place in (1, 0)] == [[], []]
    replies = admission.arrive(2, arrival(operation_id="a"), now=1)
    assert rulings(replies) == dict.fromkeys(range(3), Ruling.GO)


def test_who_refused_and_comes_after_others_have_learned_of_it_is_ruled_as_they_were() -> None:
    admission = Admission(3)
    admission.refuse("a", refused_by(1))
    for place in (0, 1, 2):
        replies = admission.arrive(place, arrival(operation_id="a"), now=1)
        assert [it.verdict for it in replies] == [refused_by(1)]


def test_who_has_called_it_anew_is_released_when_anothers_refusal_becomes_the_verdict_of_all() -> None:
    admission = Admission(3)
    for place in (0, 1):
        assert admission.refuse("a", refused_by(place)) == []
    assert admission.arrive(0, arrival(operation_id="a"), now=0) == []
    replies = admission.arrive(2, arrival(operation_id="a"), now=1)
    assert [(it.rank_in_group, it.verdict) for it in replies] == [(0, refused_by(1)), (2, refused_by(1))]
    assert admission.deadline is None


@pytest.mark.parametrize("late", [1, 2])
def test_what_all_refuse_may_be_called_again_however_late_refusals_come(late: int) -> None:
    admission = Admission(3)
    for place in range(late):
        assert admission.refuse("a", refused_by(place)) == []
    assert admission.arrive(0, arrival(operation_id="a"), now=1) == []
    for place in range(late, 3):
        assert admission.refuse("a", refused_by(place)) == []
    assert admission.arrive(1, arrival(operation_id="a"), now=1) == []
    replies = admission.arrive(2, arrival(operation_id="a"), now=1)
    assert rulings(replies) == dict.fromkeys(range(3), Ruling.GO)


def test_who_refuses_again_refuses_those_who_have_called_again() -> None:
    admission = Admission(2)
    for place in (0, 1):
        admission.refuse("a", refused_by(place))
    admission.arrive(0, arrival(operation_id="a"), now=1)
    assert rulings(admission.refuse("a", refused_by(1))) == {0: Ruling.REFUSED}


def test_so_many_refusals_are_remembered_and_no_more() -> None:
    admission = Admission(2)
    for number in range(REMEMBERED_FAILURES + 1):
        admission.refuse(str(number), REFUSED)
    assert admission.arrive(0, arrival(operation_id="0"), now=0) == []
    admission.withdraw(0, 0, "0")
    assert rulings(admission.arrive(0, arrival(operation_id="1"), now=0)) == {0: Ruling.REFUSED}
