"""The settings of a rank's sidecar."""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass

from ..core.limits import Limits
from ..core.tokens import Tokens
from ..links.heartbeat import Heartbeat
from .tls import Tls


@dataclass(frozen=True, slots=True, kw_only=True)
class RankSettings:
    """Settings of one rank's sidecar.

    `listen`: addresses for gRPC, the one for this host first. `links`: address for control links. `advertise`: host
    name that other hosts reach this one by; empty on one host. `tls`: spoken on TCP; None: plain text there too.
    `tokens`: what callers show over TCP; None: nothing.
    `share_memory`: queues pass values, and callers tensors, in shared memory where they can. `straggler_after`: when
    members of a group have kept others waiting for so long, watchers get an event; infinite: never.
    Timeouts in seconds.
    """

    listen: tuple[str, ...]
    links: str
    advertise: str = ""
    tls: Tls | None = None
    tokens: Tokens | None = None
    limits: Limits
    heartbeat: Heartbeat
    default_timeout: float = 30.0
    data_timeout: float = 30.0
    share_memory: bool = True
    straggler_after: float = 1.0


def add_limits(parser: argparse.ArgumentParser) -> None:
    """Options that `up` and `rank` share."""
    group = parser.add_argument_group("limits of each rank")
    group.add_argument(
        "--max-bytes",
        type=int,
        default=0,
        metavar="N",
        help="bytes of tensors (default: half of the memory, on the backend nccl half of the device's)",
    )
    group.add_argument(
        "--max-refs", type=int, default=1_000_000, metavar="N", help="refs (default: %(default)s)"
    )
    group.add_argument(
        "--max-pending", type=int, default=4096, metavar="N", help="pending operations (default: %(default)s)"
    )
    group.add_argument(
        "--max-session-bytes",
        type=int,
        default=0,
        metavar="N",
        help="bytes of one session (default: no limit)",
    )
    group.add_argument(
        "--max-session-refs", type=int, default=0, metavar="N", help="refs of one session (default: no limit)"
    )
    group.add_argument(
        "--max-shared-bytes",
        type=int,
        default=0,
        metavar="N",
        help="bytes of memory shared with callers on this host (default: a quarter of /dev/shm, at most 1 GiB)",
    )
    group.add_argument(
        "--default-timeout",
        type=float,
        default=30.0,
        metavar="S",
        help="seconds that a call waits which names no timeout (default: %(default)s)",
    )
    group.add_argument(
        "--data-timeout",
        type=float,
        default=30.0,
        metavar="S",
        help="seconds that the backend may take for one operation (default: %(default)s)",
    )
    parser.add_argument(
        "--no-shared-memory",
        dest="share_memory",
        action="store_false",
        help="message queues pass every value by the backend, on one host too, and tensors come and go over gRPC alone",
    )

    beats = parser.add_argument_group("control links")
    beats.add_argument(
        "--heartbeat-interval",
        type=float,
        default=0.2,
        metavar="S",
        help="seconds between signs of life (default: %(default)s)",
    )
    beats.add_argument(
        "--heartbeat-misses",
        type=int,
        default=3,
        metavar="N",
        help="missed signs of life after which a rank is lost (default: %(default)s)",
    )
    beats.add_argument(
        "--straggler-after",
        type=_patience,
        default=1.0,
        metavar="S",
        help="seconds that members of a group may keep others waiting before an event names them "
        "(RankService.WatchEvents); 0: never (default: %(default)s)",
    )


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
    return Limits(
        max_bytes=options.max_bytes,
        max_refs=options.max_refs,
        max_pending=options.max_pending,
        max_session_bytes=options.max_session_bytes,
        max_session_refs=options.max_session_refs,
        max_shared_bytes=options.max_shared_bytes,
    )
