"""A command that calls the ranks of a gang, and prints what they give."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click

from . import arguments
from .gangs import NoGang, complain, connected, gang_options
from .options import Command, Option, Options
from .progress import progress

if TYPE_CHECKING:
    from rankbridge import Gang

Run = Callable[["Gang", Options], Any]

COMMON = [
    Option("--group", metavar="NAME", help="the group that takes part (default: world)"),
    Option("--operation-id", metavar="ID", help="an id: what is called again with it is not done twice"),
    Option("--generation", type=int, metavar="N", help="fail unless this generation runs"),
]
RANK = Option("--rank", type=int, metavar="N", help="call this rank alone, which brings its own part")


_IDS = Option("--ids", is_flag=True, help="print the ids of refs alone, a line each")
OF_CALL = ("group", "operation_id", "generation")
"""Names of the values of COMMON."""


def given(options: Options, names: Sequence[str] = OF_CALL) -> dict[str, Any]:
    """The values that were given, by name."""
    values = {name: getattr(options, name) for name in names}
    return {name: it for name, it in values.items() if it is not None and it is not False}


def command(name: str, text: str, params: Sequence[click.Parameter], call: Run) -> click.Command:
    """The command of an operation. `text`: its help. `call`: calls it; may raise ValueError."""

    def run(options: Options) -> int:
        from rankbridge import RankBridgeError, at_site

        try:
            with connected(options) as gang, progress(name), at_site("rankbridge call"):
                try:
                    outcome = call(gang, options)
                except (ValueError, TypeError, IndexError) as error:
                    raise click.UsageError(f"{name}: {error}") from error
        except (NoGang, RankBridgeError) as error:
            return complain(f"call {name}", error)
        lines = outcome if isinstance(outcome, list) and getattr(options, "rank", None) is None else [outcome]
        for line in lines:
            for text in arguments.ids(line) if options.ids else [json.dumps(arguments.as_json(line))]:
                print(text)
        return 0

    return Command(name, run, [*params, _IDS, *gang_options()], help=text)
