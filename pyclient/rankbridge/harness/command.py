"""What `rankbridge test` does: reads scenarios, runs them, reports."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from rankbridge import at_site
from rankbridge.harness.again import first_failed, record, record_smaller
from rankbridge.harness.cases import Case, load
from rankbridge.harness.gangs import NoGang, Pool
from rankbridge.harness.known import KnownFailing, load_known
from rankbridge.harness.problems import BadScenario
from rankbridge.harness.reports import JsonLines, Report, Tap, junit
from rankbridge.harness.running import Result, results_of, run
from rankbridge.harness.writing import NoWord

OK, FAILED, BAD_SCENARIO, NO_GANG = range(4)


def run_files(
    files: Sequence[str],
    *,
    report: str = "tap",
    junit_file: Path | None = None,
    known_failing: str | None = None,
    record_file: Path | None = None,
    shrunk_file: Path | None = None,
    still: tuple[int, int] = (2, 3),
    out: IO[str] = sys.stdout,
    complaints: IO[str] = sys.stderr,
) -> int:
    """Runs the scenarios of files.

    Args:
        files: Their names.
        report: "tap" or "json".
        junit_file: Where results are written as JUnit's XML, too.
        known_failing: Name of a file with what is known to fail.
        record_file: Where the first run that fails is written as a scenario.
        shrunk_file: Where the smallest scenario that fails the same way is written.
        still: A smaller one counts if it fails the same way in so many of so many runs.
        out: Where results go.
        complaints: Where problems of files go, and what was recorded.

    Returns:
        0: all is as it should be. 1: something failed. 2: a file cannot be run, and nothing has run, or none can be
        written. 3: a gang did not start.
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
        # A failure shows its line in the scenario.
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
    if record_file is not None or shrunk_file is not None:
        try:
            _record(cases, results, record_file, shrunk_file, still, complaints)
        except (OSError, NoWord) as error:
            print(f"the scenario cannot be written: {error}", file=complaints)
            status = status or BAD_SCENARIO
    return status or (FAILED if any(it.counts_as_failed for it in results) else OK)


def _record(
    cases: Sequence[Case],
    results: Sequence[Result],
    record_file: Path | None,
    shrunk_file: Path | None,
    still: tuple[int, int],
    complaints: IO[str],
) -> None:
    failed = first_failed(cases, results)
    if failed is None:
        print("nothing failed: no scenario is written", file=complaints)
        return
    if record_file is not None:
        record(*failed, record_file)
        print(f"{record_file}: {failed[1].name}", file=complaints)
    if shrunk_file is not None:

        def say(text: str) -> None:
            print(text, file=complaints, flush=True)

        say(record_smaller(*failed, shrunk_file, still, say))
