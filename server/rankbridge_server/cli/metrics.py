"""`rankbridge metrics`: the metrics of all ranks of a gang, served to Prometheus."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from ..core.metrics import gauge
from . import exposition
from .beside import ready, wait
from .exposition import Collected, Family
from .extras import NoServer
from .gangs import NoGang, complain, connected, gang_options
from .options import Command, Option, Options, address

if TYPE_CHECKING:
    from rankbridge import Gang, Rank

TIMEOUT_S = 2.0


def _run(options: Options) -> int:
    try:
        with connected(options) as gang:
            ready("metrics", exposition.serve(options.listen, lambda: _collect(gang)))
            wait(options.exit_on_stdin_close)
    except (NoGang, NoServer, OSError) as error:
        return complain("metrics", error)
    return 0


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
