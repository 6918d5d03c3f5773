"""A guarded job on NCCL: what its ranks do not agree on raises before it enters NCCL, and the group goes on."""

from __future__ import annotations

import pytest
from tests.integration import test_guard
from tests.integration.test_guard import (
    SIZE,
    Said,
    said_by_name,
    test_all_ranks_hear_both_sides_and_the_line_at_once,
    test_who_has_not_come_is_named_with_its_line,
)

# What every guarded job must hear, asked of this one.
__all__ = [
    "test_all_ranks_hear_both_sides_and_the_line_at_once",
    "test_who_has_not_come_is_named_with_its_line",
]

pytestmark = pytest.mark.gpu

# Sends and receives of NCCL are not guarded, and its small collectives enter it. Of other threads than the first, torch
# makes tensors on the host.
_ONLY_GLOO = {"small", "threads", *test_guard.SENDS, *test_guard.SENT_WRONG}
AGREE = [it for it in test_guard.AGREE if it not in _ONLY_GLOO]
DISAGREE = [it for it in test_guard.DISAGREE if it not in _ONLY_GLOO]
CIRCLES = {"crossed": [0, 1], "circle": [0, 1, 2]}


@pytest.fixture(scope="module")
def by_name(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Said]]:
    """Of what is guarded here."""
    names = (*AGREE, *DISAGREE, "twice")
    return said_by_name(tmp_path_factory.mktemp("guarded"), names, GUARDED_BACKEND="nccl")


@pytest.mark.parametrize("name", [*AGREE, *DISAGREE, "twice"])
def test_groups_go_on_after_what_was_wrong(by_name: dict[str, list[Said]], name: str) -> None:
    assert [it["after"] for it in by_name[name]] == [[SIZE, SIZE]] * SIZE


@pytest.mark.parametrize("name", AGREE)
def test_nothing_is_said_of_what_is_right(by_name: dict[str, list[Said]], name: str) -> None:
    assert [(it["code"], it["text"]) for it in by_name[name]] == [("", "")] * SIZE


@pytest.mark.parametrize("name", CIRCLES)
def test_ranks_that_wait_for_each_other_are_found(by_name: dict[str, list[Said]], name: str) -> None:
    members = CIRCLES[name]
    for rank, it in enumerate(by_name[name]):
        assert (it["code"], it["ranks"]) == (("MISMATCH", members) if rank in members else ("", []))
