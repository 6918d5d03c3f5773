"""What `rankbridge test` does: reads scenarios, runs them, reports."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from rankbridge import at_site
from rankbridge.harness.cases import load
from rankbridge.harness.gangs import NoGang, Pool
from rankbridge.harness.known import KnownFailing, load_known
from rankbridge.harness.problems import BadScenario
from rankbridge.harness.reports import JsonLines, Report, Tap, junit
from rankbridge.harness.running import Result, results_of, run

OK, FAILED, BAD_SCENARIO, NO_GANG = range(4)


def run_files(
    files: Sequence[str],
    *,
    report: str = "tap",
    junit_file: Path | None = None,
    known_failing: str | None = None,
    out: IO[str] = sys.stdout,
    complaints: IO[str] = sys.stderr,
) -> int:
    """Runs the scenarios of files.

    Args:
        files: Their names.
        report: "tap" or "json".
        junit_file: Where results are written as JUnit's XML, too.
        known_failing: Name of a file with what is known to fail.
        out: Where results go.
        complaints: Where problems of files go.

    Returns:
        0: all is as it should be. 1: something failed. 2: a file cannot be run, and nothing has run. 3: a gang did
        not start.
    """
    try:
        known = load_known(known_failing) if known_failing else KnownFailing()
        cases = load(files)
    except BadScenario as error:
        print(error, file=complaints)
        return BAD_SCENARIO
    for pattern in known.unused([it.name for it in cases]):
        print(f"{known_failing}: no case is named {pattern}", file=complaints)
    reporter: Report = JsonLines(out) if report == "json" else Tap(out)
    reporter.begin(results_of(cases))
    results: list[Result] = []
    status = OK
    try:
        # What fails is told by its line in the scenario.
        with at_site(""), Pool() as pool:
            for result in run(cases, pool):
                result.known = known.reason(result.case)
                results.append(result)
                reporter.result(result)
    except NoGang as error:
        reporter.stop(str(error))
        status = NO_GANG
    if junit_file is not None:
        junit_file.write_text(junit(results))
    return status or (FAILED if any(it.counts_as_failed for it in results) else OK)
