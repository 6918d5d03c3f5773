"""`rankbridge events`: what happens on the ranks of a gang, as it happens."""

from __future__ import annotations

import json
import time
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import click

from ..core.printable import lines
from .gangs import NoGang, complain, connected, gang_options
from .options import JSON, Command, Option, Options

if TYPE_CHECKING:
    from rankbridge import Event, WatchEnded

KINDS = ("formed", "over", "mismatch", "peer_missing", "straggler")


def _run(options: Options) -> int:
    from rankbridge import RankBridgeError

    try:
        with (
            connected(options) as gang,
            gang.events(options.kind, after=0 if options.all else None) as events,
        ):
            for event in events:
                print(json.dumps(_as_json(event)) if options.as_json else _text(event), flush=True)
    except (NoGang, RankBridgeError) as error:
        return complain("events", error)
    return 1


def _kind(event: Event | WatchEnded) -> str:
    """The name of an event's class, as in the proto: "peer_missing"."""
    name = type(event).__name__.removesuffix("Event")
    return "".join(f"_{it.lower()}" if it.isupper() else it for it in name).removeprefix("_")


def _text(event: Event | WatchEnded) -> str:
    from rankbridge import Event, FormedEvent, StragglerEvent

    if not isinstance(event, Event):
        return f"rank {event.rank}  tells nothing more: {lines(str(event.error or 'it has stopped'))}"
    if isinstance(event, FormedEvent):
        what = f"generation {event.generation} of {event.world_size} ranks"
    elif isinstance(event, StragglerEvent):
        missing = ", ".join(map(str, event.missing)) or "nobody any more"
        what = f"{event.operation} on {event.group} has waited {event.waited:.1f} s; missing: {missing}"
    else:
        what = str(getattr(event, "error", "of a newer version"))
    clock = time.strftime("%H:%M:%S", time.localtime(event.time))
    missed = f"  ({event.missed} events before it were missed)" if event.missed else ""
    return f"{clock}  rank {event.rank}  {_kind(event)}: {lines(what)}{missed}"


def _as_json(event: Event | WatchEnded) -> dict[str, Any]:
    given = {it.name: getattr(event, it.name) for it in fields(event)}
    return {"event": _kind(event), **{name: _plain(value) for name, value in given.items()}}


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, tuple):
        return [getattr(each, "name", each) for each in value]
    return value if isinstance(value, int | float | str | None) else str(value)


COMMAND = Command(
    "events",
    _run,
    [
        JSON,
        Option(
            "--kind",
            multiple=True,
            type=click.Choice(KINDS),
            help="only events of this kind; may be repeated",
        ),
        Option("--all", is_flag=True, help="begin with the oldest events that the ranks still have"),
        *gang_options(),
    ],
    help="Follow what happens on the ranks of a gang, a line for each event, until interrupted: generations, "
    "mismatches, missing members, stragglers. Ends with 1 when no rank can be watched any more.",
)
