"""The options that set a rank's sidecar."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import fields

import click

from ..core.limits import Limits
from ..links.heartbeat import Heartbeat
from .options import FILE, Option, Options

LOAD = Option(
    "--load",
    multiple=True,
    metavar="MODULE",
    help="import MODULE, a file (app.py) or a name (package.module), in each rank, and offer to controllers the "
    "functions that it marks (@rankbridge_server.function); may be given more than once",
)

PRELOAD = Option(
    "--preload",
    multiple=True,
    metavar="MODULE",
    help="import MODULE, a file or a name, once, before the ranks are forked: each has it from the start, also one "
    "that takes another's place; it must start no threads; may be given more than once",
)

OBSERVE = Option(
    "--observe",
    type=FILE,
    metavar="FOLDER",
    help="serve the ranks of this host on unix sockets in FOLDER as well, at which callers may only observe, as "
    "doctor, page and top do with --endpoints FOLDER/gang.json, also while a rank is stuck or stopped; each rank "
    "keeps its record there, which outlives it. Who may enter FOLDER may call and read; a new one is yours alone",
)

RECORD_CALLS = Option(
    "--record-calls",
    is_flag=True,
    help="keep in each rank's record also what its functions call of torch.distributed (with --load, on the backends "
    "gloo and nccl)",
)

OF_RANK = "Limits of each rank"
LINKS = "Control links"


def limits_options() -> list[Option]:
    """The options that `up` and `rank` share."""
    return [
        *_options(OF_RANK, _LIMITS),
        Option(
            "--no-shared-memory",
            section=OF_RANK,
            is_flag=True,
            help="message queues pass every value by the backend, on one host too, and tensors come and go over gRPC "
            "alone",
        ),
        *_options(LINKS, _LINKS),
        Option(
            "--audit",
            type=FILE,
            metavar="FILE",
            help="append a line of JSON to FILE for each caller let in or refused, and each generation that begins or "
            "ends",
        ),
    ]


_LIMITS: dict[str, tuple[str, float | None, str]] = {
    "--max-bytes": (
        "N",
        None,
        "bytes of tensors (default: half of the memory, on the backend nccl half of the device's)",
    ),
    "--max-refs": ("N", 1_000_000, "refs"),
    "--max-pending": ("N", 4096, "pending operations"),
    "--max-session-bytes": ("N", None, "bytes of one session (default: no limit)"),
    "--max-session-refs": ("N", None, "refs of one session (default: no limit)"),
    "--max-shared-bytes": (
        "N",
        None,
        "bytes of memory shared with callers on this host (default: an eighth of its memory, at most 1 GiB)",
    ),
    "--max-record": ("N", 10_000, "operations in its record of the last ones; 0: none"),
    "--default-timeout": ("S", 30.0, "seconds that a call waits which names no timeout"),
    "--data-timeout": ("S", 30.0, "seconds that the backend may take for one operation"),
}
_LINKS: dict[str, tuple[str, float | None, str]] = {
    "--heartbeat-interval": ("S", 0.2, "seconds between signs of life"),
    "--heartbeat-misses": ("N", 3, "missed signs of life after which a rank is lost"),
    "--straggler-after": (
        "0 or S",
        1.0,
        "seconds that members of a group may keep others waiting before an event names them "
        "(RankService.WatchEvents); 0: never",
    ),
}
"""By option: what it takes, a number or seconds; its default, None for 0, which its help explains; its help."""


def _options(section: str, options: dict[str, tuple[str, float | None, str]]) -> list[Option]:
    kinds: dict[str, Callable[[str], float]] = {"N": int, "S": float, "0 or S": _patience}
    return [
        Option(
            option,
            section=section,
            type=kinds[kind],
            default=default or 0,
            show_default=default is not None,
            metavar=kind[-1],
            help=text,
        )
        for option, (kind, default, text) in options.items()
    ]


def _patience(value: str | float) -> float:
    try:
        seconds = float(value)
    except ValueError:
        seconds = -1.0
    if not seconds >= 0:
        raise click.BadParameter(f"must be seconds, 0 or more, not {value!r}")
    return seconds or math.inf


def check_record_calls(options: Options) -> None:
    """Raises UsageError if there is nothing of which the calls could be recorded."""
    if options.record_calls and (not options.load or options.backend not in ("gloo", "nccl")):
        raise click.UsageError(
            "--record-calls needs functions (--load) and the backend gloo or nccl, on which they have "
            "torch.distributed"
        )


def heartbeat_of(options: Options) -> Heartbeat:
    """The heartbeat of the options."""
    return Heartbeat(options.heartbeat_interval, options.heartbeat_misses)


def limits_of(options: Options) -> Limits:
    """The limits of the options. Raises ValueError."""
    return Limits(**{it.name: getattr(options, it.name) for it in fields(Limits)})
