"""The command line, and the composition root: the only package that sees every layer."""

from collections.abc import Sequence

from .interrupts import interrupts_end_it

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; returns the exit status."""
    with interrupts_end_it():
        from .commands import run
    return run(arguments)
