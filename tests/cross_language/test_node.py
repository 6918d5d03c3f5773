"""A gang driven from Node, with nothing of this project but its proto files."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests import node_project
from tests.support.gangs import RunningGang

import rankbridge

ROOT = Path(__file__).resolve().parents[2]
RANKS = range(4)

Json = Any


@pytest.fixture(scope="module", params=["targets", "tcp_targets"])
def seen(request: pytest.FixtureRequest, gloo4: RunningGang) -> Json:
    """What the Node program saw of the gang, by way of one kind of endpoint."""
    project = node_project.install(ROOT / "tests" / "cross_language" / "node")
    endpoints: list[str] = getattr(gloo4, request.param)
    with rankbridge.connect(gloo4.endpoints_file, session=False) as gang:
        before = [len(refs) for refs in gang.list_refs()]
    seen = json.loads(node_project.run(project, "drive.mjs", str(ROOT / "proto"), gloo4.token, *endpoints))
    return {**seen, "before": before}


def test_every_rank_describes_itself(seen: Json) -> None:
    state = "GENERATION_STATE_FORMED"
    assert seen["described"] == [{"rank": rank, "world_size": 4, "state": state} for rank in RANKS]


def test_all_reduce_sums_on_every_rank_and_leaves_its_input(seen: Json) -> None:
    assert seen["all_reduce"] == [{"shape": [2, 3], "elements": [10.0] * 6}] * 4
    assert seen["input_after_all_reduce"] == [{"shape": [2, 3], "elements": [r + 1.0] * 6} for r in RANKS]


def test_broadcast_gives_every_rank_the_tensor_of_rank_2(seen: Json) -> None:
    assert seen["broadcast"] == [{"shape": [2], "elements": [2.0, 2.5]}] * 4


def test_gather_gives_rank_1_all_and_the_others_none(seen: Json) -> None:
    assert seen["gather_kinds"] == ["none", "ref", "none", "none"]
    assert seen["gather"] == {"shape": [8], "elements": [0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5]}


def test_barrier_succeeds_on_every_rank(seen: Json) -> None:
    assert seen["barrier"] == ["OK"] * 4


@pytest.mark.parametrize(
    ("case", "code"),
    [
        ("unknown_ref", "UNKNOWN_REF"),
        ("rank_out_of_range", "RANK_OUT_OF_RANGE"),
        ("average_of_integers", "UNSUPPORTED_DTYPE"),
        ("unequal_sizes", "MISMATCH"),
        ("released_ref", "RELEASED_REF"),
    ],
)
def test_a_wrong_call_gets_its_error_on_every_rank(seen: Json, case: str, code: str) -> None:
    assert seen["errors"][case] == [f"ERROR_CODE_{code}"] * 4


def test_wrong_calls_leave_the_gang_working(seen: Json) -> None:
    assert seen["all_reduce_after_errors"] == {"shape": [2], "elements": [3.0, 3.5]}


def test_every_ref_is_released(seen: Json) -> None:
    assert seen["released"] == [6, 7, 6, 6]
    assert seen["left"] == seen["before"]
