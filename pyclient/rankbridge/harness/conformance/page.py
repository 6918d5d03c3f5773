"""The report for people: each operation and its dtypes by what came of them, then every case that was not right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import IO

from rankbridge.harness.conformance.verdicts import ALL, BAD, NOT_RUN, RIGHT, UNSUPPORTED
from rankbridge.harness.running import Result


class Text:
    """Prints what is not right as it comes, and the tables at the end."""

    def __init__(self, out: IO[str], backend: str) -> None:
        """Writes nothing yet."""
        self._out = out
        self._backend = backend
        self._results: list[Result] = []

    def begin(self, count: int) -> None:
        """How many come."""
        self._print(f"{self._backend}: {count} cases on 4 ranks")

    def result(self, result: Result) -> None:
        """One result."""
        self._results.append(result)
        verdict = result.labels["verdict"]
        if verdict in (*BAD, NOT_RUN) and result.status == "failed":
            self._print(f"\n{verdict}: {result.name}")
            for it in result.failures:
                self._print("    " + str(it).replace("\n", "\n    "))

    def stop(self, reason: str) -> None:
        """No more results come."""
        self._print(f"stopped: {reason}")

    def end(self) -> None:
        """The tables, and how many there are of each."""
        self._print("")
        for line in table(self._results):
            self._print(line)
        self._print(f"\n{self._backend}: {counted(it.labels['verdict'] for it in self._results)}")

    def _print(self, line: str) -> None:
        print(line, file=self._out, flush=True)


def table(results: Sequence[Result]) -> list[str]:
    """Gives a line for each operation by dtype, and one for each of the other parts."""
    lines = []
    values = [it for it in results if it.labels["part"] == "values"]
    rows = dict.fromkeys(it.labels["operation"] for it in values)
    parts = dict.fromkeys(it.labels["part"] for it in results if it.labels["part"] != "values")
    width = max((len(it) for it in (*rows, *parts)), default=0)
    for row in rows:
        lines.append(f"{row:<{width}}  {_by_dtype([it for it in values if it.labels['operation'] == row])}")
    for part in parts:
        them = [it.labels["verdict"] for it in results if it.labels["part"] == part]
        lines.append(f"{part:<{width}}  {counted(them)}")
    return lines


def _by_dtype(results: Sequence[Result]) -> str:
    if len(results) == 1 and not results[0].labels["dtype"]:
        return results[0].labels["verdict"]
    dtypes = {
        verdict: [it.labels["dtype"] for it in results if it.labels["verdict"] == verdict] for verdict in ALL
    }
    if len(dtypes[RIGHT]) == len(results) or len(dtypes[UNSUPPORTED]) == len(results):
        return f"{RIGHT if dtypes[RIGHT] else UNSUPPORTED}: all {len(results)} dtypes"
    some = [f"{verdict}: {', '.join(them)}" for verdict, them in dtypes.items() if them and verdict != RIGHT]
    return "; ".join([f"{RIGHT}: {len(dtypes[RIGHT])} of {len(results)}", *some])


def counted(verdicts: Iterable[str]) -> str:
    """Gives how many there are of each word."""
    counts = Counter(verdicts)
    return ", ".join(f"{counts[it]} {it}" for it in ALL if counts[it])
