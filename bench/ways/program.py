"""Programs: operations that the ranks run by themselves, as one gang call."""

from __future__ import annotations

from bench.operation import LOOP
from bench.subject import Timed, averaged, timed
from bench.ways import Stage
from rankbridge import Program


def operations(stage: Stage) -> dict[str, Timed]:
    """In place, as the native loop's are."""
    barriers, sums = Program(), Program()
    with barriers.loop(LOOP):
        barriers.barrier()
    with sums.loop(LOOP):
        sums.all_reduce(stage.refs["all_reduce_4B"], in_place=True)
    run = stage.gang.run
    return {
        "loop_barrier": averaged(timed(lambda: run(barriers, calls="gang"))),
        "loop_all_reduce_4B": averaged(timed(lambda: run(sums, calls="gang"))),
    }
