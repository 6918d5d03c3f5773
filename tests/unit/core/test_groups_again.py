"""Names of groups that have ended, and of groups that exist, on the fake backend."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from tests.support.local_gang import LocalGang, a_call

from rankbridge_server.core.errors import BridgeError, ErrorCode, Phase
from rankbridge_server.core.groups.group import GroupView
from rankbridge_server.core.groups.operations import DestroyGroup, NewGroup, destroy_group, new_group
from rankbridge_server.core.operations.agreements import Barrier, barrier
from rankbridge_server.core.operations.gathers import AllGather, all_gather
from rankbridge_server.core.operations.outcome import Outcome
from rankbridge_server.core.refs.refs import Ref

SIZE = 4


@pytest.fixture
def gang() -> Iterator[LocalGang]:
    it = LocalGang(SIZE)
    yield it
    for rank in it.ranks:
        rank.close("the test is over")


def make(gang: LocalGang, *ranks: int, makers: str = "world") -> Sequence[Outcome | Exception]:
    """Every member of `makers` makes the group "pair"."""
    making = gang.ranks[0].describe().groups if makers == "world" else gang.ranks[1].describe().groups
    (members,) = [group.ranks for group in making if group.name == makers]
    return gang.run(
        new_group,
        [NewGroup("pair", ranks) if rank in members else None for rank in range(SIZE)],
        group=makers,
    )


def end(gang: LocalGang, *ranks: int) -> None:
    ended = gang.run(
        destroy_group, [DestroyGroup() if rank in ranks else None for rank in range(SIZE)], group="pair"
    )
    assert [type(it) for it in ended] == [GroupView] * len(ranks)


def places(made: Sequence[Outcome | Exception]) -> list[int | None]:
    assert all(isinstance(it, GroupView) for it in made), made
    return [it.rank_in_group for it in made if isinstance(it, GroupView)]


def known(gang: LocalGang) -> list[tuple[int, ...] | None]:
    """The ranks of "pair", as each rank knows them."""
    groups = [{group.name: group.ranks for group in rank.describe().groups} for rank in gang.ranks]
    return [it.get("pair") for it in groups]


def works(gang: LocalGang, *ranks: int) -> bool:
    """Whether "pair" is of these ranks in this order."""
    inputs = {rank: gang.full_on(rank, rank, (1,)) for rank in ranks}
    args = [AllGather(inputs[rank].id, 0) if rank in inputs else None for rank in range(SIZE)]
    gathered = gang.run(all_gather, args, group="pair")
    values = [gang.floats(it) if isinstance(it, Ref) else it for it in gathered]
    return values == [[float(rank) for rank in ranks]] * len(ranks)


def codes(outcomes: Sequence[Outcome | Exception]) -> list[tuple[ErrorCode, Phase, bool]]:
    failures = [it.failure for it in outcomes if isinstance(it, BridgeError)]
    assert len(failures) == len(outcomes), outcomes
    return [(failure.code, failure.phase, failure.indefinite) for failure in failures]


EXISTS = (ErrorCode.GROUP_EXISTS, Phase.ADMISSION, False)


@pytest.mark.parametrize("again", [(3, 1), (1, 3), (0, 2), (2, 1), (1,), (0, 1, 2, 3)])
def test_a_group_that_has_ended_is_made_again(gang: LocalGang, again: tuple[int, ...]) -> None:
    for _ in range(3):
        assert places(make(gang, 3, 1)) == [None, 1, None, 0]
        end(gang, 3, 1)
        made = make(gang, *again)
        assert places(made) == [again.index(rank) if rank in again else None for rank in range(SIZE)]
        assert known(gang) == [again] * SIZE
        assert works(gang, *again)
        end(gang, *again)


@pytest.mark.parametrize("again", [(3, 1), (0, 2), (0, 1, 2, 3)])
def test_the_name_of_a_group_that_exists_is_refused_to_all_at_once(
    gang: LocalGang, again: tuple[int, ...]
) -> None:
    make(gang, 3, 1)
    refused = make(gang, *again)
    assert codes(refused) == [EXISTS] * SIZE
    for it in refused:
        assert isinstance(it, BridgeError)
        assert [detail.rank for detail in it.failure.ranks] == [1, 3]
    assert known(gang) == [(3, 1)] * SIZE
    assert works(gang, 3, 1)
    assert gang.run(barrier, [Barrier()] * SIZE) == [None] * SIZE


def test_of_two_groups_of_one_name_that_are_made_one_behind_the_other_the_second_is_refused(
    gang: LocalGang,
) -> None:
    first, second = (
        [
            rank.submit(new_group, NewGroup("pair", ranks), a_call(operation_id=str(ranks)))
            for rank in gang.ranks
        ]
        for ranks in ((3, 1), (0, 2))
    )
    assert places([task.wait() for task in first]) == [None, 1, None, 0]
    for task in second:
        with pytest.raises(BridgeError) as refused:
            task.wait()
        assert codes([refused.value]) == [EXISTS]
    assert works(gang, 3, 1)


def test_the_members_of_a_group_make_one_of_a_name_that_one_of_them_knows_to_be_free(gang: LocalGang) -> None:
    assert places(gang.run(new_group, [NewGroup("half", (0, 1))] * SIZE)) == [0, 1, None, None]
    make(gang, 3, 1)
    assert codes(make(gang, 0, makers="half")) == [EXISTS] * 2
    end(gang, 3, 1)
    assert places(make(gang, 0, makers="half")) == [0, None]
    assert works(gang, 0)
    # Ranks 2 and 3 were not there: what rank 2 knows is of the first.
    assert known(gang) == [(0,), (0,), (3, 1), None]
    assert codes(make(gang, 2)) == [EXISTS] * SIZE


def test_ranks_of_which_none_can_tell_whether_a_group_has_ended_do_not_take_its_name(gang: LocalGang) -> None:
    assert places(gang.run(new_group, [NewGroup("half", (0, 1))] * SIZE)) == [0, 1, None, None]
    make(gang, 3, 2)
    assert codes(make(gang, 0, makers="half")) == [EXISTS] * 2
    assert works(gang, 3, 2)


def test_a_group_that_has_ended_is_not_there_in_the_next_generation(gang: LocalGang) -> None:
    make(gang, 3, 1)
    gang.form()
    assert known(gang) == [(3, 1)] * SIZE
    end(gang, 3, 1)
    gang.form()
    assert known(gang) == [None] * SIZE
    assert places(make(gang, 2, 0)) == [1, None, 0, None]
    gang.form()
    assert known(gang) == [(2, 0)] * SIZE
    assert works(gang, 2, 0)
