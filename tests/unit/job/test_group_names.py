"""Names of a job's groups, from what each of its ranks knows."""

from __future__ import annotations

from collections.abc import Mapping

from rankbridge_server.core.coordinator import GroupDescription
from rankbridge_server.core.limits import MAX_GROUPS
from rankbridge_server.job.group_names import FoundGroup, complete, named


def names(
    groups: list[FoundGroup], known: Mapping[str, tuple[int, ...]] | None = None
) -> dict[str, tuple[int, ...]]:
    return {it.name: it.ranks for it in named(groups, 4, known or {})}


def test_a_name_of_one_group_is_its_own() -> None:
    assert names([FoundGroup("1", "tp", (0, 1))]) == {"tp": (0, 1)}


def test_groups_of_one_name_are_numbered_by_their_ranks() -> None:
    groups = [FoundGroup("2", "dp", (1, 3)), FoundGroup("1", "dp", (0, 2))]
    assert names(groups) == {"dp/0": (0, 2), "dp/1": (1, 3)}


def test_groups_of_one_name_and_the_same_ranks_are_one() -> None:
    assert names([FoundGroup("1", "tp", (0, 1)), FoundGroup("2", "tp", (0, 1))]) == {"tp": (0, 1)}


def test_a_group_without_a_name_is_called_by_its_key_unless_another_has_its_ranks() -> None:
    groups = [FoundGroup("1", "", (0, 1)), FoundGroup("2", "", (1, 2)), FoundGroup("3", "tp", (0, 1))]
    assert names(groups) == {"group_2": (1, 2), "tp": (0, 1)}


def test_all_ranks_in_order_are_world_unless_somebody_has_named_them() -> None:
    everybody = (0, 1, 2, 3)
    assert names([FoundGroup("1", "", everybody), FoundGroup("2", "world", everybody)]) == {}
    assert names([FoundGroup("1", "all", everybody)]) == {"all": everybody}
    assert names([FoundGroup("1", "", everybody[::-1])]) == {"group_1": everybody[::-1]}


def test_names_that_are_known_stay_and_later_groups_get_the_next_numbers() -> None:
    known = {"tp": (0, 1), "dp/0": (0, 2), "dp/1": (1, 3)}
    groups = [
        FoundGroup("1", "tp", (0, 1)),
        FoundGroup("5", "tp", (2, 3)),
        FoundGroup("2", "dp", (0, 2)),
        FoundGroup("6", "dp", (0, 3)),
    ]
    assert names(groups, known) == {"tp/0": (2, 3), "dp/2": (0, 3)}


def test_a_group_is_complete_when_all_its_members_have_found_it() -> None:
    one, other = FoundGroup("1", "a", (0, 1)), FoundGroup("2", "b", (1, 2))
    assert complete([[one], [one, other], []]) == [one]
    assert complete([[one], [one, other], [other]]) == [one, other]


def test_a_group_with_a_rank_that_the_job_has_not_is_never_complete() -> None:
    beyond = FoundGroup("1", "a", (0, 7))
    assert complete([[beyond], []]) == []


def test_a_name_that_is_too_long_is_cut() -> None:
    (made,) = named([FoundGroup("1", "n" * 500, (0, 1))], 4, {})
    assert len(made.name.encode()) <= 128


def test_no_more_groups_are_named_than_a_generation_may_have() -> None:
    groups = [FoundGroup(str(number), f"g{number}", (0, 1)) for number in range(MAX_GROUPS + 5)]
    made = named(groups, 4, {})
    assert len(made) == MAX_GROUPS - 1
    assert made[0] == GroupDescription("g0", (0, 1))
