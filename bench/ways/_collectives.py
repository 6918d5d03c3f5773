"""The same collectives, however they are called."""

from __future__ import annotations

from typing import Literal

from bench.subject import Timed, timed
from bench.ways import Stage


def collectives(stage: Stage, calls: Literal["ranks", "gang"]) -> dict[str, Timed]:
    """In place, as the native calls are."""
    gang, refs = stage.gang, stage.refs
    return {
        "barrier": timed(lambda: gang.barrier(calls=calls)),
        "all_reduce_4B": timed(lambda: gang.all_reduce(refs["all_reduce_4B"], in_place=True, calls=calls)),
        "all_reduce_4MB": timed(lambda: gang.all_reduce(refs["all_reduce_4MB"], in_place=True, calls=calls)),
        "broadcast_4MB": timed(lambda: gang.broadcast(refs["broadcast_4MB"], in_place=True, calls=calls)),
    }
