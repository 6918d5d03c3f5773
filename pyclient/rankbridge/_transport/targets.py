"""Where the ranks of a gang serve, and how a channel to one is set up."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from rankbridge.errors import InvalidArgumentError

Target: TypeAlias = "str | os.PathLike[str] | Mapping[str, Any] | Sequence[str | Sequence[str]]"
"""A gang: an endpoints file, what is in it, or each rank's gRPC target or targets by rank."""

CHANNEL_OPTIONS: list[tuple[str, int]] = [
    # A rank is reached directly: a proxy of the environment does not know it.
    ("grpc.enable_http_proxy", 0),
    # A channel of its own for each gang: closing one closes no other's connections.
    ("grpc.use_local_subchannel_pool", 1),
    # A rank that was replaced is back within a second; gRPC would wait up to two minutes.
    ("grpc.initial_reconnect_backoff_ms", 20),
    ("grpc.max_reconnect_backoff_ms", 200),
    # How long one attempt to connect may take, by its misleading name: a rank that is stopped accepts connections
    # and says nothing on them.
    ("grpc.min_reconnect_backoff_ms", 2_000),
    # Large tensors travel in chunks; values do not, and may pass gRPC's usual 4 MiB. A rank takes as much.
    ("grpc.max_receive_message_length", 256 << 20),
]
"""How channels to ranks differ from gRPC's defaults."""


def resolve(target: Target, *, secure: bool = False) -> tuple[str, ...]:
    """Finds one gRPC target for each rank.

    Of a rank's several endpoints, the first unix socket that exists on this machine, and is not another user's, is
    taken, else the first that is no unix socket.

    Args:
        target: Path of an endpoints file, its dict, or each rank's target (or targets) by rank.
        secure: True: for TLS, which is served on TCP; unix sockets are taken only where there is nothing
            else.

    Returns:
        gRPC targets by rank, at least one.

    Raises:
        InvalidArgumentError: It has no ranks, a rank without endpoints, or ranks that do not count from 0.
        OSError: The file cannot be read.
    """
    if isinstance(target, str | os.PathLike):
        target = content_of(target)
    by_rank = _endpoints(target) if isinstance(target, Mapping) else target
    if not by_rank:
        raise InvalidArgumentError(
            "a gang has one rank at least", expected="a target for each rank", got="none"
        )
    return tuple(_choose(rank, endpoints, secure) for rank, endpoints in enumerate(by_rank))


def content_of(target: str | os.PathLike[str] | Mapping[str, Any]) -> Mapping[str, Any]:
    """Reads an endpoints file; of what was read already, gives it.

    Raises:
        InvalidArgumentError: It is none.
        OSError: The file cannot be read.
    """
    if isinstance(target, Mapping):
        return target
    path = Path(target)
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InvalidArgumentError(f"{path} is no endpoints file: {error}", expected="JSON") from error
    if not isinstance(content, Mapping):
        raise InvalidArgumentError(f"{path} is no endpoints file", expected="a JSON object", got=str(content))
    return content


def _endpoints(content: Mapping[str, Any]) -> list[Sequence[str]]:
    try:
        by_rank = {int(entry["rank"]): entry["endpoints"] for entry in content["ranks"]}
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidArgumentError(
            "these are no endpoints",
            expected='{"ranks": [{"rank": 0, "endpoints": [...]}, ...]}',
            got=repr(error),
        ) from error
    if sorted(by_rank) != list(range(len(content["ranks"]))):
        raise InvalidArgumentError(
            "the ranks of a gang count from 0, each once",
            expected=f"0 to {len(content['ranks']) - 1}",
            got=str([entry["rank"] for entry in content["ranks"]]),
        )
    return [by_rank[rank] for rank in sorted(by_rank)]


def _choose(rank: int, endpoints: str | Sequence[str], secure: bool) -> str:
    candidates = [endpoints] if isinstance(endpoints, str) else list(endpoints)
    if not candidates or not all(isinstance(candidate, str) and candidate for candidate in candidates):
        raise InvalidArgumentError(
            f"rank {rank} has no endpoint", expected="gRPC targets, one at least", got=repr(endpoints)
        )
    unix = [candidate for candidate in candidates if candidate.startswith("unix:")]
    others = [candidate for candidate in candidates if candidate not in unix]
    here = [] if secure else [candidate for candidate in unix if _is_trusted_socket(candidate)]
    return [*here, *others, *unix][0]


def socket_path(target: str) -> str:
    """Finds the path of a unix socket: of "unix:relative", "unix:/absolute", "unix:///absolute". Empty: it has none."""
    return target.removeprefix("unix:").removeprefix("//") if target.startswith("unix:") else ""


def _is_trusted_socket(target: str) -> bool:
    """Whether it is there, and not another user's, who has taken the place of a gang that has ended."""
    try:
        found = os.stat(socket_path(target))
    except (OSError, ValueError):
        return False
    user = os.geteuid()
    return stat.S_ISSOCK(found.st_mode) and (user == 0 or found.st_uid in (0, user))
