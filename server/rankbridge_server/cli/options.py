"""Commands and their options, by click: the sections of --help, and the values that a command runs with."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click

from ..core.address import Address

FILE = click.Path(path_type=Path)


class Options(SimpleNamespace):
    """The values of a command's options and arguments, by name."""

    def __getattr__(self, name: str) -> Any:
        """Only for type checkers: values are attributes of their own."""
        raise AttributeError(name)


class Option(click.Option):
    """An option in a section of --help."""

    def __init__(self, declaration: str, *names: str, section: str = "Options", **settings: Any) -> None:
        """`declaration`: as "--size" or "--json/--no-json"; `names`: others, and the name of its value."""
        settings.setdefault(
            "show_default", "default" in settings and settings["default"] not in (None, False)
        )
        super().__init__([declaration, *names], **settings)
        self.section = section


class Command(click.Command):
    """A command that runs `run` with its options' values, and ends with the status that `run` returns."""

    def __init__(
        self,
        name: str,
        run: Callable[[Options], int],
        params: Sequence[click.Parameter],
        help: str,
        notes: dict[str, str] | None = None,
    ) -> None:
        """`notes`: what --help says below the title of a section."""

        def callback(**values: Any) -> int:
            try:
                return run(Options(**values))
            except BrokenPipeError:
                return close_output()

        super().__init__(
            name,
            callback=callback,
            params=list(params),
            help=help,
            context_settings={"max_content_width": 120},
        )
        self._notes = notes or {}

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the options by section."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None and isinstance(parameter, click.Option):
                section = getattr(parameter, "section", "Options")
                sections.setdefault(section, []).append(record)
        for title, records in sections.items():
            with formatter.section(title):
                if title in self._notes:
                    formatter.write_text(self._notes[title])
                formatter.write_dl(records)


def address(text: str) -> Address:
    """HOST:PORT of an option."""
    try:
        return Address.parse(text)
    except ValueError:
        raise click.BadParameter(f"must be HOST:PORT, an IPv6 address in brackets: not {text!r}") from None


def close_output() -> int:
    """Drops what is still to be printed, because its reader is gone; returns the exit status."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 128 + signal.SIGPIPE


JSON = Option("--json", "as_json", is_flag=True, help="one JSON object, for programs")
