"""Calls of every rank, all at once."""

from __future__ import annotations

from bench.subject import Timed, timed
from bench.ways import Stage
from bench.ways._collectives import collectives


def operations(stage: Stage) -> dict[str, Timed]:
    """Empty is what describes a rank: it waits for nothing."""
    gang = stage.gang
    empty = {"empty_one": timed(gang[0].status), "empty_all": timed(gang.status)}
    return {**empty, **collectives(stage, "ranks")}
