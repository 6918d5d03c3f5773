"""The settings of a rank's sidecar."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from pathlib import Path

from ..core.limits import Limits
from ..core.tokens import Tokens
from ..links.heartbeat import Heartbeat
from .logs import Logs
from .tls import Tls


@dataclass(frozen=True, slots=True, kw_only=True)
class RankSettings:
    """Settings of one rank's sidecar.

    `listen`: addresses for gRPC, the one for this host first. `links`: address for control links. `advertise`: host
    name that other hosts reach this one by; empty on one host. `tls`: spoken on TCP; None: plain text there too.
    `tokens`: what callers show over TCP; None: nothing.
    `share_memory`: queues pass values, and callers tensors, in shared memory where they can. `straggler_after`: when
    members of a group have kept others waiting for so long, watchers get an event; infinite: never. `audit`: the file.
    Timeouts in seconds.
    """

    listen: tuple[str, ...]
    links: str
    advertise: str = ""
    tls: Callable[[], Tls] | None = None
    tokens: Callable[[], Tokens] | None = None
    limits: Limits
    heartbeat: Heartbeat
    default_timeout: float = 30.0
    data_timeout: float = 30.0
    share_memory: bool = True
    straggler_after: float = 1.0
    audit: Path | None = None
    logs: Logs = field(default_factory=Logs)


def add_limits(parser: argparse.ArgumentParser) -> None:
    """Options that `up` and `rank` share."""
    _add(parser.add_argument_group("limits of each rank"), _LIMITS)
    parser.add_argument(
        "--no-shared-memory",
        dest="share_memory",
        action="store_false",
        help="message queues pass every value by the backend, on one host too, and tensors come and go over gRPC alone",
    )
    _add(parser.add_argument_group("control links"), _LINKS)
    parser.add_argument(
        "--audit",
        type=Path,
        metavar="FILE",
        help="append a line of JSON to FILE for each caller let in or refused, and each generation that begins or "
        "ends",
    )


_SHOWN = "(default: %(default)s)"
_LIMITS: dict[str, tuple[str, float, str]] = {
    "--max-bytes": (
        "N",
        0,
        "bytes of tensors (default: half of the memory, on the backend nccl half of the device's)",
    ),
    "--max-refs": ("N", 1_000_000, f"refs {_SHOWN}"),
    "--max-pending": ("N", 4096, f"pending operations {_SHOWN}"),
    "--max-session-bytes": ("N", 0, "bytes of one session (default: no limit)"),
    "--max-session-refs": ("N", 0, "refs of one session (default: no limit)"),
    "--max-shared-bytes": (
        "N",
        0,
        "bytes of memory shared with callers on this host (default: an eighth of its memory, at most 1 GiB)",
    ),
    "--default-timeout": ("S", 30.0, f"seconds that a call waits which names no timeout {_SHOWN}"),
    "--data-timeout": ("S", 30.0, f"seconds that the backend may take for one operation {_SHOWN}"),
}
_LINKS: dict[str, tuple[str, float, str]] = {
    "--heartbeat-interval": ("S", 0.2, f"seconds between signs of life {_SHOWN}"),
    "--heartbeat-misses": ("N", 3, f"missed signs of life after which a rank is lost {_SHOWN}"),
    "--straggler-after": (
        "0 or S",
        1.0,
        "seconds that members of a group may keep others waiting before an event names them "
        f"(RankService.WatchEvents); 0: never {_SHOWN}",
    ),
}
"""By option: what it takes, a number or seconds; its default; its help."""


def _add(group: argparse._ArgumentGroup, options: dict[str, tuple[str, float, str]]) -> None:
    kinds: dict[str, Callable[[str], float]] = {"N": int, "S": float, "0 or S": _patience}
    for option, (kind, default, text) in options.items():
        group.add_argument(option, type=kinds[kind], default=default, metavar=kind[-1], help=text)


def _patience(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not seconds >= 0:
        raise argparse.ArgumentTypeError(f"must be seconds, 0 or more, not {text!r}")
    return seconds or math.inf


def heartbeat_of(options: argparse.Namespace) -> Heartbeat:
    """The heartbeat of the options."""
    return Heartbeat(options.heartbeat_interval, options.heartbeat_misses)


def limits_of(options: argparse.Namespace) -> Limits:
    """The limits of the options. Raises ValueError."""
    return Limits(**{it.name: getattr(options, it.name) for it in fields(Limits)})
