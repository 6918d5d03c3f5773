"""Role layouts as plans: properties of both assignments, and what is refused."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, strategies as st

from rankbridge import InvalidArgumentError, Layout


def assert_whole(layout: Layout) -> None:
    """Every rank has one role, and what belongs together agrees."""
    roles = [layout.role(rank) for rank in range(len(layout))]
    assert sorted((*layout.trainers, *layout.buffers, *layout.coordinators)) == list(range(len(layout)))
    assert sorted(itertools.chain(*layout.teams)) == sorted(layout.trainers)
    assert tuple(itertools.chain(*layout.agent_groups)) == layout.trainers
    assert len({len(group) for group in layout.agent_groups}) == 1
    for rank, role in enumerate(roles):
        buffer = layout.buffer_of(rank)
        assert (buffer is not None) == (role == "trainer" and bool(layout.buffers))
        if buffer is not None:
            assert rank in layout.trainers_of(buffer)
        assert bool(layout.trainers_of(rank)) == (role == "buffer")
        number = layout.agent_group_of(rank)
        assert (number is not None) == (role == "trainer")
        if number is not None:
            assert rank in layout.agent_group(number)
    names = [group.name for group in layout.groups()]
    assert len(set(names)) == len(names)


@given(st.integers(1, 12), st.integers(0, 6), st.integers(1, 4), st.integers(0, 3))
def test_blocks_are_whole_or_refused(size: int, buffers: int, agent_groups: int, coordinators: int) -> None:
    training = size - buffers - coordinators
    fits = training >= max(1, buffers) and training % agent_groups == 0
    try:
        layout = Layout.in_blocks(size, buffers=buffers, agent_groups=agent_groups, coordinators=coordinators)
    except InvalidArgumentError:
        assert not fits
        return
    assert fits
    assert_whole(layout)
    assert layout.trainers == tuple(range(training))
    assert layout.warnings == ()
    users = [len(layout.trainers_of(buffer)) for buffer in layout.buffers]
    assert not users or max(users) - min(users) <= 1


@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=12), st.integers(0, 4), st.integers(0, 2))
def test_layouts_by_host_are_whole_and_warn_of_what_crosses_hosts(
    hosts: list[str], buffers: int, coordinators: int
) -> None:
    try:
        layout = Layout.by_host(hosts, buffers=buffers, coordinators=coordinators)
    except InvalidArgumentError:
        return
    assert_whole(layout)
    assert len(layout.buffers) == buffers
    crossing = [
        buffer
        for buffer in layout.buffers
        if {hosts[rank] for rank in layout.trainers_of(buffer)} != {hosts[buffer]}
    ]
    spanning = [group for group in layout.agent_groups if len({hosts[rank] for rank in group}) > 1]
    assert len(layout.warnings) == len(crossing) + len(spanning)
    working = set(hosts[: len(hosts) - coordinators])
    if buffers % len(working) == 0:
        assert not crossing


def test_groups_are_named_after_roles() -> None:
    layout = Layout.in_blocks(6, buffers=2, agent_groups=2, name="roles")
    assert [(group.name, group.ranks) for group in layout.groups()] == [
        ("roles/train", (0, 1, 2, 3)),
        ("roles/buffer", (4, 5)),
        ("roles/agent/0", (0, 1)),
        ("roles/agent/1", (2, 3)),
    ]
    assert Layout.in_blocks(1).buffer_group is None


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        ({"buffers": 3}, "too few ranks are left to train; expected 3 or more of 4, got 1"),
        ({"coordinators": 4}, "too few ranks are left to train"),
        ({"agent_groups": 3}, "equal agent groups; expected a multiple of 3 trainers, got 4"),
        ({"agent_groups": 0}, "1 agent group or more"),
        ({"buffers": -1}, "0 buffers or more"),
        ({"name": ""}, "a name"),
    ],
)
def test_numbers_that_do_not_fit_are_refused(numbers: dict[str, int], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        Layout.in_blocks(4, **numbers)  # type: ignore[arg-type]


def test_hosts_with_too_few_ranks_are_named() -> None:
    with pytest.raises(
        InvalidArgumentError, match="host 'b' has too few ranks for 1 team; expected 2 or more"
    ):
        Layout.by_host("aab", buffers=2)
    with pytest.raises(InvalidArgumentError, match="there are too few ranks for 3 teams"):
        Layout.by_host("aaabb", buffers=3)
    with pytest.raises(InvalidArgumentError, match="no rank is left to train"):
        Layout.by_host("ab", coordinators=2)


def test_questions_that_have_no_answer_are_refused() -> None:
    layout = Layout.in_blocks(2)
    for ask in (layout.role, layout.buffer_of, layout.trainers_of, layout.agent_group_of):
        with pytest.raises(InvalidArgumentError, match="rank 2 is not in it; expected 0 to 1"):
            ask(2)
    with pytest.raises(InvalidArgumentError, match="no such agent group"):
        layout.agent_group(1)
