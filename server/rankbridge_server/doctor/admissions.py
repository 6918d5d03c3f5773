"""Admissions of which the group's leader says nothing, as it is dead or does not run: from the members' records."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from .testimony import Admission, Operation, Testimony

_Key = tuple[int, int]
"""Generation and number of an operation in its group."""


def unreported(testimonies: Sequence[Testimony], at: float) -> Iterator[Admission]:
    """What members wait for in groups whose leader has not answered itself. `at`: now, in seconds since 1970."""
    by_rank = {it.rank: it for it in testimonies}
    groups = {group.name: group.ranks for it in testimonies for group in it.groups}
    for group, members in groups.items():
        leader = by_rank.get(members[0]) if members else None
        if leader is None or leader.outside is None:
            continue
        arrived: dict[_Key, dict[int, Operation]] = defaultdict(dict)
        passed: dict[_Key, set[int]] = defaultdict(set)
        for rank in members:
            for it in by_rank[rank].operations if rank in by_rank else ():
                if it.group != group or it.sequence is None or it.announced_at is None:
                    continue
                key = (it.generation, it.sequence)
                if it.done_at is None and it.entered_at is None:
                    arrived[key][rank] = it
                elif not it.code:
                    passed[key].add(rank)
        for key, waiting in sorted(arrived.items()):
            # Of whom some have gone on, all have come.
            if not passed[key]:
                yield _admission(group, members, waiting, by_rank, at)


def _admission(
    group: str,
    members: Sequence[int],
    waiting: dict[int, Operation],
    by_rank: dict[int, Testimony],
    at: float,
) -> Admission:
    moments = {rank: it.announced_at or it.called_at for rank, it in waiting.items()}
    first = min(moments.values())
    one = next(iter(waiting.values()))
    stuck = {rank for rank in waiting if _is_stuck(by_rank[rank])}
    return Admission(
        group=group,
        kind=one.kind,
        operation_id=one.operation_id,
        arrived=tuple((rank, moment - first) for rank, moment in moments.items() if rank not in stuck),
        missing=tuple(rank for rank in members if rank not in waiting or rank in stuck),
        waited_s=max(0.0, at - first),
    )


def _is_stuck(it: Testimony) -> bool:
    """Whether a rank has called, and does not run, so that the others wait for it all the same."""
    return it.outside is not None and not it.is_gone
