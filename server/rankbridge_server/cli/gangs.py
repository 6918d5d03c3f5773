"""Reaching a gang that runs already."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ..core.printable import lines

if TYPE_CHECKING:
    import grpc

    from rankbridge import Gang

VARIABLE = "RANKBRIDGE_ENDPOINTS"


class NoGang(Exception):
    """No option names the gang, or the gang cannot be reached."""


def add_endpoints(parser: argparse.ArgumentParser) -> None:
    """Adds the options that name a gang."""
    parser.add_argument(
        "--endpoints",
        metavar="FILE|TARGETS",
        default=os.environ.get(VARIABLE),
        help="the file that `up --endpoints-file` wrote, or gRPC targets by rank, separated by commas "
        f"(default: ${VARIABLE})",
    )
    parser.add_argument(
        "--tls-ca",
        type=Path,
        metavar="FILE",
        help="use TLS with ranks over TCP; FILE: the authority of their certificates, PEM",
    )
    parser.add_argument(
        "--tls-cert", type=Path, metavar="FILE", help="certificate to show to ranks that demand one, PEM"
    )
    parser.add_argument("--tls-key", type=Path, metavar="FILE", help="its private key, PEM")
    parser.add_argument(
        "--insecure-token",
        action="store_true",
        help="show the gang's token to other hosts without TLS, too: whoever hears the network has it",
    )
    parser.add_argument(
        "--timeout",
        type=float,
        default=30.0,
        metavar="S",
        help="seconds for each call (default: %(default)s)",
    )


@contextmanager
def connected(options: argparse.Namespace) -> Iterator[Gang]:
    """The gang, in its ranks' shared sessions: refs outlive this process. Raises NoGang."""
    # Only here: the process of `up` must not have loaded gRPC when it forks.
    import rankbridge

    if not options.endpoints:
        raise NoGang(f"which gang? give --endpoints, or set {VARIABLE}")
    is_file = Path(options.endpoints).exists()
    target = options.endpoints if is_file else options.endpoints.split(",")
    try:
        gang = rankbridge.connect(
            target,
            session=False,
            timeout=options.timeout,
            tls=_credentials(options),
            insecure_token=options.insecure_token,
        )
    except (OSError, ValueError) as error:
        raise NoGang(f"{options.endpoints}: {error}") from error
    with gang:
        yield gang


def _credentials(options: argparse.Namespace) -> grpc.ChannelCredentials | None:
    import grpc

    given = (options.tls_ca, options.tls_key, options.tls_cert)
    if (options.tls_key is None) != (options.tls_cert is None) or (options.tls_key and not options.tls_ca):
        raise NoGang("--tls-cert goes with --tls-key, and both with --tls-ca")
    if options.tls_ca is None:
        return None
    return grpc.ssl_channel_credentials(*(None if it is None else it.read_bytes() for it in given))


def complain(command: str, error: Exception) -> int:
    """Prints an error with every rank's part; returns the exit status."""
    print(f"rankbridge {command}: {lines(str(error))}", file=sys.stderr)
    for outcome in getattr(error, "outcomes", ()):
        if outcome.error is not None:
            print(f"  rank {outcome.rank}: {lines(str(outcome.error))}", file=sys.stderr)
    return 1
