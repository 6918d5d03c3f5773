"""`rankbridge ls`: the gangs that run on this host."""

from __future__ import annotations

import json

from .gangs import Running, running
from .options import JSON, Command, Options


def _run(options: Options) -> int:
    found = running()
    if options.as_json:
        print(json.dumps([_row(it) for it in found]))
        return 0
    from .tables import show, table

    head = ("gang", "ranks", "backend", "generation", "endpoints file")
    show(table(head, [tuple(_row(it).values()) for it in found]))
    return 0


def _row(it: Running) -> dict[str, object]:
    return {
        "gang": it.name,
        "ranks": it.content["size"],
        "backend": it.content["backend"],
        "generation": it.content["generation"],
        "endpoints_file": str(it.path),
    }


COMMAND = Command(
    "ls",
    _run,
    [JSON],
    help="List the gangs of this user that `rankbridge up`, or rank 0 of `rankbridge rank`, has started on this host "
    "(with the same TMPDIR) and that still run.",
)
