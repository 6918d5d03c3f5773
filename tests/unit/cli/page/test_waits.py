"""The graph of who waits for whom."""

from __future__ import annotations

import pytest

from rankbridge_server.cli.page.waits import MOST_NODES, graph


def test_many_ranks_that_wait_for_one_are_one_node() -> None:
    found = graph({rank: [77] for rank in range(256) if rank != 77}, culprits=[77])
    assert [(it["ranks"], it["culprit"]) for it in found["nodes"]] == [
        ("ranks 0-76, 78-255", False),
        ("rank 77", True),
    ]
    assert (found["edges"], found["more"]) == ([(0, 1)], 0)


def test_ranks_of_a_circle_are_nodes_of_their_own() -> None:
    found = graph({0: [1], 1: [2], 2: [0], 5: [0]}, cycle=[0, 1, 2])
    assert [it["ranks"] for it in found["nodes"]] == ["rank 0", "rank 1", "rank 2", "rank 5"]
    assert found["edges"] == [(0, 1), (1, 2), (2, 0), (3, 0)]
    assert [it["circle"] for it in found["nodes"]] == [True, True, True, False]


def test_two_groups_that_wait_for_the_same_rank_and_another_are_apart() -> None:
    found = graph({0: [4], 1: [4], 2: [4, 5], 3: [4, 5]})
    assert [it["ranks"] for it in found["nodes"]] == ["ranks 0-1", "ranks 2-3", "rank 4", "rank 5"]
    assert found["edges"] == [(0, 2), (1, 2), (1, 3)]


def test_nobody_waits() -> None:
    assert graph({}) == {"nodes": [], "edges": [], "more": 0}


@pytest.mark.parametrize("size", [MOST_NODES + 9, 500])
def test_of_too_many_nodes_the_rest_is_counted(size: int) -> None:
    found = graph({rank: [rank + 1] for rank in range(size)})
    assert len(found["nodes"]) == MOST_NODES
    assert found["more"] == size + 1 - MOST_NODES
    assert all(max(it) < MOST_NODES for it in found["edges"])
