"""The settings of a rank's sidecar."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
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
    `metrics`: operations are counted. `own_process`: the process is there for the sidecar alone, which may change its
    limits. `load`: modules with functions of the user's. `observe`: the folder of sockets at which callers may only
    observe. `record_calls`: what functions call of torch.distributed is in the rank's record, too.
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
    metrics: bool = False
    own_process: bool = True
    load: tuple[str, ...] = ()
    observe: Path | None = None
    record_calls: bool = False
