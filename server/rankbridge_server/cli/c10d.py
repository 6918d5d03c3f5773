"""`--backend c10d:MODULE`: a backend of torch.distributed that somebody else wrote."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from ..job.loading import LoadError, load

if TYPE_CHECKING:
    from ..core.coordinator import Backend

PREFIX = "c10d:"


def is_one(backend: str) -> bool:
    """Whether a value of `--backend` names a module."""
    return backend.startswith(PREFIX)


class BackendName(click.Choice[str]):
    """A backend of ours, or c10d:MODULE."""

    def __init__(self, ours: Sequence[str]) -> None:
        super().__init__(ours)

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        """In the help."""
        return f"[{'|'.join(self.choices)}|{PREFIX}MODULE]"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Takes every module; that it can be imported shows later."""
        if isinstance(value, str) and is_one(value) and value != PREFIX:
            return value
        return str(super().convert(value, param, ctx))


def begin(backend: str, hostname: str, timeout: float) -> Backend:
    """Imports the module, and makes its backend. `timeout`: of each operation, in seconds.

    Raises LoadError, or BACKEND_FAILED.
    """
    from ..backends.c10d import C10dBackend, NoCreator, creator_of, registered

    before = registered()
    (module,) = load([backend.removeprefix(PREFIX)])
    try:
        create = creator_of(module, before)
    except NoCreator as error:
        raise LoadError(str(error)) from error
    return C10dBackend(backend, create, hostname, timeout)
