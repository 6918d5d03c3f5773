"""Groups of torch.distributed, in words."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from rankbridge_server.core.torch_group_names import shown_name


@pytest.mark.parametrize(
    ("description", "ranks", "name"),
    [
        ("dp", (0, 1), "dp"),
        ("default_pg", (0, 1, 2, 3), "world"),
        ("undefined", (0, 1, 2, 3), "world"),
        ("undefined", (0, 1, 3), "group[0-1, 3]"),
        ("", (2,), "group[2]"),
    ],
)
def test_a_group_without_a_name_is_named_by_its_ranks(
    description: str, ranks: Sequence[int], name: str
) -> None:
    assert shown_name(description, ranks, 4) == name
