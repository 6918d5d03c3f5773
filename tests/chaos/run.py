"""Running a plan."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from tests.chaos.findings import Findings
from tests.chaos.plan import Round
from tests.chaos.scene import GangBrokenError, Scene, scene
from tests.chaos.usage import Usage

from rankbridge import RankBridgeError


@dataclass
class Report:
    """How a run went. `usage`: what each process held when it was new, and at the end."""

    findings: Findings = field(default_factory=Findings)
    usage: list[tuple[Usage, Usage]] = field(default_factory=list)
    formed: int = 0
    retried: int = 0
    done: int = 0


def run(rounds: Sequence[Round], directory: Path, say: Callable[[str], None]) -> Report:
    """Runs all rounds, each on the gang of its size. Ends early when a gang cannot be made whole.

    Args:
        rounds: The plan.
        directory: Where gangs write their endpoints.
        say: Gets a line before each round.
    """
    report = Report()
    with ExitStack() as stack:
        scenes = {
            size: stack.enter_context(scene(directory, size, report.findings))
            for size in sorted({it.size for it in rounds})
        }
        try:
            for it in rounds:
                say(str(it))
                _round(it, scenes[it.size], report.findings)
                report.done += 1
        except GangBrokenError as error:
            say(f"cannot go on: {error}")
        else:
            _count_leaks(scenes.values(), report)
        report.formed = sum(it.formed for it in scenes.values())
        report.retried = sum(it.retried for it in scenes.values())
    return report


def _round(it: Round, scene: Scene, findings: Findings) -> None:
    findings.where, scene.kind = str(it), it.fault.kind
    for operation, group in it.good:
        scene.good(operation, group)
    findings.times[it.fault.kind].rounds += 1
    try:
        it.fault.happen(scene, it.operation, it.group)
    except RankBridgeError as error:
        # A call that must work did not, whatever the fault was.
        findings.wrong_error(f"{type(error).__name__}: {error}")
        scene.make_whole(time.monotonic(), 0, replaced={it.fault.victim})


def _count_leaks(scenes: Iterable[Scene], report: Report) -> None:
    for it in scenes:
        report.findings.where = f"{it.size} ranks, after all rounds"
        report.usage.extend(it.count_leaks().values())
