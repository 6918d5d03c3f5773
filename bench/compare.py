"""Two trees of this project in turn, in one run: `python -m bench.compare OLD`.

OLD is the root of another checkout that has been set up (`make setup` there). Each tree starts a gang of 4 ranks on
Gloo with its own server and drives it with its own client; for each row both are timed after each other, round by
round, and the order changes with each round. Prints the medians and the ratio of the rounds, new to old.
"""

from __future__ import annotations

import argparse
import asyncio
import atexit
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
WORLD = 4
_DEADLINE_S = 60.0
_WARM = 20

Row = Callable[[], float]


def main() -> int:
    """Compares; gives the exit status."""
    parser = argparse.ArgumentParser(prog="python -m bench.compare", description=__doc__)
    parser.add_argument("old", type=Path, metavar="OLD", help="root of the other checkout")
    parser.add_argument("--rounds", type=int, default=15, metavar="N", help="(default: %(default)s)")
    parser.add_argument("--only", metavar="TEXT", default="", help="rows whose names have this in them")
    parser.add_argument("--drive", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.drive:
        drive(asked.drive)
        return 0
    with ExitStack() as stack:
        old, new = (stack.enter_context(Tree.started(root)) for root in (asked.old.resolve(), ROOT))
        print("| call | old, us | new, us | new / old | in rounds |\n| --- | --- | --- | --- | --- |")
        for row in (it for it in old.rows if asked.only in it):
            print(compared(row, old, new, asked.rounds), flush=True)
    return 0


def compared(row: str, old: Tree, new: Tree, rounds: int) -> str:
    """One line of the table."""
    seconds: dict[Tree, list[float]] = {old: [], new: []}
    for tree in (old, new):
        tree.time(row)
    for number in range(rounds):
        for tree in (old, new) if number % 2 else (new, old):
            seconds[tree].append(tree.time(row))
    ratios = [ours / theirs for theirs, ours in zip(seconds[old], seconds[new], strict=True)]
    medians = " | ".join(f"{statistics.median(seconds[tree]) * 1e6:,.0f}" for tree in (old, new))
    return f"| {row} | {medians} | {statistics.median(ratios):.2f} | {min(ratios):.2f} to {max(ratios):.2f} |"


class Tree:
    """A process that times calls with the client and the server of one checkout."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.rows: list[str] = self._answer()

    @classmethod
    @contextmanager
    def started(cls, root: Path) -> Iterator[Tree]:
        """Runs the process of a checkout, in its own environment."""
        command = [str(root / ".venv" / "bin" / "python"), __file__, "-", "--drive", str(root)]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=root
        ) as process:
            try:
                yield cls(process)
            finally:
                process.communicate()

    def time(self, row: str) -> float:
        """Seconds of one call, the mean of some."""
        assert self._process.stdin is not None
        print(row, file=self._process.stdin, flush=True)
        seconds: float = self._answer()
        return seconds

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        if not (line := self._process.stdout.readline()):
            raise RuntimeError(f"{self._process.args!r} has ended: {self._process.wait()}")
        return json.loads(line)


def drive(root: Path) -> None:
    """Runs a gang of this interpreter's environment, and times the rows that standard input names."""
    rankbridge = str(root / ".venv" / "bin" / "rankbridge")
    command = [rankbridge, "up", "--size", str(WORLD), "--exit-on-stdin-close"]
    with subprocess.Popen(
        [*command, "--report", "json"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as up:
        assert up.stdout is not None
        reports = (json.loads(line) for line in up.stdout)
        ready = next(report for report in reports if report["event"] == "ready")
        targets = [rank["endpoints"] for rank in ready["ranks"]]
        rows = rows_of(targets)
        print(json.dumps(list(rows)), flush=True)
        for line in sys.stdin:
            print(json.dumps(rows[line.strip()]()), flush=True)
        up.communicate()


def rows_of(targets: list[list[str]]) -> dict[str, Row]:
    """What is timed, by its name."""
    import numpy as np

    import rankbridge
    from rankbridge.harness.lending import Lender

    by_gang, by_ranks = (rankbridge.connect(targets, calls=calls) for calls in ("gang", "ranks"))
    small = by_gang.put([np.ones(1, np.float32)] * WORLD)
    large = by_gang.put([np.ones(1 << 20, np.float32)] * WORLD)
    tensor = np.ones(16 << 20, np.float32)
    program = rankbridge.Program()
    with program.loop(100):
        program.all_reduce(small, in_place=True)
    collectives: list[Any] = [("all_reduce", small), ("barrier",), ("all_gather", small)]

    def mean(call: Callable[[], object], calls: int) -> Row:
        def row() -> float:
            begun = time.perf_counter()
            for _ in range(calls):
                call()
            return (time.perf_counter() - begun) / calls

        return row

    def put_and_get() -> None:
        ref = by_gang[0].put(tensor)
        by_gang[0].get(ref)
        by_gang[0].release(ref)

    def group() -> None:
        by_gang.destroy_group(by_gang.new_group("own", range(WORLD)))

    lender = Lender()
    atexit.register(lender.close)

    def test(kills: bool = False) -> None:
        with lender.lent(WORLD, "gloo", _DEADLINE_S) as gang:
            if kills:
                gang.kill(WORLD - 1)
                gang.form()
            gang.get(gang.all_reduce(gang.put([np.ones(1, np.float32)] * WORLD)))

    async def barriers(calls: int) -> float:
        async with rankbridge.aconnect(targets, calls="gang") as gang:
            for _ in range(_WARM):
                await gang.barrier()
            begun = time.perf_counter()
            for _ in range(calls):
                await gang.barrier()
            return (time.perf_counter() - begun) / calls

    return {
        "`ping`, gang call": mean(by_gang.ping, 400),
        "`barrier`, gang call": mean(by_gang.barrier, 300),
        "`barrier`, calls of ranks": mean(by_ranks.barrier, 300),
        "`barrier`, asyncio": lambda: asyncio.run(barriers(300)),
        "`all_reduce` of 4 bytes, gang call": mean(lambda: by_gang.all_reduce(small, in_place=True), 300),
        "`all_reduce` of 4 bytes, calls of ranks": mean(
            lambda: by_ranks.all_reduce(small, in_place=True), 300
        ),
        "`all_reduce` of 4 MB, gang call": mean(lambda: by_gang.all_reduce(large, in_place=True), 20),
        "three collectives coalesced": mean(lambda: by_gang.coalesce(collectives), 150),
        "program of 100 `all_reduce`": mean(lambda: by_gang.run(program), 10),
        "`put` and `get` of 64 MB": mean(put_and_get, 4),
        "group of 4 ranks, made and ended": mean(group, 10),
        "a test's own gang": mean(test, 10),
        "a test's own gang, a rank killed": mean(lambda: test(kills=True), 2),
    }


if __name__ == "__main__":
    sys.exit(main())
