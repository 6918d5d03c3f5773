"""`rankbridge call function`: a function of the user's own, from the shell."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import click

from . import arguments
from .calling import COMMON, OF_CALL, RANK, command, given
from .options import Option, Options

if TYPE_CHECKING:
    from rankbridge import Gang

_NAMED = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)


def function() -> click.Command:
    """The command."""
    return command(
        "function",
        "Call a function of a module that was loaded into the ranks. An argument is JSON, VALUE or NAME=VALUE; "
        '{"ref": ID} is a tensor.',
        [
            click.Argument(["name"]),
            click.Argument(["args"], nargs=-1),
            Option("--reports", is_flag=True, help="print what it reports, too, as it comes: a line each"),
            RANK,
            *COMMON,
        ],
        _call,
    )


def _call(gang: Gang, options: Options) -> Any:
    by_place: list[object] = []
    by_name: dict[str, object] = {}
    for text in options.args:
        named = _NAMED.fullmatch(text)
        if named:
            by_name[named[1]] = _argument(gang, named[2])
        elif by_name:
            raise ValueError(f"{text!r} has no name, and follows one with a name")
        else:
            by_place.append(_argument(gang, text))
    how = given(options, OF_CALL if options.rank is None else ("operation_id", "generation"))
    # It may take as long as the caller waits.
    whole = gang if options.rank is None else gang[options.rank]
    call = whole.function(options.name, timeout=options.timeout, **how).start(*by_place, **by_name)
    if options.reports:
        for report in call.reports():
            line = {"rank": report.rank, "report": report.number, "value": arguments.as_json(report.value)}
            print(json.dumps(line), flush=True)
    results = call.result()
    return results if options.rank is None else results[0]


def _argument(gang: Gang, text: str) -> object:
    return _with_refs(gang, arguments.value(text))


def _with_refs(gang: Gang, value: Any) -> object:
    match value:
        case {"ref": str(ref_id), **others} if not others:
            return arguments.refs(gang, [ref_id])[0]
        case dict():
            return {name: _with_refs(gang, it) for name, it in value.items()}
        case list():
            return [_with_refs(gang, it) for it in value]
    return value
