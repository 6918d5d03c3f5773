"""Scenarios are made smaller, and written so that they are read as they were."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from rankbridge.harness.cases import cases_in
from rankbridge.harness.concrete import concrete
from rankbridge.harness.problems import BadScenario
from rankbridge.harness.rank_removal import without_rank
from rankbridge.harness.shrinking import shrink
from rankbridge.harness.writing import NoWord, as_toml

LONG = """
format = 1
name = "a \\"long\\" one"
gang = { size = 4, backend = "gloo" }
groups = { pair = [3, 1], all = [0, 1, 2, 3] }
repeat = 2
seed = 5
timeout_ms = 900
[matrix]
op = ["sum", "max"]
[tensors.x]
dtype = "float64"
shape = [4, 3]
fill = "random"
[tensors."y.1"]
dtype = "int32"
shape = [7]
[[step]]
name = "late"
call = "barrier"
absent = [1]
wait = false
fault = { kill = [2], after_ms = [10, 90] }
expect.error = { 0 = "PEER_LOST", 3 = ["PEER_LOST", "OK"] }
expect.names = { 0 = { lost = [2] }, 3 = { lost = [2] } }
expect.sometimes = { error = "PEER_LOST" }
[[step]]
each = [{ rank = 1, call = "barrier" }, { rank = 2, call = "barrier" }]
[[step]]
await = "late"
[[step]]
call = "all_reduce"
of = "x"
op = "$op"
but = { 2 = { op = "min" }, 3 = { of = "y.1" } }
group = "all"
fault = [{ delay_ms = { 3 = 7 } }, { cancel = [0, 3], at = "waiting" }]
expect.sides = [[0, 1], [2, 3]]
expect.replaced = [2]
"""


def one_run() -> dict[str, Any]:
    _, case = cases_in(LONG, "it.toml")
    return concrete(case, 1, Path.cwd())


def test_a_run_as_a_scenario_has_nothing_that_is_drawn_and_is_read_as_it_was() -> None:
    data = one_run()
    assert data["tensors"]["x"]["fill"] == {"seed": 1005}
    assert 10 <= data["step"][0]["fault"]["after_ms"] <= 90
    assert (data["step"][3]["op"], data["name"]) == ("max", 'a "long" one [op=max] (2 of 2)')
    assert not {"matrix", "repeat", "seed"} & data.keys()
    (again,) = cases_in(as_toml(data, ["why\nit failed"]), "it.toml")
    assert (again.data, again.backend) == (data, "gloo")


def test_what_toml_cannot_hold_is_refused_and_what_it_writes_otherwise_is_read() -> None:
    odd = ["\x7f\x00\n\u2028", "\ud800", "é😀", -math.inf, True, 2**70, {"a b": [], "": {}}]
    data = {**one_run(), "step": [{"call": "all_gather_object", "value": odd}]}
    (again,) = cases_in(as_toml(data), "it.toml")
    assert again.data["step"][0]["value"] == [odd[0], "\ufffd", *odd[2:]]
    with pytest.raises(NoWord, match="null"):
        as_toml({"step": [{"value": [None]}]})


def test_a_rank_is_taken_out_of_every_word_that_names_it() -> None:
    smaller = without_rank(one_run(), 2)
    assert smaller["gang"]["size"] == 3
    assert smaller["groups"] == {"pair": [2, 1], "all": [0, 1, 2]}
    late, each, _, last = smaller["step"]
    assert (late["absent"], late["fault"]["kill"]) == ([1], [])
    assert late["expect"]["error"] == {"0": "PEER_LOST", "2": ["PEER_LOST", "OK"]}
    assert late["expect"]["names"] == {"0": {"lost": []}, "2": {"lost": []}}
    assert each["each"] == [{"rank": 1, "call": "barrier"}]
    assert last["but"] == {"2": {"of": "y.1"}}
    assert last["fault"] == [{"delay_ms": {"2": 7}}, {"cancel": [0, 2], "at": "waiting"}]
    assert last["expect"] == {"sides": [[0, 1], [2]], "replaced": []}
    cases_in(json.dumps(smaller), "it.json")


def test_the_smallest_that_still_fails_is_found_and_times_become_points() -> None:
    def fails(data: dict[str, Any]) -> bool:
        """A kill of any rank, in whatever step that has `but` or `each` beside it."""
        try:
            cases_in(json.dumps(data), "it.json")
        except BadScenario:
            return False
        kills = [it for it in data["step"] if isinstance(it.get("fault"), dict) and it["fault"].get("kill")]
        return bool(kills) and any("each" in it for it in data["step"])

    assert shrink(one_run(), fails) == {
        "format": 1,
        "name": 'a "long" one [op=max] (2 of 2)',
        "gang": {"size": 2, "backend": "gloo"},
        "step": [
            {"call": "barrier", "fault": {"kill": [1], "at": "waiting"}},
            {"each": [{"rank": 0, "call": "barrier"}]},
        ],
    }
