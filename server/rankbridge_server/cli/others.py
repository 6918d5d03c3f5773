"""`--backend c10d:MODULE` and `program:COMMAND`: engines that somebody else wrote."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from ..job.loading import LoadError, load

if TYPE_CHECKING:
    from ..core.coordinator import Backend

_C10D, _PROGRAM = "c10d:", "program:"
_PREFIXES = (_C10D, _PROGRAM)
HELP = (
    "c10d:MODULE: the backend of torch.distributed that MODULE has, a file (mine.py) or a name (package.module); "
    "program:COMMAND: a program for each rank, which answers lines of JSON"
)


def is_one(backend: str) -> bool:
    """Whether a value of `--backend` names a module or a program."""
    return backend.startswith(_PREFIXES) and backend not in _PREFIXES


class BackendName(click.Choice[str]):
    """A backend of ours, or somebody else's."""

    def __init__(self, ours: Sequence[str]) -> None:
        super().__init__(ours)

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        """In the help."""
        return f"[{'|'.join(self.choices)}|{_C10D}MODULE|{_PROGRAM}COMMAND]"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Takes every module and program; whether there is one shows later."""
        if isinstance(value, str) and is_one(value):
            return value
        return str(super().convert(value, param, ctx))


def import_for_ranks() -> None:
    """Imports what ranks need, but for the module itself."""
    from ..backends import c10d, program  # noqa: F401


def begin(backend: str, hostname: str, timeout: float) -> Backend:
    """Makes the backend; imports the module, or starts the program. `timeout`: of each operation, in seconds.

    Raises LoadError, or BACKEND_FAILED.
    """
    if backend.startswith(_PROGRAM):
        from ..backends.program import ProgramBackend

        return ProgramBackend(backend, backend.removeprefix(_PROGRAM), hostname, timeout)
    from ..backends.c10d import C10dBackend, NoCreator, creator_of, registered

    before = registered()
    (module,) = load([backend.removeprefix(_C10D)])
    try:
        create = creator_of(module, before)
    except NoCreator as error:
        raise LoadError(str(error)) from error
    return C10dBackend(backend, create, hostname, timeout)
