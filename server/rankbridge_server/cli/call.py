"""`rankbridge call`: any operation from the shell."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .gangs import NoGang, add_endpoints, complain, connected
from .progress import progress

if TYPE_CHECKING:
    from rankbridge import Gang, Ref

_COMMON = ("group", "operation_id", "generation")
_EPILOG = """\
operations and their arguments:
{operations}
All of them but create, put, get, describe, list and release also take group=NAME, operation_id=ID, generation=N.

examples:
  rankbridge call create dtype=float32 shape=2,3 init=full:1.5
  rankbridge call all_reduce refs=0.5f1e.1,1.77ab.1,2.90c2.1,3.1b0d.1 op=sum
  rankbridge call get refs=2.90c2.2
  rankbridge call all_gather refs=0.5f1e.1,1.77ab.1 sizes=3,5
  rankbridge call all_to_all refs=0.5f1e.1,1.77ab.1 sizes=1,2/4,1     (a row for each member)

Refs belong to the ranks' shared sessions: they stay until they are released. Every result is one line of JSON.
"""


class BadArgument(ValueError):
    """An argument that the operation does not take, or that cannot be read."""


@dataclass(frozen=True, slots=True)
class Command:
    """An operation of the shell: names of its arguments, and the call."""

    arguments: tuple[str, ...]
    call: Callable[[Gang, dict[str, Any]], Any]


def _method(name: str, *arguments: str, common: tuple[str, ...] = _COMMON) -> Command:
    return Command((*arguments, *common), lambda gang, given: getattr(gang, name)(**given))


COMMANDS: dict[str, Command] = {
    "barrier": _method("barrier"),
    "broadcast": _method("broadcast", "refs", "src_rank_in_group", "in_place"),
    "scatter": _method("scatter", "refs", "src_rank_in_group", "dim"),
    "gather": _method("gather", "refs", "dst_rank_in_group", "dim", "sizes"),
    "all_gather": _method("all_gather", "refs", "dim", "sizes"),
    "all_to_all": _method("all_to_all", "refs", "dim", "sizes"),
    "reduce": _method("reduce", "refs", "op", "dst_rank_in_group"),
    "all_reduce": _method("all_reduce", "refs", "op", "in_place"),
    "reduce_scatter": _method("reduce_scatter", "refs", "op", "dim", "sizes"),
    "new_group": _method("new_group", "name", "ranks"),
    "destroy_group": Command(("name",), lambda gang, given: gang.destroy_group(given["name"])),
    "groups": Command((), lambda gang, given: gang.groups()),
    "form": Command((), lambda gang, given: gang.form()),
    "create": _method("create", "dtype", "shape", "init", common=()),
    "put": Command(("value", "dtype"), lambda gang, given: gang.put_same(_array(**given))),
    "get": Command(("refs",), lambda gang, given: [it.tolist() for it in gang.get(given["refs"])]),
    "describe": _method("describe", "refs", common=()),
    "list": Command((), lambda gang, given: [ref for refs in gang.list_refs() for ref in refs]),
    "release": _method("release", "refs", common=()),
}


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command."""
    operations = "\n".join(
        f"  {name:14} {' '.join(f'{it}=' for it in command.arguments if it not in _COMMON)}".rstrip()
        for name, command in COMMANDS.items()
    )
    parser = commands.add_parser(
        "call",
        help="run any operation on all ranks of a gang",
        description="Run one operation on all ranks of a gang and print what it gives.",
        epilog=_EPILOG.format(operations=operations),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_endpoints(parser)
    parser.add_argument("operation", metavar="OPERATION", choices=COMMANDS, help="see below")
    parser.add_argument("arguments", metavar="NAME=VALUE", nargs="*", help="arguments of the operation")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Runs the command; returns the exit status."""
    from rankbridge import RankBridgeError

    command = COMMANDS[options.operation]
    try:
        with connected(options) as gang:
            given = _read(gang, options.operation, command, options.arguments)
            with progress(options.operation):
                outcome = command.call(gang, given)
    except (BadArgument, TypeError) as error:
        print(f"rankbridge call {options.operation}: {error}", file=sys.stderr)
        return 2
    except (NoGang, RankBridgeError) as error:
        return complain(f"call {options.operation}", error)
    for line in outcome if isinstance(outcome, list) else [outcome]:
        print(json.dumps(_outcome_json(line)))
    return 0


def _read(gang: Gang, operation: str, command: Command, arguments: list[str]) -> dict[str, Any]:
    given: dict[str, Any] = {}
    for argument in arguments:
        name, equals, text = argument.partition("=")
        if not equals or name not in command.arguments:
            takes = ", ".join(f"{it}=" for it in command.arguments) or "nothing"
            raise BadArgument(f"{argument!r} is not an argument of {operation}, which takes {takes}")
        try:
            given[name] = _PARSERS[name](gang, text)
        except ValueError as error:
            raise BadArgument(f"{name}={text!r}: {error}") from error
    return given


def _refs(gang: Gang, text: str) -> list[Ref]:
    known = {ref.id: ref for refs in gang.list_refs() for ref in refs}
    try:
        return [known[ref_id] for ref_id in text.split(",")]
    except KeyError as missing:
        raise ValueError(f"no ref {missing} in the ranks' shared sessions") from None


def _ints(gang: Gang, text: str) -> list[int]:
    return [int(part) for part in text.split(",") if part]


def _sizes(gang: Gang, text: str) -> list[int] | list[list[int]]:
    return [_ints(gang, row) for row in text.split("/") if row] if "/" in text else _ints(gang, text)


def _bool(gang: Gang, text: str) -> bool:
    if text not in ("true", "false"):
        raise ValueError("say true or false")
    return text == "true"


def _init(gang: Gang, text: str) -> Any:
    import rankbridge

    makers: dict[str, Callable[..., Any]] = {
        "zeros": rankbridge.zeros,
        "full": rankbridge.full,
        "arange": rankbridge.arange,
        "uniform": rankbridge.uniform,
        "normal": rankbridge.normal,
    }
    kind, _, rest = text.partition(":")
    if kind not in makers:
        raise ValueError(f"say one of {', '.join(makers)}, as in full:1.5, arange:0:2, uniform:SEED:LOW:HIGH")
    return makers[kind](*(json.loads(part) for part in rest.split(":") if part))


def _array(value: Any, dtype: str = "float32") -> Any:
    import numpy as np

    return np.asarray(value, dtype=np.dtype(dtype))


_PARSERS: dict[str, Callable[[Any, str], Any]] = {
    "refs": _refs,
    "ranks": _ints,
    "shape": _ints,
    "sizes": _sizes,
    "init": _init,
    "in_place": _bool,
    "value": lambda gang, text: json.loads(text),
    **dict.fromkeys(
        ("src_rank_in_group", "dst_rank_in_group", "dim", "generation"), lambda gang, text: int(text)
    ),
    **dict.fromkeys(("op", "name", "dtype", "group", "operation_id"), lambda gang, text: text),
}


def _outcome_json(outcome: Any) -> Any:
    from rankbridge import Group, Ref

    if isinstance(outcome, Ref):
        return {"rank": outcome.rank, "ref": outcome.id, "dtype": outcome.dtype, "shape": list(outcome.shape)}
    if isinstance(outcome, Group):
        return {"group": outcome.name, "ranks": list(outcome.ranks), "generation": outcome.generation}
    if hasattr(outcome, "generation"):
        return {"generation": outcome.generation, "world_size": outcome.world_size}
    return outcome
