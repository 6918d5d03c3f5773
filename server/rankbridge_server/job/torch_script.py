"""The user's own code in this process, as torch.distributed knows it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from ..core.hold.holds import Holds
from ..core.script import ScriptCall, ScriptGroup
from . import breakpoints
from .dispatch import counts
from .outside import flight_recorder, injected


class TorchScript:
    """Implements `core.script.Script`, by torch's flight recorder, which records in any process that uses groups."""

    def hold_at(self, holds: Holds) -> None:
        """By the hook at torch's dispatcher."""
        breakpoints.begin(holds)

    def calls(self) -> tuple[Sequence[ScriptGroup], Sequence[ScriptCall]]:
        """Nothing, where torch has no flight recorder that can be read."""
        found: dict[str, Any] = dict(injected.found())
        with suppress(flight_recorder.BadTrace):
            groups = flight_recorder.groups(found.get("groups", {}))
            # A group that is no more has left its calls, and may have left its name to another.
            begun = counts()
            calls = [
                it
                for it in flight_recorder.calls(found.get("trace", {}))
                if it.number <= begun.get(it.group, 0)
            ]
            return (
                [
                    ScriptGroup(
                        it.name, it.ranks, "world" if it.description == "default_pg" else it.description
                    )
                    for it in groups
                ],
                [
                    ScriptCall(
                        it.group, it.number, it.kind, it.dtypes, it.shapes, it.called_at or 0.0, bool(it.done)
                    )
                    for it in calls
                ],
            )
        return (), ()
