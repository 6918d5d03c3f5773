"""`rankbridge record`: the last operations of a gang, as its ranks have recorded them."""

from __future__ import annotations

import json
import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from ..core.printable import printable
from .every_rank import every_rank
from .folder_records import folder_records
from .gangs import NoGang, complain, connected, gang_options
from .options import FILE, JSON, Command, Option, Options
from .progress import progress

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.console import Group

    from rankbridge import RankBridgeError, RecordedOperation

TIMEOUT_S = 3.0
_HEAD = ("called", "by", "operation", "group", "ranks", "apart", "took", "outcome", "contract", "line")


def _run(options: Options) -> int:
    from rankbridge import InvalidArgumentError, RankBridgeError

    try:
        if options.flight_recorder is not None:
            return _dump(options)
        records, failures = _records(options)
    except (NoGang, RankBridgeError, OSError) as error:
        return complain("record", error)
    if wrong := [it for it in failures.values() if isinstance(it, InvalidArgumentError)]:
        return complain("record", wrong[0])
    if options.as_json:
        records = {rank: it[-options.limit :] for rank, it in records.items()}
        print(json.dumps(_as_json(records, failures)))
    else:
        from .tables import show

        show(_page(records, failures, options.limit))
    return 1 if failures else 0


def _records(
    options: Options,
) -> tuple[dict[int, list[RecordedOperation]], dict[int, RankBridgeError]]:
    """What each rank has recorded, and the errors of those that do not say."""
    # Twice as many: the first ones of other ranks may not be among this one's last.
    limit, group, caller = 2 * options.limit, options.group, options.caller or ""
    if options.folder is not None:
        return folder_records(options.folder, limit=limit, group=group, caller=caller).by_rank, {}
    with connected(options) as gang, progress("asking the ranks"):
        return every_rank(gang, lambda rank: rank.record(limit=limit, group=group, caller=caller))


def _dump(options: Options) -> int:
    if options.folder is not None:
        raise click.UsageError("--flight-recorder asks the ranks of a gang: it takes no FOLDER")
    from .dumps import write_dumps

    with connected(options) as gang:
        return write_dumps(gang, options.flight_recorder)


def _page(
    records: Mapping[int, list[RecordedOperation]], failures: Mapping[int, RankBridgeError], limit: int
) -> Group:
    from rich.text import Text

    from rankbridge import timeline
    from rankbridge.errors import intervals

    from .tables import paragraphs, table

    entries = timeline(records)
    rows = [
        (
            _clock(it.called),
            it.caller,
            it.operation,
            it.group,
            intervals(list(it.at)).removeprefix("ranks ").removeprefix("rank "),
            _milliseconds(it.apart),
            "-" if it.took is None else _milliseconds(it.took),
            it.outcome,
            it.contract,
            it.site,
        )
        for it in (entries[-limit:] if limit else entries)
    ]
    said = [Text(printable(f"rank {rank} does not answer: {error}")) for rank, error in failures.items()]
    nothing = Text("no rank has recorded an operation") if not rows and not failures else None
    return paragraphs([table(_HEAD, rows) if rows else None, nothing, *said])


def _clock(seconds: float) -> str:
    return time.strftime("%H:%M:%S", time.localtime(seconds)) + f".{int(seconds % 1 * 1000):03d}"


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1000:.1f} ms"


def _as_json(
    records: Mapping[int, list[RecordedOperation]], failures: Mapping[int, RankBridgeError]
) -> dict[str, Any]:
    return {
        "ranks": {str(rank): [asdict(it) for it in record] for rank, record in records.items()},
        "failures": {str(rank): str(error) for rank, error in failures.items()},
    }


COMMAND = Command(
    "record",
    _run,
    [
        click.Argument(["folder"], required=False, type=FILE, metavar="[FOLDER]"),
        JSON,
        Option(
            "--limit", type=int, default=20, metavar="N", help="the last N operations; 0: all that ranks keep"
        ),
        Option("--group", default="", metavar="NAME", help="only operations of this group"),
        Option(
            "--caller",
            type=click.Choice(["controller", "script"]),
            default=None,
            help="only operations of controllers, or only what functions and a job's script call of torch.distributed, "
            "which ranks record with --record-calls",
        ),
        Option(
            "--flight-recorder",
            type=FILE,
            metavar="FOLDER",
            help="instead, write all that ranks keep of this generation's collectives as dumps of torch's flight "
            "recorder, for `torchfrtrace FOLDER` and `rankbridge doctor FOLDER`; a new folder, or an empty one",
        ),
        *gang_options(TIMEOUT_S),
    ],
    help="Show a gang's last operations, as its ranks have recorded them: who called, on which ranks, how far "
    "apart, how long it took, how it ended, what they asked for, and from which line of code. Where ranks "
    "differ, each side has its ranks. FOLDER: of `--observe`, or of `rankbridge watch`; its ranks "
    "may run or be dead, and are not asked. Ends with 1 when a rank does not answer.",
)
