"""The judge of chaos measures what it says, and counts as leaks what is one."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from random import Random
from typing import IO, cast

import numpy as np
import pytest
from tests.chaos.faults.kinds import FAULTS
from tests.chaos.findings import Findings
from tests.chaos.newcomers import SLACK, count_leaks
from tests.chaos.operations import Operation
from tests.chaos.plan import Round
from tests.chaos.run import run
from tests.chaos.scene import Scene
from tests.chaos.stage import scene
from tests.chaos.table import table
from tests.support.gangs import RunningGang

from rankbridge import Gang
from rankbridge.harness.usage import Usage, usage
from rankbridge_server.core.shared_memory.memory import make_shared_memory

SIZE = 2


@contextmanager
def idle(*holding: Path, segments: int = 0) -> Iterator[int]:
    """The pid of a process that has files and segments open, and holds the same all the time."""
    with ExitStack() as stack:
        files: list[IO[bytes]] = [stack.enter_context(path.open("wb")) for path in holding]
        for _ in range(segments):
            made = make_shared_memory(1)
            stack.callback(made.close)
            files.append(stack.enter_context(made.path.open("rb")))
        process = stack.enter_context(
            subprocess.Popen(
                ["cat"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                pass_fds=[it.fileno() for it in files],
            )
        )
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"\n")
        process.stdin.flush()
        assert process.stdout.read(1) == b"\n"
        yield process.pid
        process.stdin.close()


@pytest.mark.sampled
def test_tensors_are_judged_when_it_is_known_how_long_the_gang_was_not_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    judge, whole_after = Scene.judge, Findings.whole_after

    def judged(self: Scene, *args: object, **options: object) -> None:
        seen.append("judged")
        judge(self, *args, **options)  # type: ignore[arg-type]

    def whole(self: Findings, seconds: float) -> None:
        seen.append("whole")
        whole_after(self, seconds)

    monkeypatch.setattr(Scene, "judge", judged)
    monkeypatch.setattr(Findings, "whole_after", whole)
    random = Random(1)
    operation = Operation("all_reduce", "int32", 3, 1, {"op": "sum"})
    orders = {}
    for number, fault in enumerate(FAULTS):
        it = Round(number, SIZE, ("python",) * SIZE, (), operation, "world", fault.draw(random, SIZE))
        report = run([it], tmp_path, lambda line: None)
        assert report.findings.held, table(report)
        if fault.kind not in report.findings.unavailable:
            orders[fault.kind] = seen.copy()
        seen.clear()
    assert {kind for kind, order in orders.items() if order.index("whole") > 0} == set()
    assert all(order.count("whole") == 1 and "judged" in order for order in orders.values())


def test_segments_are_counted_apart_from_other_descriptors(tmp_path: Path) -> None:
    with idle() as pid:
        without = usage(pid)
    with idle(tmp_path / "other", segments=2) as pid:
        now = usage(pid)
    assert (now.fds, now.segments) == (without.fds + 1, 2)


def test_more_segments_than_are_of_use_are_found() -> None:
    findings = Findings()
    with idle(segments=1) as pid:
        it = Scene(cast(Gang, [None]), cast(RunningGang, None), findings, pids=[pid])
        it.baseline[pid] = usage(pid)
        count_leaks(it, seconds=0.0)
    assert len(findings.leaks) == 1
    assert "0 segments of shared memory, and holds 1" in findings.leaks[0]


def test_what_is_tolerated_is_not_waited_for() -> None:
    with idle() as pid:
        now = usage(pid)
        it = Scene(cast(Gang, [None]), cast(RunningGang, None), Findings(), pids=[pid])
        it.baseline[pid] = Usage(now.threads - SLACK, now.fds - SLACK, 0)
        begun = time.monotonic()
        count_leaks(it, seconds=30.0)
        assert time.monotonic() - begun < 15.0
    assert it.findings.held


def test_ranks_that_are_new_have_moved_a_large_tensor(tmp_path: Path) -> None:
    findings = Findings()
    with scene(tmp_path, SIZE, findings) as it:
        assert all(it.baseline[pid].segments for pid in it.pids)
        arrays = [np.full(mib << 20, mib, np.uint8) for mib in (1, 8, 9, 16, 25, 40)]
        for array in arrays:
            refs = it.gang.put([array] * SIZE)
            assert all(np.array_equal(np.asarray(got), array) for got in it.gang.get(refs))
            it.gang.release(refs)
        count_leaks(it)
    assert findings.held, findings.all
