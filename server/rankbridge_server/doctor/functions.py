"""Functions that all members of a group were to run: some have returned, and others have not."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from .absence import culprit
from .conditions import condition
from .contract_texts import frame_of
from .evidence import Evidence, RankEvidence
from .patience import longer
from .testimony import Operation, Testimony
from .verdict import Condition, Culprit, Kind, Side, Verdict
from .words import joined, rank_intervals, verb

_AT_WORK = (Condition.SPINNING, Condition.STARVED, Condition.IN_COLLECTIVE, Condition.UNKNOWN)
"""What a rank does that may only have more to do than the others."""

_Runs = dict[int, Operation]
"""Of one call, by rank."""


def left_behind(
    evidence: Evidence, testimonies: Sequence[Testimony], at: float, patience_s: float
) -> Verdict | None:
    """The ranks that have not returned from a function, if they stand still, and the others have returned long ago."""
    members = {group.name: {*group.ranks} for it in testimonies for group in it.groups}
    calls = [
        it for it in _calls(testimonies) if it.keys() == members.get(next(iter(it.values())).group, set())
    ]
    ranks = {it.rank: it for it in evidence.ranks}
    for runs in calls:
        ended = [it.done_at for it in runs.values() if it.done_at is not None]
        late = [ranks[rank] for rank, it in sorted(runs.items()) if it.done_at is None]
        if not ended or not late:
            continue
        name = next(iter(runs.values())).function
        spreads = [_spread(it) for it in calls if it is not runs and _is_whole(it, name)]
        seconds = at - max(ended)
        if seconds >= longer(patience_s, spreads) and all(_stands(it, evidence) for it in late):
            return _verdict(runs, [culprit(it, evidence, 0.9) for it in late], seconds)
    return None


def _calls(testimonies: Sequence[Testimony]) -> Iterator[_Runs]:
    """Each call of a group's function: what each member has recorded of it."""
    found: dict[tuple[str, int, str], _Runs] = defaultdict(dict)
    for it in testimonies:
        for operation in it.operations:
            # What one rank alone is asked for is not announced.
            if operation.function and operation.announced_at is not None and not operation.code:
                found[operation.group, operation.generation, operation.operation_id][it.rank] = operation
    yield from found.values()


def _is_whole(runs: Mapping[int, Operation], name: str) -> bool:
    return all(it.function == name and it.done_at is not None for it in runs.values())


def _spread(runs: Mapping[int, Operation]) -> float:
    ends = [it.done_at for it in runs.values() if it.done_at is not None]
    return max(ends) - min(ends)


def _stands(rank: RankEvidence, evidence: Evidence) -> bool:
    return bool(rank.still) and condition(rank, evidence.interval_s) not in _AT_WORK


def _verdict(runs: Mapping[int, Operation], late: Sequence[Culprit], seconds: float) -> Verdict:
    one = next(iter(runs.values()))
    numbers = [it.rank for it in late]
    returned = sorted({*runs} - {*numbers})
    site = frame_of(one.site)
    where = f", in {joined(late[0].stack[:3])}" if late[0].stack else ""
    return Verdict(
        kind=Kind.NEVER_CALLED,
        summary=f"{rank_intervals(numbers)} {verb(numbers, 'has', 'have')} not returned from function "
        f"{one.function} on {one.group}, as {rank_intervals(returned)} did {seconds:.1f} s ago, "
        f"{verb(numbers, 'is', 'are')} {late[0].why}{where}",
        confidence=min(it.confidence for it in late),
        culprits=tuple(late),
        call=f"{one.function} {one.group}",
        sides=(
            Side(ranks=tuple(returned), what="has returned", sites=(site,) if site else ()),
            Side(ranks=tuple(numbers), what="has not"),
        ),
        advice="look at the line where it is: what does it wait for?",
    )
