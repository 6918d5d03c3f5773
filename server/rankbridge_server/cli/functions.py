"""`rankbridge functions`: what the ranks of a gang offer."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

from .gangs import NoGang, complain, connected, gang_options
from .options import JSON, Command, Options

if TYPE_CHECKING:
    from rankbridge import FunctionDescription


def _run(options: Options) -> int:
    from rankbridge import RankBridgeError

    try:
        with connected(options) as gang:
            found = gang.functions()
    except (NoGang, RankBridgeError) as error:
        return complain("functions", error)
    if options.as_json:
        print(json.dumps([asdict(it) for it in found]))
        return 0
    from .tables import show, table

    show(table(("function", "gives", "what it does"), [_row(it) for it in found]))
    return 0


def _row(it: FunctionDescription) -> tuple[str, str, str]:
    gives = f"reports, then {it.returns or 'a value'}" if it.yields else it.returns
    return f"{it.name}{it.signature}", gives, it.doc.partition("\n")[0]


COMMAND = Command(
    "functions",
    _run,
    [JSON, *gang_options()],
    help="List the functions of the modules that were loaded into the ranks (`up --load`, `rank --load`). "
    "`rankbridge call function NAME` calls one.",
)
