"""What the page shows of a gang, from its ranks' answers."""

from __future__ import annotations

import time
from typing import Any

import pytest
from tests.support.made_records import row

from rankbridge import RecordedOperation
from rankbridge_server.cli.page import model as of_model
from rankbridge_server.cli.page.batch import thinned
from rankbridge_server.cli.page.model import Model

SIZE = 4


@pytest.fixture
def model() -> Model:
    made = Model("mine", "gang", admits=True)
    groups = {"pair": (0, 1), "world": tuple(range(SIZE))}
    made.described({rank: row(rank) for rank in range(SIZE)}, groups)
    return made


def operation(name: str = "all_reduce", group: str = "world", **fields: Any) -> RecordedOperation:
    given: dict[str, Any] = {
        "operation": name,
        "group": group,
        "operation_id": "one",
        "session_id": "",
        "generation": 1,
        "contract": f"{name} dtype=float32 shape=[1000] op=sum",
        "site": "train.py:4",
        "function": "",
        "called": time.time(),
        "announced": 0.001,
        "entered": 0.002,
        "done": 0.003,
        "phase": "data",
        "code": "",
        "message": "",
        "indefinite": False,
    }
    return RecordedOperation(**{**given, **fields})


def waiting(**fields: Any) -> RecordedOperation:
    return operation(**{"entered": None, "done": None, "phase": "admission", **fields})


def changes(model: Model) -> dict[str, Any]:
    found = model.changes()
    assert found is not None
    return found


def test_what_has_changed_is_told_once(model: Model) -> None:
    model.grew(0, [operation()], [])
    first = changes(model)
    assert first["ended"]["count"] == 1
    assert sorted(first["ranks"]) == [0, 1, 2, 3]
    assert [it["name"] for it in first["groups"]] == ["world", "pair"]
    assert {it for it in model.changes() or {} if it != "at"} <= {"rates"}
    model.described({1: row(1, state="over", well=False)}, dict.fromkeys(["world"], (0, 1, 2, 3)))
    second = changes(model)
    assert list(second["ranks"]) == [1]
    assert second["header"]["whole"] is False


def test_the_world_comes_first_and_numbers_count(model: Model) -> None:
    model.described({}, dict.fromkeys(["tp_10", "dp_9", "tp_9", "world", "a"], (0, 1)))
    assert [it["name"] for it in changes(model)["groups"]] == ["world", "a", "dp_9", "tp_9", "tp_10"]


def test_a_browser_that_comes_later_is_told_all(model: Model) -> None:
    model.grew(0, [operation()], [])
    model.changes()
    model.grew(1, [], [waiting(operation_id="two")])
    whole = model.whole()
    assert whole["reset"]
    assert whole["ended"]["rank"] == [0]
    assert len(whole["ranks"]) == SIZE
    assert [it["what"] for it in whole["pending"]["rows"]] == ["all_reduce"]
    assert whole["header"] == {
        "name": "mine",
        "source": "gang",
        "size": SIZE,
        "generation": 1,
        "whole": True,
        "silent": [],
    }


def test_an_operation_has_one_number_on_all_its_ranks(model: Model) -> None:
    for rank in range(SIZE):
        model.grew(rank, [operation(operation_id="a"), operation(operation_id="b")], [])
    ended = changes(model)["ended"]
    by_number: dict[int, list[int]] = {}
    for rank, number in zip(ended["rank"], ended["number"], strict=True):
        by_number.setdefault(number, []).append(rank)
    assert list(by_number.values()) == [[0, 1, 2, 3]] * 2


def test_operations_without_an_id_are_each_their_own(model: Model) -> None:
    model.grew(0, [operation(operation_id="")], [])
    model.grew(1, [operation(operation_id="")], [])
    assert len(set(changes(model)["ended"]["number"])) == 2


def test_times_are_microseconds_and_what_was_not_is_absent(model: Model) -> None:
    it = operation(announced=None, entered=None, code="aborted", message="its group is gone", called=1000.5)
    model.grew(2, [it], [], at=time.time())
    ended = changes(model)["ended"]
    assert (ended["base"], ended["called"], ended["announced"], ended["entered"]) == (1000.5, [0], [-1], [-1])
    assert ended["done"] == [3000]
    assert ended["texts"][ended["outcome"][0]] == "aborted: its group is gone"


def test_what_waits_says_for_whom(model: Model) -> None:
    called = time.time() - 10
    for rank in (0, 1, 3):
        model.grew(rank, [], [waiting(called=called + rank)])
    found = changes(model)
    (pending,) = found["pending"]["rows"]
    assert pending["since"] == pytest.approx(called)
    assert (pending["waits_for"], pending["at"]) == ("rank 2", "ranks 0-1, 3 waiting")
    assert [(it["ranks"], it["count"]) for it in found["graph"]["nodes"]] == [
        ("ranks 0-1, 3", 3),
        ("rank 2", 1),
    ]
    assert found["graph"]["edges"] == [(0, 1)]
    model.grew(2, [], [waiting(called=called, phase="check", announced=None)])
    assert changes(model)["pending"]["rows"][0]["waits_for"] == ""


