"""Running a plan."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from tests.chaos.controllers.held import Held
from tests.chaos.controllers.process import ElixirProcess, compile_client
from tests.chaos.findings import Findings
from tests.chaos.newcomers import count_leaks
from tests.chaos.pending import GangBrokenError
from tests.chaos.plan import Round
from tests.chaos.scene import Scene
from tests.chaos.stage import scene
from tests.chaos.wholeness import make_whole
from tests.chaos.written import write_round

from rankbridge import RankBridgeError
from rankbridge.harness.usage import Usage


@dataclass
class Report:
    """How a run went.

    `usage`: what each rank's process held when it was new, and at the end. `held`: what the Elixir controller did.
    """

    findings: Findings = field(default_factory=Findings)
    usage: list[tuple[Usage, Usage]] = field(default_factory=list)
    held: tuple[Held, Held] | None = None
    formed: int = 0
    retried: int = 0
    done: int = 0


def run(
    rounds: Sequence[Round],
    directory: Path,
    say: Callable[[str], None],
    record: Path | None = None,
    backend: str = "gloo",
) -> Report:
    """Runs all rounds, each on the gang of its size. Ends early when a gang or a controller cannot go on.

    Args:
        rounds: The plan.
        directory: Where gangs write their endpoints.
        say: Gets a line before each round.
        record: Folder in which a round that does not hold is written as a scenario.
        backend: What moves the data.

    Raises:
        ElixirMissingError: The plan has operations of the Elixir client, and it is not there.
    """
    report = Report()
    elixir: ElixirProcess | None = None
    if any("elixir" in it.callers for it in rounds):
        compile_client()
        elixir = ElixirProcess(directory / "elixir.log")
    try:
        with ExitStack() as stack:
            if elixir is not None:
                stack.enter_context(elixir)
            sizes = sorted({it.size for it in rounds})
            scenes = {
                size: stack.enter_context(scene(directory, size, report.findings, elixir, backend))
                for size in sizes
            }
            _rounds(rounds, scenes, elixir, report, say, record, backend)
    except TimeoutError as error:
        # A controller is silent, or gone: what ranks answer, or do not, is another error.
        report.findings.hang(str(error))
        say(f"cannot go on: {error}")
    else:
        if elixir is not None and elixir.lost:
            report.findings.hang(
                "the Elixir controller left something unanswered, or did not end with its input"
            )
    if elixir is not None and (logged := elixir.logged()):
        report.findings.where = "the Elixir controller's log"
        report.findings.wrong_error(logged)
    return report


def _rounds(
    rounds: Sequence[Round],
    scenes: dict[int, Scene],
    elixir: ElixirProcess | None,
    report: Report,
    say: Callable[[str], None],
    record: Path | None,
    backend: str,
) -> None:
    new = Held.by(elixir) if elixir else None
    try:
        for it in rounds:
            say(str(it))
            found = len(report.findings.all)
            try:
                _round(it, scenes[it.size], report.findings)
            finally:
                if record is not None and len(report.findings.all) > found:
                    say(f"did not hold: rankbridge test {write_round(it, record, backend)}")
            report.done += 1
    except GangBrokenError as error:
        say(f"cannot go on: {error}")
    else:
        _count_leaks(scenes.values(), report)
        if elixir and new:
            report.held = new, new.count_leaks(elixir, report.findings)
    finally:
        report.formed = sum(it.formed for it in scenes.values())
        report.retried = sum(it.retried for it in scenes.values())


def _round(it: Round, scene: Scene, findings: Findings) -> None:
    findings.begin_round(it.fault.kind, it.client, str(it))
    scene.callers = it.callers
    try:
        for operation, group in it.good:
            scene.good(operation, group)
        it.fault.happen(scene, it.operation, it.group)
    except RankBridgeError as error:
        # A call that must work did not, whatever the fault was.
        findings.wrong_error(f"{type(error).__name__}: {error}")
        make_whole(scene, time.monotonic(), 0, replaced={it.fault.victim})


def _count_leaks(scenes: Iterable[Scene], report: Report) -> None:
    for it in scenes:
        report.findings.where = f"{it.size} ranks, after all rounds"
        report.usage.extend(count_leaks(it).values())
