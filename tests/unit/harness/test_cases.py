"""What is wrong with a scenario is said with file, line and column before anything runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rankbridge.harness.cases import cases_in, load
from rankbridge.harness.examples import NAMES, write_examples
from rankbridge.harness.problems import BadScenario

GOOD = """\
format = 1
name = "a sum"
gang = { size = 4 }
groups = { pair = [0, 1] }

[tensors.x]
dtype = "float32"
shape = [2, 3]

[[step]]
call = "all_reduce"
of = "x"
"""

# What is put in the place of what, or at the end; what is said then.
WRONG = [
    (
        'op = "sum"',
        "expect.within_sm = 10",
        "13:1: unknown word `within_sm` in expect; did you mean `within_ms`?",
    ),
    ("", 'opp = "sum"', "13:1: unknown word `opp` in step of all_reduce; did you mean `op`?"),
    (
        "",
        'op = "summ"',
        (
            "13:1: expected one of sum, product, min, max, avg, band, bor, bxor, got 'summ'; did you "
            "mean `sum`?"
        ),
    ),
    ("", 'in_place = "yes"', "13:1: expected true or false, got 'yes'"),
    ("", 'but = { 4 = { op = "max" } }', "13:1: rank 4 is no member of the group"),
    ("", 'but = { 1 = { opp = "max" } }', "13:15: unknown word `opp` in other; did you mean `op`?"),
    ("", "absent = [9]", "13:1: rank 9 is no member of the group"),
    ("", 'group = "pear"', "13:1: there is no group `pear`; did you mean `pair`?"),
    (
        "",
        'expect.error = "MISSMATCH"',
        "13:1: expected an error code, or OK, got 'MISSMATCH'; did you mean `MISMATCH`?",
    ),
    ("", 'expect.unchanged = ["y"]', "13:21: there is no tensor `y` yet"),
    ("", 'expect = { ok = true, error = "MISMATCH" }', "13:23: a step has `ok` or `error`, not both"),
    (
        "",
        "expect.names = { gone = [1] }",
        "13:18: there is no state `gone`; there are arrived, missing, disagrees, lost, failed",
    ),
    (
        "",
        "fault = { kill = [1], stop = [2] }",
        (
            "13:1: fault has one of `kill`, `stop`, `cont`, `slow`, `drop_link`, "
            "`partition`, `delay_ms`, `cancel`, `quota`, `hold`, `change`"
            ": it has `kill` and `stop`"
        ),
    ),
    (
        "",
        'fault = { kill = [1], after_ms = 1, at = "waiting" }',
        "13:37: a fault has `after_ms` or `at`, not both",
    ),
    (
        "",
        "[[step]]\nform = true\nawait = 'a'",
        "13:1: step has one of `call`, `each`, `form`, `await`: it has `form` and `await`",
    ),
    ("", "[[step]]\nawait = 'a'", "14:1: no step `a` before this one is still to be awaited"),
    (
        "",
        "[[step]]\ncall = 'send'\nof = 'x'",
        (
            "14:1: expected an operation of all members (others stand in `each`), got 'send'; did you"
            " mean `scan`?"
        ),
    ),
    (
        "",
        "[[step]]\ncall = 'all_redduce'",
        (
            "14:1: expected an operation of all members (others stand in `each`), got 'all_redduce'; "
            "did you mean `all_reduce`?"
        ),
    ),
    ("", "[matrix]\na = [1, '$a']", "14:9: a value of the matrix is itself none of its names: '$a'"),
    ("", "[matrix]\na = [1, 1]", "14:9: 1 stands twice"),
    ("", "repeat = 0", "13:1: unknown word `repeat` in step of all_reduce; did you mean `expect`?"),
    ("size = 4", "size = 0", "3:10: expected 1 to 256, got 0"),
    ("size = 4", 'size = "four"', "3:10: expected a whole number, got 'four'"),
    ("size = 4", "size = true", "3:10: expected a whole number, got true"),
    ("size = 4", 'size = "$sise"', "3:10: the matrix has no `$sise`; did you mean `$size`?"),
    ("size = 4", 'size = "$rank"', "3:10: `$rank` differs from rank to rank, and this does not"),
    ("gang = { size = 4 }", "", "1:1: scenario needs `gang`"),
    ("format = 1", "format = 2", "1:1: expected 1, got 2"),
    ("[0, 1]", "[0, 0]", "4:12: a rank stands twice"),
    ("[0, 1]", "[0, 7]", "4:12: there is no rank 7 in a gang of 4"),
    ('"float32"', '"float31"', "7:1: expected a dtype, got 'float31'; did you mean `float32`?"),
    ("[2, 3]", "[2, 3.5]", "8:13: expected a whole number, got 3.5"),
    ("[2, 3]", "[100000, 100000]", "8:1: 40,000,000,000 bytes; at most 1,073,741,824"),
    ("[2, 3]", "[2, 3]\nfil = 1", "9:1: unknown word `fil` in tensor; did you mean `fill`?"),
    ("[2, 3]", "[2, 3]\nshape = [1]", "9:12: Cannot overwrite a value: a name stands twice"),
    ("[2, 3]", "[2, 3", "10:1: Unclosed array"),
    ('of = "x"', 'of = "xx"', "12:1: there is no tensor `xx` yet; did you mean `x`?"),
    ('of = "x"', "", "10:1: step needs `of`"),
    (
        "",
        'fault = { kill = [1], at = "first allreduce" }',
        '13:23: expected "waiting" or "entered"; or a collective, as "third all_reduce of group dp on rank 2", '
        "got 'first allreduce'",
    ),
    (
        "",
        'fault = { hold = [1], at = "first barrier of group pear" }',
        "13:23: a gang without `load` has no functions, and no collectives of theirs",
    ),
    (
        "",
        "fault = { change = { 1 = { op = 'max' } } }",
        "13:11: `change` needs `at`: a collective of a function",
    ),
    ("", "[[step]]\neach = []", "14:1: a step without calls has a `fault`"),
    (
        "",
        "[[step]]\neach = []\nfault = { slow = [1] }",
        "15:1: `slow` is done to calls, and here are none",
    ),
    (
        "",
        "fault = { partition = [[0, 1], [9]] }",
        "13:11: there is no rank 9 in a gang of 4",
    ),
    ("", "fault = { partition = [[0, 1], [1]] }", "13:11: a rank stands on both sides"),
    ("", "fault = { partition = [[0, 1]] }", "13:11: expected a list of 2 to 2, got 1"),
    (
        "",
        "fault = { quota = [1] }",
        "13:11: `quota` needs a gang with limits.max_session_refs of at most 1,000",
    ),
    ("size = 4", 'size = 4, load = ["it", "no.py"]', "3:34: there is no file no.py"),
]


@pytest.mark.parametrize(("before", "after", "said"), WRONG, ids=[it[1] for it in WRONG])
def test_what_is_wrong_is_said_with_its_place(before: str, after: str, said: str) -> None:
    text = GOOD.replace(before, after) if before and before in GOOD else GOOD + after
    with pytest.raises(BadScenario) as caught:
        cases_in(text, "it.toml")
    assert [str(it) for it in caught.value.problems] == [f"it.toml:{said}"]


@pytest.mark.parametrize(
    ("backend", "at", "said"),
    [
        ("gloo", "first barrier of group pear", "there is no group `pear`; did you mean `pair`?"),
        ("gloo", "first barrier on rank 0", "`hold` is done to the rank that comes there"),
        ("gloo", "first barrier of group pair on rank 2", "rank 2 is no member of the group"),
        ("fake", "first barrier", "functions on the backend fake have no torch.distributed: take gloo"),
    ],
)
def test_a_collective_to_which_no_rank_can_come_is_refused(backend: str, at: str, said: str) -> None:
    gang = f'size = 4, load = "module", backend = "{backend}"'
    text = GOOD.replace("size = 4", gang) + f'fault = {{ hold = [1], at = "{at}" }}\n'
    with pytest.raises(BadScenario) as caught:
        cases_in(text, "it.toml")
    assert f"it.toml:13:23: {said}" in [str(it) for it in caught.value.problems]


def test_all_that_is_wrong_is_said_at_once_and_in_order(tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_text(GOOD.replace("float32", "float3") + "absent = 3\n")
    (tmp_path / "bytes.toml").write_bytes(b"format = 1\n\xff")
    (tmp_path / "long.toml").write_bytes(b"#" * (1 << 20) + b"\n")
    files = [str(tmp_path / it) for it in ("bad.toml", "none.toml", "bytes.toml", "long.toml")]
    with pytest.raises(BadScenario) as caught:
        load([*files, str(tmp_path)])
    assert [str(it).replace(f"{tmp_path}", "") for it in caught.value.problems] == [
        "/bad.toml:7:1: expected a dtype, got 'float3'; did you mean `float32`?",
        "/bad.toml:13:1: expected a list, got 3",
        "/none.toml: No such file or directory",
        "/bytes.toml:2:1: no UTF-8",
        "/long.toml: longer than 1,048,576 bytes",
        ": Is a directory",
    ]


def test_a_matrix_of_a_million_is_refused_without_being_made() -> None:
    rows = "\n".join(f"m{it} = {list(range(100))}" for it in range(3))
    with pytest.raises(BadScenario, match=r"it.toml:13:1: 1,000,000 cases; at most 10,000"):
        cases_in(f"{GOOD}[matrix]\n{rows}", "it.toml")
    with pytest.raises(BadScenario, match=r"it.toml:14:1: 20,000 cases; at most 10,000"):
        cases_in(f"repeat = 10000\n{GOOD}[matrix]\na = [1, 2]", "it.toml")


def test_deep_nesting_is_refused() -> None:
    with pytest.raises(BadScenario, match="nested too deep"):
        cases_in('{"a":' * 100_000, "it.json")
    with pytest.raises(BadScenario):
        cases_in("a = " + "[" * 100_000, "it.toml")


def test_json_is_the_same_data_and_says_what_stands_twice() -> None:
    data: dict[str, Any] = {
        "format": 1,
        "name": "a sum",
        "gang": {"size": 4},
        "groups": {"pair": [0, 1]},
        "tensors": {"x": {"dtype": "float32", "shape": [2, 3]}},
        "step": [{"call": "all_reduce", "of": "x"}],
    }
    (toml,), (other,) = cases_in(GOOD, "it.toml"), cases_in(json.dumps(data, indent=1), "it.json")
    assert toml.data == other.data == data
    with pytest.raises(BadScenario, match=r"it.json:1:15: `format` stands twice"):
        cases_in('{"format": 1, "format": 2}', "it.json")
    with pytest.raises(BadScenario, match=r"it.json:1:10: Expecting ',' delimiter"):
        cases_in('{"a": [1 }', "it.json")


def test_a_matrix_makes_a_case_of_each_combination_with_references_resolved(tmp_path: Path) -> None:
    write_examples(tmp_path)
    cases = load([str(tmp_path / f"{it}.toml") for it in NAMES])
    assert len(cases) == 24
    last = cases[-2]
    assert last.name == "gathering unequal rows [size=3 backend=gloo dtype=complex64]"
    assert (last.size, last.backend, last.data["tensors"]["rows"]["dtype"]) == (3, "gloo", "complex64")
    assert last.data["tensors"]["rows"]["shape"] == ["$rank", 3]
    assert last.lines == [18]


def test_a_gang_is_on_gloo_only_where_something_happens_to_its_processes() -> None:
    assert cases_in(GOOD, "it.toml")[0].backend == "fake"
    assert (
        cases_in(GOOD + "fault = { kill = [1] }\nexpect.error = 'PEER_LOST'", "it.toml")[0].backend == "gloo"
    )
    with pytest.raises(BadScenario, match="ranks on the backend fake share one process"):
        cases_in(GOOD.replace("size = 4", 'size = 4, backend = "fake"') + "fault = { kill = [1] }", "it.toml")


def test_examples_are_not_written_over_what_is_there(tmp_path: Path) -> None:
    (tmp_path / "killed.toml").write_text("mine")
    with pytest.raises(FileExistsError):
        write_examples(tmp_path)
    assert [it.name for it in tmp_path.iterdir()] == ["killed.toml"]
