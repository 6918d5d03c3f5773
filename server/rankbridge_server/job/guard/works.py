"""Torch's handle on a send or receive that guard enters when both ends have agreed."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import cache
from typing import Any, Protocol

from ..dispatch import hook


class Awaited(Protocol):
    """A send or receive."""

    def wait(self, timeout: timedelta | None) -> bool:
        """Waits until it is done. Raises what has kept it from that."""

    @property
    def failure(self) -> Exception | None:
        """Why it is not entered; None: it is, or may be."""

    @property
    def entered(self) -> Any:
        """The backend's own work; None: it is not entered yet."""


def work_of(awaited: Awaited) -> Any:
    """Torch's Work for it. The caller keeps it until the script has it: torch alone keeps what is C++ of it."""
    return _work_class()(awaited)


@cache
def _work_class() -> Callable[[Awaited], Any]:
    # When this module is imported, torch may not be.
    from torch._C._distributed_c10d import Work

    class GuardedWork(Work):
        """Waits for both ends, and then for the backend. What the backend's work cannot say yet, this one cannot."""

        def __init__(self, awaited: Awaited) -> None:
            super().__init__()
            self._awaited = awaited

        def wait(self, timeout: timedelta | None = None) -> bool:
            """Waits until it is done. Raises GuardError when the ends do not agree, or one has not come."""
            return self._awaited.wait(timeout)

        def synchronize(self) -> None:
            """Waits until it is done."""
            self._awaited.wait(None)

        def is_completed(self) -> bool:
            """Whether it is done, as the backend has it, or has failed."""
            awaited = self._awaited
            return awaited.failure is not None or (
                awaited.entered is not None and bool(awaited.entered.is_completed())
            )

        def is_success(self) -> bool:
            """Whether it is done, and has not failed."""
            entered = self._awaited.entered
            return self._awaited.failure is None and entered is not None and bool(entered.is_success())

        def exception(self) -> Any:
            """Why it has failed."""
            entered = self._awaited.entered
            return self._awaited.failure or (entered.exception() if entered is not None else None)

        def result(self) -> Any:
            """The backend's, once both ends have agreed."""
            self._awaited.wait(None)
            return self._awaited.entered.result()

        def source_rank(self) -> int:
            """The rank in the group from which a receive has received."""
            return int(self._awaited.entered._source_rank())

        _source_rank = source_rank

    hook().watch_waits(GuardedWork)
    return GuardedWork
