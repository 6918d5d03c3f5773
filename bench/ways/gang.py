"""Gang calls: one call to one rank, which passes it on."""

from __future__ import annotations

from bench.subject import Timed, timed
from bench.ways import Stage
from bench.ways._collectives import collectives


def operations(stage: Stage) -> dict[str, Timed]:
    """Empty is a ping, which is admitted and enters no backend."""
    return {
        "empty_all": timed(stage.gang.ping),
        "function": timed(lambda: stage.gang.call("empty")),
        **collectives(stage, "gang"),
    }
