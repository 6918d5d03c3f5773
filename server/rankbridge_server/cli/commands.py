"""`rankbridge`."""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from importlib import import_module

import click

from .interrupts import interrupts_end_it
from .options import close_output

COMMANDS = {
    "up": "Start a gang of ranks on this host and form it.",
    "rank": "Be one rank, started by torchrun, mpirun or in a container.",
    "ls": "List the gangs that run on this host.",
    "status": "Show a gang's ranks, groups, refs and pending operations.",
    "top": "Show what a gang's groups and ranks do now, again and again.",
    "events": "Follow what happens on the ranks of a gang.",
    "record": "Show the last operations of a gang's ranks.",
    "trace": "Write the record of a gang's ranks for Perfetto, their stacks for speedscope.",
    "call": "Run an operation on the ranks of a gang.",
    "functions": "List the functions that the ranks of a gang offer.",
    "test": "Run scenarios on gangs, and check what comes of them.",
    "drive": "Drive a gang by lines of JSON, from a program in any language.",
    "page": "Show a gang as a live page in a browser.",
    "metrics": "Serve the metrics of a gang to Prometheus.",
    "doctor": "Say why a torch.distributed job hangs.",
    "break": "Hold a gang's ranks before collectives, to look at them and step.",
    "watch": "Run a job whose ranks record their collectives, for `doctor`.",
    "tokens": "Make a gang's tokens.",
    "completion": "Print what makes a shell complete the commands.",
}
_MODULES = {"break": "breaking"}
"""Each is in the module of its name, or of this one, which is imported when it is asked for: no command waits for
another's imports."""


class Commands(click.Group):
    """The commands, each imported when it is run."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of the commands."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name."""
        if cmd_name not in COMMANDS:
            return None
        with interrupts_end_it():
            module = import_module(f".{_MODULES.get(cmd_name, cmd_name)}", __package__)
        command: click.Command = module.COMMAND
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes all commands, without their modules."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


def _print_version(ctx: click.Context, parameter: click.Parameter, wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        click.echo(f"rankbridge {version('rankbridge')}")
        ctx.exit()


COMMAND_LINE = Commands(
    "rankbridge",
    help="Drive the collectives of a torch.distributed job from any language.",
    params=[
        click.Option(
            ["--version"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=_print_version,
            help="Show the version and exit.",
        )
    ],
    context_settings={"max_content_width": 120},
)


def run(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; returns the exit status."""
    try:
        status: int | None = COMMAND_LINE.main(arguments, prog_name="rankbridge", standalone_mode=False)
        sys.stdout.flush()
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):
        return 128 + signal.SIGINT
    except BrokenPipeError:
        return close_output()
    return status or 0
