"""A run that failed, written as a scenario that repeats it, or as the smallest one that does."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from rankbridge.errors import ErrorCode
from rankbridge.harness.cases import Case, cases_in
from rankbridge.harness.concrete import concrete
from rankbridge.harness.gangs import NoGang, Pool
from rankbridge.harness.problems import BadScenario
from rankbridge.harness.running import Result, run_once
from rankbridge.harness.shrinking import shrink
from rankbridge.harness.writing import write

_CODES = re.compile(rf"\b({'|'.join(ErrorCode)})\b")

How = tuple[str, ...]
"""How a run failed: the expectation, and the errors that its text names."""


def how(result: Result) -> How:
    """Says how a run failed, as far as another run can fail the same way; of one that did not: nothing."""
    if not result.failures:
        return ()
    first = result.failures[0]
    return first.word, *sorted(set(_CODES.findall(first.text.partition("\n")[0])))


def first_failed(cases: Sequence[Case], results: Sequence[Result]) -> tuple[Case, Result] | None:
    """Gives the first run that failed and was not known to; None: there is none."""
    by_name = {(it.file, it.name): it for it in cases}
    failed = (it for it in results if it.status == "failed" and not it.known and it.repetition is not None)
    first = next(failed, None)
    return None if first is None else (by_name[first.file, first.case], first)


def record(case: Case, result: Result, path: Path) -> None:
    """Writes a run that failed as a scenario of its own.

    Raises:
        OSError, NoWord: It cannot be written.
    """
    assert result.repetition is not None
    write(path, concrete(case, result.repetition, path.absolute().parent), _comments(result))


def record_smaller(
    case: Case, result: Result, path: Path, still: tuple[int, int], say: Callable[[str], None]
) -> str:
    """Writes the smallest scenario that was found to fail the same way as a run.

    Args:
        case: The case.
        result: The run.
        path: The file. An interrupt ends the search, and the smallest so far is written.
        still: A smaller one counts if it fails the same way in so many of so many runs.
        say: Gets a line for each smaller one.

    Returns:
        What came of it, in words.

    Raises:
        OSError, NoWord: It cannot be written.
    """
    assert result.repetition is not None
    data = concrete(case, result.repetition, path.absolute().parent)
    wanted, count = how(result), 0
    smallest: dict[str, Any] | None = None

    def fails(candidate: dict[str, Any]) -> bool:
        nonlocal count, smallest
        count += 1
        if not fails_so(candidate, wanted, path, still, pool):
            return False
        smallest = candidate
        say(f"{_size(candidate)}, after {count} tries")
        return True

    with Pool() as pool, suppress(KeyboardInterrupt):
        if fails(data):
            smallest = shrink(data, fails)
    write(path, smallest or data, _comments(result))
    if smallest is None:
        return f"{path}: as it was: it did not fail again in {still[0]} of {still[1]} runs"
    return f"{path}: {_size(smallest)} of {len(json.dumps(data))}, after {count} tries"


def _size(data: dict[str, Any]) -> str:
    steps, ranks = len(data["step"]), data["gang"]["size"]
    return f"{steps} steps, {ranks} ranks, {len(json.dumps(data))} characters"


def fails_so(data: dict[str, Any], wanted: How, path: Path, still: tuple[int, int], pool: Pool) -> bool:
    """Tells whether a scenario fails in a given way, in so many of so many runs. One that cannot be run does not."""
    try:
        (case,) = cases_in(json.dumps(data), str(path.absolute().with_suffix(".json")))
    except BadScenario:
        return False
    enough, runs = still
    failed = 0
    for done in range(runs):
        try:
            failed += how(run_once(case, 0, pool, set())) == wanted
        except NoGang:
            return False
        if failed >= enough or failed + runs - done - 1 < enough:
            break
    return failed >= enough


def _comments(result: Result) -> list[str]:
    place = f"{result.file}:{result.line}" if result.line else result.file
    said = [str(it).partition("\n")[0] for it in result.failures[:1]]
    # The id of an operation is another in each run.
    return [f"Of {place}, which failed: {re.sub(r' [(][0-9a-f]{32}[)]', '', it)}" for it in said]
