"""`python -m tests.chaos.soak`: how fast a gang is whole after a kill, and that forming it again leaks nothing.

Exits with 0 only when all held: every value right, no growth of threads or file descriptors, at most 10 KB of memory
for each forming.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random

import numpy as np
from tests.chaos.faults.ranks import Kill
from tests.chaos.findings import Findings
from tests.chaos.operations import Operation
from tests.chaos.plan import Round
from tests.chaos.run import Report, run
from tests.chaos.stage import scene
from tests.chaos.table import milliseconds, percentile

from rankbridge import Gang, Ref
from rankbridge.harness.usage import Usage, settled, usage

MEMORY_KB = 10.0
SIZE = 4
# So many formings until allocators have what they need.
WARM_UP = 80
_SPIN = "while True: pass"


@dataclass(frozen=True)
class Growth:
    """Of one rank over `formings`. Memory in KB for each forming."""

    formings: int
    before: Usage
    after: Usage

    @property
    def memory_kb(self) -> float:
        """For each forming."""
        return (self.after.rss_kb - self.before.rss_kb) / self.formings

    def held(self, noise_kb: float = 0.0, noise_fds: int = 0) -> bool:
        """Whether it is as it must be; so much memory, and so many descriptors, may have come once."""
        grown = self.after.threads > self.before.threads or self.after.fds > self.before.fds + noise_fds
        return not grown and self.memory_kb <= MEMORY_KB + noise_kb / self.formings

    def __str__(self) -> str:
        before, after = self.before, self.after
        return (
            f"threads {before.threads} to {after.threads}, file descriptors {before.fds} to {after.fds}, "
            f"memory {before.rss_kb} to {after.rss_kb} KB ({self.memory_kb:+.1f} KB each)"
        )


def formings(number: int, directory: Path, findings: Findings, warm_up: int = WARM_UP) -> list[Growth]:
    """Forms a gang `number` times after `warm_up` more, by way of each rank in turn; gives each rank's growth."""
    with scene(directory, SIZE, findings) as it:
        for count in range(warm_up):
            _form(it.gang, count % SIZE, findings)
        before = [_calm(pid) for pid in it.pids]
        for count in range(number):
            _form(it.gang, count % SIZE, findings)
        after = [settled(pid, at_most) for pid, at_most in zip(it.pids, before, strict=True)]
    return [Growth(number, *pair) for pair in zip(before, after, strict=True)]


def kills(number: int, directory: Path, seed: int) -> Report:
    """Kills random ranks of a gang of four, each while the others wait for it in an all_reduce of 256 KB."""
    random = Random(seed)
    operation = Operation("all_reduce", "float32", 65536, 3, {"op": "sum", "in_place": True})
    rounds = [
        Round(
            count + 1,
            SIZE,
            ("python",) * SIZE,
            (),
            operation,
            "world",
            Kill(random.randrange(SIZE), True, 0.005),
        )
        for count in range(number)
    ]
    return run(rounds, directory, lambda line: None)


@contextmanager
def load() -> Iterator[None]:
    """Keeps every processor busy."""
    with ExitStack() as stack:
        for _ in os.sched_getaffinity(0):
            spinner = stack.enter_context(subprocess.Popen([sys.executable, "-c", _SPIN]))
            stack.callback(spinner.kill)
        yield


def main(arguments: list[str]) -> int:
    """Runs the soak and gives the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.soak", description=__doc__)
    parser.add_argument("--kills", type=int, default=30, metavar="N", help="quiet, and as many under load")
    parser.add_argument("--formings", type=int, default=200, metavar="N", help="default: %(default)s")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="of the victims (default: 0)")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="rankbridge-soak-") as name:
        held = [
            _say_kills("quiet", kills(options.kills, Path(name), options.seed)),
            _under_load(lambda: _say_kills("under load", kills(options.kills, Path(name), options.seed))),
            _say_formings(options.formings, Path(name)),
        ]
    return 0 if all(held) else 1


def _under_load(do: Callable[[], bool]) -> bool:
    with load():
        return do()


def _say_kills(how: str, report: Report) -> bool:
    times = report.findings.times[Kill.kind]
    whole = times.to_whole
    print(
        f"kill -9, {how}: {report.done} kills; to error p50 {milliseconds(percentile(times.to_error, 50))}, max "
        f"{milliseconds(max(times.to_error, default=None))}; to the next good all_reduce p50 "
        f"{milliseconds(percentile(whole, 50))}, p99 {milliseconds(percentile(whole, 99))}",
        *(f"FOUND: {it}" for it in report.findings.all),
        sep="\n",
        flush=True,
    )
    return report.findings.held


def _say_formings(number: int, directory: Path) -> bool:
    findings = Findings()
    grown = formings(number, directory, findings)
    for rank, growth in enumerate(grown):
        print(f"{number} formings, rank {rank}: {growth}", flush=True)
    print(*(f"FOUND: {it}" for it in findings.all), sep="\n", flush=True)
    return findings.held and all(growth.held() for growth in grown)


def _form(gang: Gang, via_rank: int, findings: Findings) -> None:
    gang.form(via_rank=via_rank)
    refs = gang.put([np.array([rank], np.int64) for rank in range(SIZE)])
    # Without ids: a rank remembers what became of thousands of operations that have one.
    pending = [gang[rank].start("all_reduce", ref) for rank, ref in enumerate(refs)]
    results: list[Ref] = [it.result() for it in pending]
    for rank, result in enumerate(gang.get(results)):
        if np.asarray(result).tolist() != [sum(range(SIZE))]:
            findings.wrong_result(f"rank {rank} got {result}")
    gang.release([*refs, *results])


def _calm(pid: int) -> Usage:
    """What a process holds when that has not become less for half a second."""
    least = usage(pid)
    since = time.monotonic()
    while time.monotonic() - since < 0.5:
        now = usage(pid)
        if now.threads < least.threads or now.fds < least.fds:
            least, since = now, time.monotonic()
    return now


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
