"""The Python examples of docs/, each with the names that its page takes for granted."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.conftest import PATIENT
from tests.support.gangs import RunningGang, up
from tests.support.waiting import until

import rankbridge
from rankbridge import Gang, Ref

DOCS = Path(__file__).resolve().parents[2] / "docs"
ELSEWHERE = {
    "asyncio": 1,
    "attach": 2,
    "functions": 2,
    "groups_and_meshes": 1,
    "harness": 1,
    "hold": 1,
    "streams": 2,
    "tls": 1,
}
"""How many examples of a page other tests run."""
HERE = {
    "events": 2,
    "gang_calls": 1,
    "graphs": 1,
    "group_coordinator": 2,
    "objects": 1,
    "point_to_point": 1,
    "programs": 1,
    "queues": 1,
    "record": 3,
    "tensors": 1,
}


def examples(page: str) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", (DOCS / f"{page}.md").read_text(), re.MULTILINE | re.DOTALL)


def test_every_example_is_run_somewhere() -> None:
    found = {path.stem: len(examples(path.stem)) for path in DOCS.glob("*.md")}
    assert {page: count for page, count in found.items() if count} == ELSEWHERE | HERE


def given(gang: Gang) -> dict[str, Any]:
    """The names that pages take for granted: a gang of four, a tensor on each rank."""
    refs = gang.put([np.full(2, rank, np.float32) for rank in range(4)])
    counts = gang.put([np.full((1, 3), rank, np.int64) for rank in range(4)])
    gradients = gang.put([np.full(8, rank, np.float32) for rank in range(4)])
    array = np.ones(1 << 20, np.uint8)
    return {
        "rankbridge": rankbridge,
        "np": np,
        "numpy": np,
        "gang": gang,
        "refs": refs,
        "counts": counts,
        "gradients": gradients,
        "array": array,
    }


@pytest.mark.parametrize("page", sorted(HERE.keys() - {"events"}))
def test_the_examples_of_a_page(
    page: str, gloo4: RunningGang, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "endpoints.json").symlink_to(gloo4.endpoints_file)
    monkeypatch.chdir(tmp_path)
    with rankbridge.connect(gloo4.description, timeout=60) as gang:
        names = given(gang)
        for example in examples(page):
            # A group that an example destroys at its end is the next one's, too.
            exec(example.replace("tp.destroy()\n", ""), names)
        if page == "programs":
            assert _values(gang, names["totals"]) == [[[6] * 3]] * 4
        if page == "group_coordinator":
            assert _values(gang, names["shifted"]) == [[1.0] * 2, [0.0] * 2, [3.0] * 2, [2.0] * 2]
            names["tp"].destroy()
        if isinstance(names["gang"], Gang) and names["gang"] is not gang:
            names["gang"].close()


def _values(gang: Gang, refs: Sequence[Ref]) -> list[Any]:
    return [np.asarray(it).tolist() for it in gang.get(refs)]


def test_the_examples_on_events(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    first, again = examples("events")
    monkeypatch.chdir(tmp_path)
    printed = ""

    def has_printed(text: str) -> bool:
        nonlocal printed
        printed += capsys.readouterr().out
        return text in printed

    with up(tmp_path, 2, "fake", PATIENT) as running:
        os.symlink(running.endpoints_file, "endpoints.json")
        names: dict[str, Any] = {"rankbridge": rankbridge}
        watching = threading.Thread(target=exec, args=(first, names))
        watching.start()
        with rankbridge.connect(running.description) as gang:
            until(lambda: "events" in names)
            gang[0].submit("barrier", operation_id="alone", timeout=60)
            until(lambda: has_printed("barrier on world waits for ranks (1,) since"))
            gang.form()
            until(lambda: has_printed("rank 1: "))
            exec(again, {**names, "gang": gang})
    watching.join(60)
    assert not watching.is_alive()
