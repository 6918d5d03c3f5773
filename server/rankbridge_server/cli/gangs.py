"""Reaching a gang that runs already."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.printable import lines
from ..sidecar.runtime_dir import running_gangs
from .options import FILE, Option, Options

if TYPE_CHECKING:
    import grpc

    from rankbridge import Gang

VARIABLE = "RANKBRIDGE_ENDPOINTS"


class NoGang(Exception):
    """No option names the gang, or the gang cannot be reached."""


WHICH = "Which gang"


def gang_options(timeout: float = 30.0) -> list[Option]:
    """The options that name a gang. `timeout`: the default, in seconds."""
    return [
        Option(
            "--endpoints",
            section=WHICH,
            metavar="FILE|TARGETS",
            envvar=VARIABLE,
            help="the file that `up --endpoints-file` wrote, or gRPC targets by rank, separated by commas "
            f"(default: ${VARIABLE}, else the one gang that runs on this host)",
        ),
        Option("--gang", section=WHICH, metavar="NAME", help="the gang of this name that runs on this host"),
        Option(
            "--tls-ca",
            section=WHICH,
            type=FILE,
            metavar="FILE",
            help="use TLS with ranks over TCP; FILE: the authority of their certificates, PEM",
        ),
        Option(
            "--tls-cert",
            section=WHICH,
            type=FILE,
            metavar="FILE",
            help="certificate to show to ranks that demand one, PEM",
        ),
        Option("--tls-key", section=WHICH, type=FILE, metavar="FILE", help="its private key, PEM"),
        Option(
            "--insecure-token",
            section=WHICH,
            is_flag=True,
            help="show the gang's token to other hosts without TLS, too: whoever hears the network has it",
        ),
        Option(
            "--timeout", section=WHICH, type=float, default=timeout, metavar="S", help="seconds for each call"
        ),
    ]


@dataclass(frozen=True, slots=True)
class Running:
    """A gang that runs on this host. `path`: its endpoints file; `content`: what the file holds."""

    path: Path
    content: dict[str, Any]

    @property
    def name(self) -> str:
        """Its name."""
        return str(self.content["gang"])


def running() -> list[Running]:
    """The gangs of this user that run on this host."""
    found = []
    for path in running_gangs():
        try:
            found.append(Running(path, json.loads(path.read_text())))
        except (OSError, ValueError):
            # It has ended meanwhile.
            continue
    return found


def target(options: Options) -> str | list[str]:
    """The endpoints file, or the targets, of the gang that the options name. Raises NoGang."""
    if options.gang is None and options.endpoints:
        is_file = Path(options.endpoints).exists()
        return str(options.endpoints) if is_file else str(options.endpoints).split(",")
    found = [it for it in running() if options.gang in (None, it.name)]
    if len(found) == 1:
        return str(found[0].path)
    named = "" if options.gang is None else f" by the name of {options.gang!r}"
    if not found:
        raise NoGang(f"no gang of yours runs on this host{named}: give --endpoints, or set {VARIABLE}")
    several = "".join(f"\n  --endpoints {it.path}  ({it.name})" for it in found)
    raise NoGang(f"{len(found)} gangs run on this host{named}; say which one:{several}")


@contextmanager
def connected(options: Options) -> Iterator[Gang]:
    """The gang, in its ranks' shared sessions: refs outlive this process. Raises NoGang."""
    where = target(options)
    # Only here: the process of `up` must not have loaded gRPC when it forks.
    import rankbridge

    try:
        gang = rankbridge.connect(where, session=False, **arguments(options))
    except (OSError, ValueError) as error:
        raise NoGang(f"{options.endpoints or where}: {error}") from error
    with gang:
        yield gang


def arguments(options: Options) -> dict[str, Any]:
    """How the gang is connected to, beside where it is. Raises NoGang."""
    return {
        "timeout": options.timeout,
        "tls": _credentials(options),
        "insecure_token": options.insecure_token,
    }


def _credentials(options: Options) -> grpc.ChannelCredentials | None:
    import grpc

    given = (options.tls_ca, options.tls_key, options.tls_cert)
    if (options.tls_key is None) != (options.tls_cert is None) or (options.tls_key and not options.tls_ca):
        raise NoGang("--tls-cert goes with --tls-key, and both with --tls-ca")
    if options.tls_ca is None:
        return None
    return grpc.ssl_channel_credentials(*(None if it is None else it.read_bytes() for it in given))


def complain(command: str, error: Exception) -> int:
    """Prints an error, and what ranks say that it does not; returns the exit status."""
    print(f"rankbridge {command}: {lines(str(error))}", file=sys.stderr)
    for outcome in getattr(error, "outcomes", ()):
        if outcome.error is not None and str(outcome.error) != str(error):
            print(f"  rank {outcome.rank}: {lines(str(outcome.error))}", file=sys.stderr)
    return 1
