"""`rankbridge metrics`: the metrics of all ranks of a gang, served to Prometheus."""

from __future__ import annotations

import select
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ..core.address import Address
from ..core.metrics import gauge
from . import exposition
from .exposition import Collected, Family
from .extras import NoServer
from .gangs import NoGang, complain, connected, gang_options
from .options import Command, Option, Options, address

if TYPE_CHECKING:
    from rankbridge import Gang, Rank

TIMEOUT_S = 2.0
READY = "metrics  "
"""Before the URL, in the line that says where they are served."""


class NoMetrics(Exception):
    """Metrics cannot be served; says why."""


def _run(options: Options) -> int:
    try:
        with connected(options) as gang:
            print(f"{READY}{exposition.serve(options.listen, lambda: _collect(gang))}", flush=True)
            _wait(options.exit_on_stdin_close)
    except (NoGang, NoServer, OSError) as error:
        return complain("metrics", error)
    return 0


def _wait(stdin: bool) -> None:
    if not stdin:
        while True:
            signal.pause()
    select.select([sys.stdin], [], [])


def _collect(gang: Gang) -> Collected:
    """Every rank's own, and whether it was reached."""
    with ThreadPoolExecutor(len(gang)) as threads:
        yield from threads.map(_ask, [gang[rank] for rank in range(len(gang))])


def _ask(rank: Rank) -> tuple[Mapping[str, str], list[Family]]:
    from rankbridge import RankBridgeError

    families: list[Family] = []
    try:
        families += rank.metrics()
        up = True
    except RankBridgeError:
        up = False
    families.append(gauge("rankbridge_rank_up", "1: the rank answers; 0: it does not.", up))
    return {"rank": str(rank.rank)}, families


@contextmanager
def served(at: Address, endpoints: Path) -> Iterator[str]:
    """Serves the metrics of a gang from another process; gives the URL. Raises NoMetrics.

    Another process: this one forks ranks, which must find no gRPC in it, and ranks may be lost.
    """
    command = [sys.executable, "-m", "rankbridge_server", "metrics", "--exit-on-stdin-close"]
    command += ["--listen", str(at), "--endpoints", str(endpoints)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin
        assert process.stdout
        try:
            line = process.stdout.readline()
            if not line.startswith(READY):
                raise NoMetrics(f"no metrics can be served at {at}")
            yield line.removeprefix(READY).strip()
        finally:
            process.stdin.close()
            # It may have been stopped.
            process.kill()


COMMAND = Command(
    "metrics",
    _run,
    [
        Option(
            "--listen",
            type=address,
            default="127.0.0.1:9417",
            metavar="HOST:PORT",
            help="where they are served, to whoever asks; port 0 for any",
        ),
        Option("--exit-on-stdin-close", is_flag=True, help="end when standard input is closed: for programs"),
        *gang_options(TIMEOUT_S),
    ],
    help="Serve the metrics of all ranks of a gang to Prometheus, each value with its rank, until interrupted. Ranks "
    "count operations if they were started with --metrics; what they hold and are is there without. `rankbridge up "
    "--metrics` runs this beside its gang.",
)
