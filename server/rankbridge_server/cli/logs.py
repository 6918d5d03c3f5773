"""The options of logs, and the standard output and error of ranks that an agent forks."""

from __future__ import annotations

import io
import os
from typing import TextIO

import click

from ..sidecar.logs import LEVELS, Logs
from .options import Option, Options

LOGS_NOTE = {"Logs": "On standard error. Nothing is logged for a single operation."}


def logs_options(level: str) -> list[Option]:
    """The options that `up` and `rank` share. `level`: the default."""
    return [
        Option("--log-format", section="Logs", type=click.Choice(["text", "json"]), default="text"),
        Option(
            "--log-level",
            section="Logs",
            type=click.Choice(LEVELS),
            default=level,
            help="info: generations as well; warning: lost ranks, verdicts, stragglers, refused callers, limits",
        ),
    ]


def logs_of(options: Options) -> Logs:
    """The logs of the options."""
    return Logs(options.log_format, options.log_level)


class OfRank(io.TextIOWrapper):
    """Standard output or error of a rank's own code: each line begins with the rank.

    What writes to the file descriptor without Python is not marked.
    """

    def __init__(self, stream: TextIO, rank: int) -> None:
        # Opened anew: the old one may believe that the descriptor is what it was before it was redirected.
        buffer = os.fdopen(os.dup(stream.fileno()), "wb")
        super().__init__(buffer, stream.encoding, stream.errors, line_buffering=True)
        self._prefix = f"rank {rank}: "
        self._fresh = True

    def write(self, text: str) -> int:
        """Writes lines with the rank before them."""
        for line in text.splitlines(keepends=True):
            super().write((self._prefix if self._fresh else "") + line)
            self._fresh = line.endswith("\n")
        return len(text)
