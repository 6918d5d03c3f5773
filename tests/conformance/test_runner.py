"""The runner itself: what it calls passed, a deviation, failed; and what its last line and its exit status say."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.conformance import __main__ as command, deviations, tables, translations
from tests.conformance.compare import differences
from tests.conformance.deviations import Deviation
from tests.conformance.errors import fits
from tests.conformance.explanations import Expect
from tests.conformance.judge import judge
from tests.conformance.moments import Answer, Moment
from tests.conformance.recorded import DATA, Case, cases
from tests.conformance.translations import Translation
from tests.conformance.values import Tensor
from tests.support import sampling

CASE = Case("suite", 0, "case", 1, {"inputs": {}, "per_rank": [{"ok": 1}]})
ENTRY = Deviation(
    id="one", systems="X", kind="bug", does="", bridge="", why="", expect=Expect(value=2), files=("suite",)
)

TRANSLATION = Translation(
    id="two",
    systems="X",
    does="",
    bridge="",
    why="",
    expect=Expect(absent=True),
    files=("suite",),
    paths=("ok.there",),
)


def moment(recorded: Answer, answer: Answer) -> Moment:
    return Moment(step="0", rank=0, recorded=[recorded], answer=answer, method="m")


def tensor(*data: float, dtype: str = "float32") -> Tensor:
    return Tensor.of(dtype, list(data), [len(data)])


@pytest.mark.parametrize(
    ("recorded", "got"),
    [
        (1, 1.0),
        (1, True),
        (None, 0),
        ([1], (1,)),
        ([1], [1, 2]),
        ({"a": 1}, {"a": 1, "b": None}),
        (0.1, 0.10000000149011612),
        (tensor(1.0), tensor(1.0, dtype="float64")),
        (tensor(1.0), tensor(1.001)),
        (tensor(1, dtype="int64"), tensor(2, dtype="int64")),
        (tensor(1.0), Tensor.of("float32", [[1.0]], [1, 1])),
    ],
)
def test_what_is_not_the_same_differs(recorded: Any, got: Any) -> None:
    assert differences({"ok": recorded}, {"ok": got})


@pytest.mark.parametrize(
    ("recorded", "got"),
    [
        (tensor(0.1), tensor(0.10000001)),
        (tensor(1.0, dtype="bfloat16"), tensor(1.0, dtype="bfloat16")),
        ({"a": [1, (2.5, None)]}, {"a": [1, (2.5, None)]}),
    ],
)
def test_what_is_close_does_not_differ(recorded: Any, got: Any) -> None:
    assert differences({"ok": recorded}, {"ok": got}) == []


def test_an_error_is_only_matched_by_an_error_that_says_the_same() -> None:
    recorded = {"error": {"type": "AssertionError", "message": "Invalid src rank (2)"}}
    assert differences(recorded, {"error": {"code": "RANK_OUT_OF_RANGE"}}) == []
    assert differences(recorded, {"error": {"code": "MISMATCH"}})
    assert differences(recorded, {"ok": None})
    assert differences({"ok": None}, {"error": {"code": "MISMATCH"}})
    assert not fits({"type": "Unheard", "message": "of"}, "INVALID_ARGUMENT")


def test_a_difference_is_a_deviation_only_if_the_bridge_does_what_the_entry_says() -> None:
    passed = judge(CASE, [moment({"ok": 1}, {"ok": 1})], [ENTRY])
    explained = judge(CASE, [moment({"ok": 1}, {"ok": 2})], [ENTRY])
    wrong = judge(CASE, [moment({"ok": 1}, {"ok": 3})], [ENTRY])
    unexplained = judge(CASE, [moment({"ok": 1}, {"ok": 2})], [replace(ENTRY, files=("other",))])
    refused = judge(CASE, [moment({"ok": 1}, {"error": {"code": "MISMATCH"}})], [ENTRY])
    assert passed.outcome == "passed"
    assert (explained.outcome, explained.deviations) == ("deviations", frozenset({"one"}))
    assert [it.outcome for it in (wrong, unexplained, refused)] == ["failed"] * 3


def test_a_deviation_that_expects_an_error_wants_its_code() -> None:
    entry = replace(ENTRY, expect=Expect(error=("MISMATCH",)))
    for answer, outcome in (
        ({"error": {"code": "MISMATCH"}}, "deviations"),
        ({"error": {"code": "PEER_MISSING"}}, "failed"),
        ({"ok": None}, "failed"),
    ):
        assert judge(CASE, [moment({"hang": True}, answer)], [entry]).outcome == outcome


def test_a_case_that_only_says_it_in_another_way_passes() -> None:
    said = moment({"ok": {"there": 1, "both": 2}}, {"ok": {"both": 2}})
    verdict = judge(CASE, [said], [replace(ENTRY, paths=("ok.both",)), TRANSLATION])
    assert (verdict.outcome, verdict.translations) == ("passed", frozenset({"two"}))
    assert verdict.deviations == frozenset()
    still_there = replace(said, answer={"ok": {"there": 2, "both": 2}})
    assert judge(CASE, [still_there], [TRANSLATION]).outcome == "failed"


def test_a_case_with_one_deviation_among_translations_is_a_deviation() -> None:
    entry = replace(ENTRY, paths=("ok.both",))
    verdict = judge(
        CASE, [moment({"ok": {"there": 1, "both": 1}}, {"ok": {"both": 2}})], [entry, TRANSLATION]
    )
    assert verdict.outcome == "deviations"
    assert (verdict.deviations, verdict.translations) == (frozenset({"one"}), frozenset({"two"}))


def test_a_deviation_is_never_hidden_by_a_translation() -> None:
    said = moment({"ok": {"there": 1}}, {"ok": {}})
    deviation = replace(ENTRY, expect=Expect(absent=True))
    assert judge(CASE, [said], [deviation, TRANSLATION]).outcome == "deviations"
    kinds = [type(entry) for entry in tables.read()]
    assert kinds == [Deviation] * kinds.count(Deviation) + [Translation] * kinds.count(Translation)


@pytest.mark.parametrize(
    ("recorded", "answer"),
    [
        ({"ok": 1}, {"error": {"code": "MISMATCH"}}),
        ({"error": {"type": "Unheard", "message": "of"}}, {"ok": 2}),
        ({"error": {"type": "Unheard", "message": "of"}}, {"error": {"code": "MISMATCH"}}),
        ({"hang": True}, {"ok": 2}),
    ],
)
def test_an_error_is_never_said_in_another_way(recorded: Answer, answer: Answer) -> None:
    anything = replace(TRANSLATION, expect=Expect(value=2), paths=("*",))
    assert judge(CASE, [moment(recorded, answer)], [anything]).outcome == "failed"
    assert judge(CASE, [moment({"ok": 1}, {"ok": 2})], [anything]).outcome == "passed"
    with pytest.raises(AssertionError):
        replace(TRANSLATION, expect=Expect(error=("MISMATCH",)))


def test_some_are_drawn_by_the_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = set()
    monkeypatch.setattr(sampling, "whole", False)
    for commit in ("1f", "2e", "3d"):
        monkeypatch.setattr(sampling, "seed", partial(str, commit))
        found = sampling.sample(range(100), 5)
        assert found == sorted(set(found)) == sampling.sample(range(100), 5)
        assert len(found) == 5
        drawn.add(tuple(found))
    assert len(drawn) == 3
    assert sampling.sample("abc", 5) == ["a", "b", "c"]
    monkeypatch.setattr(sampling, "whole", True)
    assert sampling.sample(range(100), 5) == list(range(100))


def test_an_entry_that_no_case_needs_fails(capsys: pytest.CaptureFixture[str]) -> None:
    said = moment({"ok": {"there": 1}}, {"ok": {}})
    verdict = judge(CASE, [said], [TRANSLATION])
    assert command.unused([ENTRY, TRANSLATION], [verdict]) == ["one"]
    assert command.unused([TRANSLATION], [judge(CASE, [moment({"ok": 1}, {"ok": 1})], [TRANSLATION])]) == [
        "two"
    ]
    assert command.summarise([verdict], ["two"]) == 1
    assert "failed: no case needs the entry 'two'" in capsys.readouterr().out.splitlines()


@pytest.mark.parametrize("kind", ["internal", "missing", ""])
def test_a_table_with_another_kind_of_deviation_is_refused(kind: str, tmp_path: Path) -> None:
    text = deviations.TABLE.read_text()
    table = tmp_path / "deviations.toml"
    table.write_text(text)
    assert deviations.read(table) == deviations.read()
    table.write_text(text.replace('kind = "bug"', f'kind = "{kind}"', 1))
    with pytest.raises(AssertionError):
        deviations.read(table)


def test_a_deviation_is_a_bug_a_crash_or_a_hang_and_a_translation_has_no_kind(tmp_path: Path) -> None:
    assert set(deviations.KINDS) == {"bug", "crash", "hang"} == {entry.kind for entry in deviations.read()}
    table = tmp_path / "translations.toml"
    table.write_text(translations.TABLE.read_text().replace("systems =", 'kind = "bug"\nsystems =', 1))
    with pytest.raises(TypeError):
        translations.read(table)


def test_a_case_of_which_nothing_was_compared_failed() -> None:
    assert judge(CASE, [], []).outcome == "failed"


def test_of_several_versions_any_will_do() -> None:
    both = replace(moment({"ok": 1}, {"ok": 1}), recorded=[{"ok": 1}, {"ok": 5}])
    assert judge(CASE, [both], []).outcome == "passed"
    assert judge(CASE, [replace(both, answer={"ok": 5})], []).outcome == "passed"
    assert judge(CASE, [replace(both, answer={"ok": 6})], []).outcome == "failed"


def test_another_folder_can_be_replayed_and_a_wrong_record_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    held = json.loads((DATA / "optimus_ops.json").read_text())
    chosen = [it for it in held["cases"] if it["world"] == 1 and it["case"] == "all_gather_concat"]
    wrong = json.loads(json.dumps(chosen[0]))
    wrong["per_rank"][0]["ok"]["data"] = [7.0, 7.0]
    unknown = {**chosen[0], "case": "unheard_of"}
    folder = tmp_path / "cases"
    folder.mkdir()
    (folder / "optimus_ops.json").write_text(json.dumps({**held, "cases": [*chosen, wrong, unknown]}))
    status = command.main(["--cases", str(folder), "--backend", "fake"])
    lines = capsys.readouterr().out.splitlines()
    assert status == 1
    assert lines[-1] == f"total: {len(chosen)} passed, 0 deviations, 2 failed"
    assert "there is no replay of such cases" in "\n".join(lines)


def test_the_numbers_are_those_of_the_verdicts(capsys: pytest.CaptureFixture[str]) -> None:
    first, second = cases("optimus_ops")[:2]
    good, bad = judge(first, [moment({"ok": 1}, {"ok": 1})], []), judge(second, [], [])
    assert command.summarise([good]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "total: 1 passed, 0 deviations, 0 failed"
    assert command.summarise([good, bad]) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "total: 1 passed, 0 deviations, 1 failed"
    assert command.summarise([good], ["never"]) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "total: 1 passed, 0 deviations, 1 failed"


def test_how_many_say_it_in_another_way_is_told_and_counted_as_passed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    first, second = cases("optimus_ops")[:2]
    said = replace(judge(CASE, [moment({"ok": {"there": 1}}, {"ok": {}})], [TRANSLATION]), case=first)
    equal = judge(second, [moment({"ok": 1}, {"ok": 1})], [])
    assert command.summarise([said, equal]) == 0
    assert capsys.readouterr().out.splitlines()[-2:] == [
        "said in another way, of those passed: 1",
        "total: 2 passed, 0 deviations, 0 failed",
    ]


def test_a_case_that_two_clients_replayed_counts_once_and_as_the_worse(
    capsys: pytest.CaptureFixture[str],
) -> None:
    case = cases("optimus_ops")[0]
    good = judge(case, [moment({"ok": 1}, {"ok": 1})], [])
    assert command.summarise([good, replace(good, client="elixir")]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "optimus_ops: 1 passed, 0 deviations, 0 failed",
        "optimus_ops from Elixir: 1 passed, 0 deviations, 0 failed",
        "total: 1 passed, 0 deviations, 0 failed",
    ]
    assert command.summarise([good, replace(good, client="elixir", failures=("so",))]) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "total: 0 passed, 0 deviations, 1 failed"
