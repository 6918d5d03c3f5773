"""Lines of code that call, as the record of a watched job and torch's own recorder have them."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
import torch

from rankbridge_server.doctor.contract_texts import frame_of
from rankbridge_server.doctor.evidence import Frame
from rankbridge_server.doctor.stacks import called_from
from rankbridge_server.job.outside import rings
from rankbridge_server.job.watch.recorder import Recorder
from rankbridge_server.job.watch.ring import NO_SHAPE, Ring
from rankbridge_server.job.watch.sites import Site

LIBRARY = """
def gather(call):
    return call()

def deep(call, depth):
    return deep(call, depth - 1) if depth else call()
"""
SCRIPT = """
def step(library, call):
    return library.gather(call)

def far(library, call, depth):
    return library.deep(call, depth)
"""


def module(folder: Path, name: str, text: str) -> Any:
    path = folder / f"{name}.py"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    it = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(it)
    return it


@pytest.fixture
def library(tmp_path: Path) -> Any:
    return module(tmp_path / "lib/site-packages/trainer", "loop", LIBRARY)


@pytest.fixture
def script(tmp_path: Path) -> Any:
    return module(tmp_path, "train", SCRIPT)


@pytest.fixture
def recorder(tmp_path: Path) -> Recorder:
    it = Recorder(torch)
    it.written = Ring.create(tmp_path / "record", 0, 1)
    return it


def calling(recorder: Recorder) -> Callable[[], Site]:
    """A function that asks for the line that has called it."""

    def call() -> Site:
        frame: FrameType | None = sys._getframe(1)
        return recorder.site(frame)

    return call


def recorded(recorder: Recorder, site: Site) -> str:
    ring = recorder.written
    assert ring is not None
    group = ring.text({"group": "0", "ranks": [0], "description": ""})
    ring.begin(1.0, 1, 1, 0, 0, 0, group, 0, site.number, -1, -1, -1, -1, 0, NO_SHAPE)
    return str(rings.read(ring.path).calls[-1].site)


def test_a_line_of_the_script_is_its_own(recorder: Recorder, script: Any, tmp_path: Path) -> None:
    plain = module(tmp_path, "loop", LIBRARY)
    site = script.step(plain, calling(recorder))
    assert site.text == f"{tmp_path}/loop.py:3"
    assert recorded(recorder, site) == "gather loop.py:3"


def test_a_line_of_a_library_has_the_scripts(
    recorder: Recorder, script: Any, library: Any, tmp_path: Path
) -> None:
    sites = [script.step(library, calling(recorder)) for _ in range(2)]
    assert sites[0].text == f"loop.py:3 < {tmp_path}/train.py:3"
    assert recorded(recorder, sites[0]) == "gather loop.py:3 < step train.py:3"
    assert sites[1] is sites[0]


def test_one_line_of_a_library_has_that_of_each_script(recorder: Recorder, script: Any, library: Any) -> None:
    call = calling(recorder)
    texts = [script.step(library, call).text, script.far(library, call, 0).text, library.gather(call).text]
    assert [it.partition(" < ")[0] for it in texts] == ["loop.py:3", "loop.py:6", "loop.py:3"]
    assert [Path(it.partition(" < ")[2]).name for it in texts] == [
        "train.py:3",
        "train.py:6",
        f"{Path(__file__).name}:{_line_of('library.gather(call).text')}",
    ]


def test_a_script_that_is_too_far_is_not_looked_for(
    recorder: Recorder, script: Any, library: Any, tmp_path: Path
) -> None:
    call = calling(recorder)
    assert script.far(library, call, 11).text.endswith(f"{tmp_path}/train.py:6")
    assert script.far(library, call, 12).text == f"{library.__spec__.origin}:6"


def _line_of(text: str) -> int:
    lines = Path(__file__).read_text().splitlines()
    return next(number for number, it in enumerate(lines, 1) if text in it)


def test_a_text_of_a_line_is_read_back() -> None:
    assert str(frame_of("/a/train.py:88")) == "train.py:88"
    assert str(frame_of("loop.py:7 < /a/train.py:88")) == "loop.py:7 < train.py:88"
    assert frame_of("nowhere") is None


def test_a_stack_of_torchs_recorder_has_the_line_of_the_library_and_the_scripts() -> None:
    torchs = Frame(name="all_reduce", file="/a/site-packages/torch/distributed/c10d.py", line=1)
    loop = Frame(name="sync", file="/a/site-packages/trainer/loop.py", line=7)
    fit = Frame(name="fit", file="/a/site-packages/trainer/fit.py", line=9)
    script = Frame(name="step", file="/b/train.py", line=88)
    assert called_from([torchs]) is None
    assert called_from([torchs, script]) == script
    assert called_from([torchs, loop, fit]) == loop
    assert str(called_from([torchs, loop, fit, script])) == "sync loop.py:7 < step train.py:88"
