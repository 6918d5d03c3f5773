"""By what gradients are divided before they are added up."""

from __future__ import annotations

import pytest

from rankbridge import InvalidArgumentError, get_reduce_divide_factor


@pytest.mark.parametrize(
    ("world_size", "factor"), [(1, 1), (2, 2), (3, 2), (4, 2), (6, 4), (8, 4), (12, 4), (16, 4), (64, 8)]
)
def test_the_factor_is_a_power_of_two_of_about_the_square_root(world_size: int, factor: float) -> None:
    assert get_reduce_divide_factor(world_size) == factor
    assert isinstance(get_reduce_divide_factor(world_size), float)


def test_no_group_is_smaller_than_one() -> None:
    with pytest.raises(InvalidArgumentError, match="no group"):
        get_reduce_divide_factor(0)