def test_what_a_leader_says_counts_more(model: Model) -> None:
    model.grew(0, [], [waiting()])
    model.said({("world", "all_reduce", "one"): (3,)})
    assert changes(model)["pending"]["rows"][0]["waits_for"] == "rank 3"


def test_a_member_that_has_ended_it_is_not_waited_for(model: Model) -> None:
    model.grew(2, [operation(code="aborted", entered=None)], [])
    model.grew(0, [], [waiting()])
    assert changes(model)["pending"]["rows"][0]["waits_for"] == "ranks 1, 3"


@pytest.mark.parametrize("name", ["send", "irecv"])
def test_of_two_that_move_something_nobody_else_is_waited_for(model: Model, name: str) -> None:
    model.grew(0, [], [waiting(name=name)])
    assert changes(model)["pending"]["rows"][0]["waits_for"] == ""


def test_what_is_in_the_backend_waits_for_nobody_that_has_not_come(model: Model) -> None:
    model.grew(0, [], [operation(done=None)])
    assert changes(model)["pending"]["rows"][0]["waits_for"] == ""


def test_lines_that_differ_have_their_ranks(model: Model) -> None:
    model.grew(0, [], [waiting()])
    model.grew(1, [], [waiting(site="other.py:9")])
    assert changes(model)["pending"]["rows"][0]["site"] in (
        "train.py:4 (rank 0); other.py:9 (rank 1)",
        "other.py:9 (rank 1); train.py:4 (rank 0)",
    )


def test_what_is_pending_on_a_rank_that_is_silent_is_not_known(model: Model) -> None:
    model.grew(0, [], [waiting()])
    model.changes()
    model.silent(0)
    found = changes(model)
    assert found["pending"]["rows"] == []
    assert model.waits_since() is None


def test_a_clock_that_is_ahead_is_set_back(model: Model) -> None:
    before = time.time()
    model.grew(1, [], [waiting(called=before + 97)], at=before + 100)
    since = model.waits_since()
    assert since is not None
    # The difference of the clocks is taken when the report is there, which may be a while after it was made.
    assert before - 3.1 < since < time.time() - 2.9


def test_rates_are_those_of_a_member_and_of_who_comes_last(model: Model) -> None:
    for number in range(10):
        called = time.time()
        for rank in range(SIZE):
            late = 0.5 if rank == 3 else 0.0
            model.grew(rank, [operation(operation_id=f"{number}", called=called + late)], [])
    rates = model.whole()["rates"]
    world = rates["groups"]["world"]
    assert world["operations"] > 0
    assert world["bytes"] == pytest.approx(world["operations"] * 4000)
    assert (world["last"], world["last_in"], world["of"]) == (3, 10, 10)
    assert world["behind"] == pytest.approx(0.5)
    assert set(rates["ranks"]) == {0, 1, 2, 3}


def test_of_too_many_the_failed_and_the_longest_are_kept_and_the_rest_is_counted(model: Model) -> None:
    model.grew(0, [operation(done=it / 1000, operation_id=f"{it}") for it in range(1, 20)], [])
    model.grew(1, [operation(done=0.0001, code="aborted", operation_id="failed")], [])
    slices = model._ended
    kept, left_out = thinned(slices, 4)
    assert left_out == 16
    assert [it.operation.operation_id for it in kept] == ["17", "18", "19", "failed"]


def test_what_nobody_reads_does_not_grow(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(of_model, "_BACKLOG", 5)
    model.grew(0, [operation(operation_id=f"{it}") for it in range(9)], [], lost=2)
    assert changes(model)["ended"]["count"] == 5
    rates = model.whole()["rates"]
    assert (rates["not_drawn"], rates["lost"]) == (4, 2)


def test_texts_of_others_are_printable_and_short(model: Model) -> None:
    model.grew(0, [operation(site="\x1b[31m\u202etrain.py", contract="x" * 9000)], [])
    texts = changes(model)["ended"]["texts"]
    assert "\\x1b[31m\\u202etrain.py" in texts
    assert max(map(len, texts)) < 600


def test_a_verdict_is_told_and_its_waits_are_in_the_graph_while_they_last(model: Model) -> None:
    verdict = {"kind": "order_inversion", "calm": False}
    model.grew(0, [], [waiting(group="pair")])
    model.grew(1, [], [waiting()])
    model.judged(verdict, {0: (1,), 1: (0,)}, (), (0, 1))
    found = changes(model)
    assert found["verdict"] == verdict
    assert [it["circle"] for it in found["graph"]["nodes"]] == [True, True]
    assert found["graph"]["edges"] == [(0, 1), (1, 0)]
    for rank in (0, 1):
        model.grew(rank, [], [])
    assert changes(model)["graph"]["nodes"] == []


def test_after_a_reset_nothing_is_left(model: Model) -> None:
    model.grew(0, [operation()], [waiting(operation_id="two")])
    model.reset()
    found = changes(model)
    assert found["reset"]
    assert "ended" not in found
    assert (found["header"]["size"], found["pending"]["rows"]) == (0, [])
