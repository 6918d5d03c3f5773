"""What torch has of a gang's ranks, as evidence: collectives in functions, or those of the job that has attached."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from .arguments import with_arguments
from .conditions import gil_holder
from .evidence import Evidence, RankEvidence
from .focus import focus
from .stacks import waits_in_collective, waits_in_guard
from .testimony import Silence, Testimony, TorchState
from .verdict import Condition


def torch_evidence(
    gang: Evidence, testimonies: Sequence[Testimony], silences: Sequence[Silence]
) -> Evidence | None:
    """The same ranks with their collectives of torch.distributed. None: no rank has one.

    `gang`: as `evidence_of` has it.
    """
    states = {it.rank: it.torch for it in testimonies if it.torch is not None}
    if any(map(waits_in_guard, gang.ranks)):
        # What guard holds is not in torch's recorder: nobody's calls are known.
        states = {}
    elif not any(it.calls for it in states.values()):
        return None
    silent = {it.rank for it in silences}
    return focus(
        replace(
            gang,
            has_numbers=True,
            ranks=tuple(_rank(it, gang, states, it.rank in silent) for it in gang.ranks),
        )
    )


def _rank(
    it: RankEvidence, gang: Evidence, states: Mapping[int, TorchState], is_silent: bool
) -> RankEvidence:
    state = states.get(it.rank)
    if is_silent and gil_holder(it) is not None and not waits_in_collective(it):
        # It is not in the collective in which others wait, and has not left it: that goes on without Python's lock.
        return replace(it, source="functions", calls=(), groups=(), waiting_s=None)
    if state is None or is_silent:
        # What it has called is not known.
        return replace(it, source="", calls=(), groups=(), waiting_s=None)
    made = replace(
        it,
        source="flight recorder" if state.script else "functions",
        groups=state.groups,
        calls=state.calls,
        calling=state.calling,
        waiting_s=None if state.waiting_since is None else max(0.0, gang.at - state.waiting_since),
        # What its user's thread does is seen, whatever a controller has asked of it.
        says="" if it.threads and it.says != Condition.HELD else it.says,
    )
    began_at = gang.at - gang.interval_s
    return replace(made, calls=with_arguments(made, state.peer, state.tag, began_at, gang.at))
