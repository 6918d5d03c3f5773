"""`rankbridge call`: an operation from the shell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from . import arguments
from .calling import COMMON, OF_CALL, RANK, command, given
from .function_calls import function
from .operations import OPERATIONS, Argument, Operation
from .options import Option, Options
from .other_calls import commands

if TYPE_CHECKING:
    from rankbridge import Gang, Rank

_HELP = """Run one operation on the ranks of a gang, and print what it gives as JSON: a line for each member
of the group, one line with --rank.

\b
  rankbridge call create float32 2,3 --init full:1.5
  rankbridge call all_reduce 0.5f1e.1 1.77ab.1 2.90c2.1 3.1b0d.1 --op sum
  rankbridge call get 2.90c2.2
  rankbridge call broadcast_object '{"lr": 0.1}'
  rankbridge call send 0.5f1e.1 --rank 0 --dst-rank-in-group 1
  rankbridge call function train_step 3 lr=0.1

Refs belong to the ranks' shared sessions: they stay until they are released. A value is JSON; what begins with a minus
stands behind --.
"""


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _option(it: Argument) -> Option:
    if it.kind == "flag":
        return Option(_flag(it.name), is_flag=True, help=it.help)
    types: dict[str, Any] = {
        "int": int,
        "ints": arguments.ints,
        "rows": arguments.rows,
        "choice": click.Choice(it.choices),
        "text": str,
    }
    metavar = {"int": "N", "ints": "N,N,...", "rows": "N,N/N,N/...", "text": "NAME"}.get(it.kind)
    faces = {"gang": " (Without --rank.)", "rank": " (With --rank.)", "": ""}
    text = it.help + faces[it.face]
    return Option(_flag(it.name), type=types[it.kind], required=it.required, metavar=metavar, help=text)


def _one(given: Sequence[str]) -> str:
    if len(given) != 1:
        raise ValueError(f"with --rank, one is given: not {len(given)}")
    return given[0]


def _brought(it: Operation, gang: Gang, options: Options) -> dict[str, Any]:
    """What the callers bring, by the name of the method's parameter."""
    alone = options.rank is not None
    match it.brings:
        case "ref":
            found = arguments.refs(gang, [_one(options.refs)] if alone else options.refs)
            return {"ref": found[0]} if alone else {"refs": found}
        case "value" | "number":
            if alone:
                return {"value": arguments.value(_one(options.values))}
            return {"values": [arguments.value(text) for text in options.values]}
        case "source_value":
            return {} if options.value is None else {"value": arguments.value(options.value)}
        case "source_values":
            return {"values": [arguments.value(text) for text in options.values]} if options.values else {}
        case "source_dict" | "dict":
            return {} if options.tensors is None else {"tensors": arguments.tensors(gang, options.tensors)}
        case "expected" if options.into is not None:
            return {"expected": arguments.refs(gang, [options.into])[0]}
        case "expected" if options.dtype is not None:
            return {"expected": (options.dtype, options.shape or [])}
    return {}


_BROUGHT: dict[str, list[click.Parameter]] = {
    "ref": [click.Argument(["refs"], nargs=-1, required=True)],
    "value": [click.Argument(["values"], nargs=-1, required=True)],
    "number": [click.Argument(["values"], nargs=-1, required=True)],
    "source_value": [click.Argument(["value"], required=False)],
    "source_values": [click.Argument(["values"], nargs=-1)],
    "source_dict": [click.Argument(["tensors"], required=False)],
    "dict": [click.Argument(["tensors"])],
    "expected": [
        Option("--into", metavar="REF", help="a ref of the rank, which takes what comes"),
        Option("--dtype", help="the dtype that must come"),
        Option("--shape", type=arguments.ints, metavar="N,N,...", help="the shape that must come"),
    ],
}


def _declared(it: Operation) -> click.Command:
    """The command of an operation that the proto declares."""

    def run(gang: Gang, options: Options) -> Any:
        alone = options.rank is not None
        caller: Gang | Rank = gang[options.rank] if alone else gang
        face = "rank" if alone else "gang"
        wrong = [
            _flag(each.name)
            for each in it.arguments
            if each.face not in ("", face) and options.__dict__[each.name]
        ]
        if wrong:
            raise ValueError(f"{wrong[0]} is {'not ' if alone else ''}for a call with --rank")
        named = [each.name for each in it.arguments if each.face in ("", face)]
        by_name = given(options, [*named, *OF_CALL])
        return getattr(caller, it.name)(**_brought(it, gang, options), **by_name)

    alone = RANK if it.of_gang else Option("--rank", type=int, metavar="N", required=True, help=RANK.help)
    own = [_option(each) for each in it.arguments]
    return command(it.name, it.help, [*_BROUGHT.get(it.brings, []), *own, alone, *COMMON], run)


COMMAND = click.Group(
    "call", help=_HELP, subcommand_metavar="OPERATION [ARGS]...", context_settings={"max_content_width": 120}
)
for _each in (*map(_declared, OPERATIONS), function(), *commands()):
    COMMAND.add_command(_each)
