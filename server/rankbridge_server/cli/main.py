"""`rankbridge`."""

from __future__ import annotations

import argparse
import signal
from collections.abc import Sequence
from importlib.metadata import version

from . import call, rank, status, tokens, up


def parser() -> argparse.ArgumentParser:
    """The command line."""
    command_line = argparse.ArgumentParser(
        prog="rankbridge", description="Drive the collectives of a torch.distributed job from any language."
    )
    command_line.add_argument("--version", action="version", version=f"rankbridge {version('rankbridge')}")
    commands = command_line.add_subparsers(title="commands", metavar="COMMAND", required=True)
    up.add_parser(commands)
    rank.add_parser(commands)
    status.add_parser(commands)
    call.add_parser(commands)
    tokens.add_parser(commands)
    return command_line


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status."""
    options = parser().parse_args(arguments)
    try:
        status: int = options.run(options)
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    return status
