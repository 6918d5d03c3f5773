"""`rankbridge completion`: what makes a shell complete commands, options and operations."""

from __future__ import annotations

import click

from .options import Command, Options

SHELLS = ("bash", "zsh", "fish")


def _run(options: Options) -> int:
    from click.shell_completion import get_completion_class

    from .commands import COMMAND_LINE

    completion = get_completion_class(options.shell)
    assert completion is not None
    click.echo(completion(COMMAND_LINE, {}, "rankbridge", "_RANKBRIDGE_COMPLETE").source())
    return 0


COMMAND = Command(
    "completion",
    _run,
    [click.Argument(["shell"], type=click.Choice(SHELLS))],
    help='Print what makes a shell complete the commands. For bash, add to ~/.bashrc: eval "$(rankbridge completion '
    'bash)"; for zsh likewise; for fish: rankbridge completion fish | source.',
)
