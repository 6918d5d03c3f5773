"""What `rankbridge test --conformance` does."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from rankbridge.harness.conformance.page import Text
from rankbridge.harness.conformance.running import probes, run_probes
from rankbridge.harness.conformance.verdicts import BAD, NOT_RUN
from rankbridge.harness.gangs import NoGang, Pool
from rankbridge.harness.reports import JsonLines, Report, Tap, junit
from rankbridge.harness.running import Result

OK, FAILED, NO_CASE, NO_GANG = range(4)


def report_on(
    backend: str,
    *,
    patterns: Sequence[str] = ("*",),
    report: str = "text",
    junit_file: Path | None = None,
    out: IO[str] = sys.stdout,
    complaints: IO[str] = sys.stderr,
) -> int:
    """Runs the cases that come with rankbridge on a backend, and reports.

    Args:
        backend: As of `rankbridge up --backend`.
        patterns: Of shells: cases whose names match any of them.
        report: "text", "tap" or "json".
        junit_file: Where results are written as JUnit's XML, too.
        out: Where results go.
        complaints: Where it is said that nothing could run.

    Returns:
        0: all is right, or unsupported. 1: something is not. 2: no case matches. 3: a gang did not start.
    """
    chosen = probes(patterns)
    if not chosen:
        print(f"no case matches {' or '.join(patterns)}", file=complaints)
        return NO_CASE
    text = Text(out, backend)
    reporters: dict[str, Report] = {"text": text, "tap": Tap(out), "json": JsonLines(out)}
    reporter = reporters[report]
    reporter.begin(len(chosen))
    results: list[Result] = []
    status = OK
    try:
        with Pool() as pool:
            for result in run_probes(chosen, backend, pool):
                results.append(result)
                reporter.result(result)
    except NoGang as error:
        reporter.stop(str(error))
        status = NO_GANG
    if reporter is text:
        text.end()
    if junit_file is not None:
        junit_file.write_text(junit(results))
    return status or (FAILED if any(it.labels["verdict"] in (*BAD, NOT_RUN) for it in results) else OK)
