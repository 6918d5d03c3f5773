"""`rankbridge trace`: what the ranks of a gang have done and where they are, as files for viewers."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..core.printable import lines
from .every_rank import every_rank
from .folder_records import folder_records
from .gangs import NoGang, complain, connected, gang_options
from .options import FILE, Command, Option, Options
from .progress import progress

if TYPE_CHECKING:
    from rankbridge import RankBridgeError

TIMEOUT_S = 10.0


def _run(options: Options) -> int:
    from rankbridge import RankBridgeError

    if options.output is None and options.stacks is None:
        raise click.UsageError(
            "say with -o where the trace is to be written, or with --stacks where the stacks are"
        )
    try:
        if options.folder is not None:
            return _of_folder(options)
        return _of_gang(options)
    except (NoGang, RankBridgeError, OSError) as error:
        return complain("trace", error)


def _of_folder(options: Options) -> int:
    """Writes the trace of ranks that have left their records in a folder."""
    if options.stacks is not None:
        raise click.UsageError("--stacks asks ranks: `rankbridge doctor FOLDER` reads those of processes")
    found = folder_records(options.folder, limit=options.limit, group=options.group)
    _write_trace(found.by_rank, found.read_at, options.output)
    return 0


def _of_gang(options: Options) -> int:
    import rankbridge

    failures: dict[int, RankBridgeError] = {}
    with connected(options) as gang, progress("asking the ranks"):
        if options.output is not None:
            records, failures = every_rank(
                gang, lambda rank: rank.record(limit=options.limit, group=options.group)
            )
            _write_trace(records, time.time(), options.output)
        if options.stacks is not None:
            stacks, silent = every_rank(gang, lambda rank: rank.stacks())
            failures = {**failures, **silent}
            _write(rankbridge.speedscope(stacks), options.stacks)
    for rank, error in failures.items():
        print(f"rankbridge trace: rank {rank} is not in it: {lines(str(error))}", file=sys.stderr)
    return 1 if failures else 0


def _write_trace(records: Mapping[int, Any], read_at: float | None, path: Path) -> None:
    import rankbridge

    _write(rankbridge.trace(records, read_at=read_at), path)


def _write(content: dict[str, Any], path: Path) -> None:
    path.write_text(json.dumps(content, separators=(",", ":")) + "\n")


COMMAND = Command(
    "trace",
    _run,
    [
        click.Argument(["folder"], required=False, type=FILE, metavar="[FOLDER]"),
        Option(
            "--output",
            "-o",
            type=FILE,
            metavar="FILE",
            help="write what ranks have recorded as a trace for https://ui.perfetto.dev",
        ),
        Option(
            "--stacks",
            type=FILE,
            metavar="FILE",
            help="write the stacks of all ranks' threads for https://www.speedscope.app",
        ),
        Option(
            "--limit",
            type=int,
            default=0,
            metavar="N",
            help="the last N operations of each rank; 0: all it keeps",
        ),
        Option("--group", default="", metavar="NAME", help="only operations of this group"),
        *gang_options(TIMEOUT_S),
    ],
    help="Write the record of a gang's ranks as a trace (Chrome's JSON): a process for each rank, a track for each "
    "group, a slice for each operation with its phases, its contract and its outcome, and arrows from the rank that "
    "came last to those that it released. What is pending is drawn up to now. FOLDER: of `rankbridge watch`, or of "
    "`--observe`, whose ranks may run or be dead. Ends with 1 when a rank does not answer.",
)
